"""Notifications: the list, the page of one, its actions."""
