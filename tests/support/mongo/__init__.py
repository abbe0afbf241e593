"""Queries to MongoDB, and their plans."""
