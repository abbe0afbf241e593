"""Notifications: the lists, the page of one, and the actions of staff."""
