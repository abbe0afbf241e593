"""Bulk operations: one action on every notification of a selection: docs/guides/operate.md."""
