"""Vocabulary and rules that every package shares: states, errors, retry, time, content. Pure."""
