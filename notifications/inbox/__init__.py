"""The inbox of a recipient."""
