"""Plugins of pytest: what every test run loads."""
