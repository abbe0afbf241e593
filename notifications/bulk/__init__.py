"""Bulk operations: one action on every notification of a selection. See docs/guides/operate.md."""
