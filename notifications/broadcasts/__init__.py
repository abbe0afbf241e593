"""Broadcasts: one message to many recipients, page by page."""
