"""The console: pages for the people who run the service.

They read through the ORM and :mod:`notifications.queries`; every change goes through
:mod:`notifications.resend.actions` and its neighbours.
"""

from . import (
    alerts_page,
    broadcast_list,
    bulk_operations,
    failed_list,
    notification_list,
    notification_types,
    people,
    providers_page,
    records,
    retention_page,
    waiting_list,
    webhook_log,
    workers_page,
)

__all__ = [
    "alerts_page",
    "broadcast_list",
    "bulk_operations",
    "failed_list",
    "notification_list",
    "notification_types",
    "people",
    "providers_page",
    "records",
    "retention_page",
    "waiting_list",
    "webhook_log",
    "workers_page",
]
