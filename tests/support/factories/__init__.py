"""Stored and unstored test data."""
