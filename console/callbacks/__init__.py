"""Callback endpoints and deliveries."""
