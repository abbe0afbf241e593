"""Receipts: what providers and devices report after a send."""
