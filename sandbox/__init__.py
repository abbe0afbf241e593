"""A scriptable sandbox of the providers."""
