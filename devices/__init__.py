"""Devices that receive push messages: registration, status, presence, and preferences."""
