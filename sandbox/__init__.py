"""A scriptable stand-in for the providers."""
