"""What the service keeps, and for how long: what MongoDB deletes by itself."""

from datetime import timedelta

from django import template

from analytics.aggregates import KEPT as FIGURES
from analytics.models import Interval
from callbacks.messages import RETENTION as CALLBACKS

from ..intake.preparing import RETENTION as NOTIFICATIONS
from ..operations.keeping import KEPT as OPERATIONS
from ..operations.results import KEPT as RESULTS
from ..receipts import LOG_RETENTION as CALLS

register = template.Library()


@register.simple_tag
def kept() -> list[tuple[str, str]]:
    """Return what is kept and how long, in words."""
    return [
        ("Notifications, what they said and their attempts", _days(NOTIFICATIONS)),
        ("Calls of providers", _days(CALLS)),
        ("Callbacks to apps", _days(CALLBACKS)),
        ("Figures by the minute", _days(FIGURES[Interval.MINUTE])),
        ("Figures by the hour", _days(FIGURES[Interval.HOUR])),
        ("Figures by the day", "for good"),
        ("Bulk operations", _days(OPERATIONS)),
        ("What became of each of their notifications", _days(RESULTS)),
        ("People, devices and suppressions", "until they are erased or lifted"),
        ("The audit log", "for good"),
    ]


def _days(span: timedelta) -> str:
    return f"{span.days} days"
