"""Plugins of pytest that every test run loads."""
