"""REST operations on notifications."""
