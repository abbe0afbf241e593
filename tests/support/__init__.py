"""Factories, fakes, and clients for tests."""
