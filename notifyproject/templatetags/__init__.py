"""What the project's own templates use."""
