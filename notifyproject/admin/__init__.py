"""Admins of other people's apps: beat's schedule and the audit log.

Django finds this module by itself, after those apps have registered their own admins.
"""

from . import audit, beat

__all__ = ["audit", "beat"]
