"""Saved views: the filters of a list under a name."""
