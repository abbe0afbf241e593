"""The operations console: a Django admin with pages, lists, and actions for staff."""
