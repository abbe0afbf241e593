"""Fake servers and providers."""
