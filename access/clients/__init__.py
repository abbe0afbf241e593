"""API clients: keys, authentication, inbox tokens, rate limits."""
