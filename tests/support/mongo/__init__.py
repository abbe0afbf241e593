"""What MongoDB was asked and how it answered."""
