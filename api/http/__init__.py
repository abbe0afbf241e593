"""Shared by all resources: bodies, parameters, problems, paging, rate limits."""
