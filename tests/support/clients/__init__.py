"""Clients of the service as tests use it."""
