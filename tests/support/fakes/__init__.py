"""Servers and providers of the tests."""
