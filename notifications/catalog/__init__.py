"""Notification types and retention policies."""
