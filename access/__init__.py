"""API clients with keys and scopes, and staff."""
