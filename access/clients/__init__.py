"""API clients: keys, authentication, inbox tokens, and rate limits."""
