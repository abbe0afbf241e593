"""Registers every page with the Django admin.

The console is the last app, so its pages replace those of other apps.
"""

from importlib import import_module

from django.contrib import admin

from .staff.sign_in import SignInForm

PAGES = (
    "alerts",
    "api_clients",
    "audit_log",
    "broadcasts.list",
    "bulk.list",
    "callbacks.endpoints",
    "callbacks.messages",
    "designs.page",
    "devices",
    "digests",
    "failures",
    "limits",
    "notifications.attempts",
    "notifications.list",
    "periodic_tasks",
    "providers",
    "recipients.list",
    "request_log",
    "retention",
    "rooms",
    "saved_views.page",
    "scheduled_and_held",
    "staff.accounts",
    "suppressions",
    "types.page",
    "webhook_log",
    "workers",
)
"""Modules that register a page."""

for page in PAGES:
    import_module(f"{__package__}.{page}")
admin.site.index_template = "console/home.html"
admin.site.login_form = SignInForm
