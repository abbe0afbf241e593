"""Bulk operations: one action on all notifications of a selection, in the background.

A person chooses a selection and an action, sees a preview, and starts it. Workers then go through
it page by page, throttled, under a lease: docs/guides/operate.md.
"""
