"""Notification types and versions of their templates."""
