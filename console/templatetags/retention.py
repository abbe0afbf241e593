"""Template tag of the table of all retention times."""

from collections.abc import Sequence
from datetime import timedelta

from django import template
from django.conf import settings

from callbacks.outbox import MESSAGE_RETENTION as CALLBACK_RETENTION
from monitoring.metrics import RETENTION as METRICS_RETENTION
from monitoring.models import Interval
from notifications.broadcasts.repository import RETENTION as BROADCAST_RETENTION
from notifications.bulk.repository import RETENTION as BULK_RETENTION
from notifications.bulk.results import RETENTION as BULK_RESULT_RETENTION
from notifications.catalog import retention
from notifications.catalog.retention import Retention
from notifications.receipts.webhook_log import LOG_RETENTION as WEBHOOK_RETENTION

register = template.Library()


@register.simple_tag
def retention_table() -> list[tuple[str, str]]:
    """Return each kind of data and its retention."""
    policies = retention.read_all()
    return [
        ("Content and addresses of notifications", _by_category(policies, "content")),
        ("Notifications and attempts", _by_category(policies, "metadata")),
        ("Broadcasts, after their end", _days(BROADCAST_RETENTION)),
        ("Requests of API clients", _days(timedelta(days=settings.REQUEST_LOG_DAYS))),
        ("Provider webhooks", _days(WEBHOOK_RETENTION)),
        ("Callback messages", _days(CALLBACK_RETENTION)),
        ("Metrics per minute", _days(METRICS_RETENTION[Interval.MINUTE])),
        ("Metrics per hour", _days(METRICS_RETENTION[Interval.HOUR])),
        ("Metrics per day", "no expiry"),
        ("Bulk operations", _days(BULK_RETENTION)),
        ("Results of bulk operations", _days(BULK_RESULT_RETENTION)),
        ("Recipients, devices, and suppressions", "until erased or lifted"),
        ("Audit log", "no expiry"),
    ]


def _by_category(policies: Sequence[Retention], name: str) -> str:
    spans = {policy.category: _days(getattr(policy, name)) for policy in policies}
    if len(set(spans.values())) == 1:
        return next(iter(spans.values()))
    return ", ".join(f"{category.value} {span}" for category, span in spans.items())


def _days(span: timedelta) -> str:
    return f"{span.days} days"
