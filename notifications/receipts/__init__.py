"""Receipts: what providers and devices report later."""
