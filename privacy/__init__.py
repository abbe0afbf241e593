"""Erasure, export, retention, purge, and unsubscribe links."""
