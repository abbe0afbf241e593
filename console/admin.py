"""Registers every page with the Django admin, after other apps, whose pages they replace."""

from django.contrib import admin

from . import (
    alerts,
    api_clients,
    audit_log,
    devices,
    failures,
    periodic_tasks,
    providers,
    retention,
    scheduled_and_held,
    staff,
    suppressions,
    webhook_log,
    workers,
)
from .broadcasts import list as broadcast_list
from .bulk import list as bulk_list
from .callbacks import endpoints, messages
from .notifications import attempts
from .notifications import list as notification_list
from .recipients import list as recipient_list
from .types import page as types_page

__all__ = [
    "alerts",
    "api_clients",
    "attempts",
    "audit_log",
    "broadcast_list",
    "bulk_list",
    "devices",
    "endpoints",
    "failures",
    "messages",
    "notification_list",
    "periodic_tasks",
    "providers",
    "recipient_list",
    "retention",
    "scheduled_and_held",
    "staff",
    "suppressions",
    "types_page",
    "webhook_log",
    "workers",
]
admin.site.index_template = "console/home.html"
