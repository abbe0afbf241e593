"""What the service keeps, and for how long: what MongoDB deletes by itself."""

from collections.abc import Sequence
from datetime import timedelta

from django import template

from analytics.metrics import RETENTION as METRICS_RETENTION
from analytics.models import Interval
from callbacks.outbox import MESSAGE_RETENTION as CALLBACK_RETENTION
from notifications.broadcasts.repository import RETENTION as BROADCAST_RETENTION
from notifications.bulk.repository import RETENTION as BULK_RETENTION
from notifications.bulk.results import RETENTION as BULK_RESULT_RETENTION
from notifications.catalog import retention
from notifications.catalog.retention import Retention
from notifications.receipts.webhook_log import LOG_RETENTION as WEBHOOK_RETENTION

register = template.Library()


@register.simple_tag
def retention_table() -> list[tuple[str, str]]:
    """Return what is kept and how long, in words."""
    policies = retention.read_all()
    return [
        ("What notifications said, and to which address", _by_category(policies, "content")),
        ("Notifications and their attempts", _by_category(policies, "metadata")),
        ("Broadcasts, once they have ended", _days(BROADCAST_RETENTION)),
        ("Calls of providers", _days(WEBHOOK_RETENTION)),
        ("Callbacks to apps", _days(CALLBACK_RETENTION)),
        ("Figures by the minute", _days(METRICS_RETENTION[Interval.MINUTE])),
        ("Figures by the hour", _days(METRICS_RETENTION[Interval.HOUR])),
        ("Figures by the day", "for good"),
        ("Bulk operations", _days(BULK_RETENTION)),
        ("What became of each of their notifications", _days(BULK_RESULT_RETENTION)),
        ("People, devices and suppressions", "until they are erased or lifted"),
        ("The audit log", "for good"),
    ]


def _by_category(policies: Sequence[Retention], name: str) -> str:
    """Return the days of each category, or of all if they are the same."""
    spans = {policy.category: _days(getattr(policy, name)) for policy in policies}
    if len(set(spans.values())) == 1:
        return next(iter(spans.values()))
    return ", ".join(f"{category.value} {span}" for category, span in spans.items())


def _days(span: timedelta) -> str:
    return f"{span.days} days"
