"""The console: pages for the people who run the service.

They read through the ORM and :mod:`notifications.queries`; every change goes through
:mod:`notifications.redrive`.
"""

from . import failed_list, notification_list, notification_types, records

__all__ = ["failed_list", "notification_list", "notification_types", "records"]
