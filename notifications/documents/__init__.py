"""The types of stored documents: a module for each of :mod:`notifications.models`."""
