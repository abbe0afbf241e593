"""Bulk operations: one action on every notification of a selection, in the background.

Staff choose a selection and an action, review a preview, and start it. Workers then process it page
by page, throttled, under a lease: see docs/guides/operate.md.
"""
