"""A scriptable HTTP server that stands in for the providers."""
