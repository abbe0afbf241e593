"""API clients, their keys and scopes; staff."""
