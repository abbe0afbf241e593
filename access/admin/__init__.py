"""API clients, staff and roles in the admin."""

from . import clients, staff

__all__ = ["clients", "staff"]
