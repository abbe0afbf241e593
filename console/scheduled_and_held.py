"""The list of open notifications, with the due time and the reason of each wait."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from domain.states import Priority
from domain.time import utc_now
from domain.wait_reasons import OUTAGES, WaitReason, find_waits, wait_condition
from notifications.models.notification import WaitingNotification
from notifyproject.db.fields import choices
from notifyproject.db.match import Match
from notifyproject.db.stored_match import ago

from .notifications import filters
from .notifications.actions import selected_action
from .notifications.list import SecondaryListAdmin
from .texts.labels import CHANNELS, options_of
from .texts.staff_actions import RESCHEDULE, SEND_NOW
from .texts.wait_reasons import WAIT_LABELS
from .widgets import columns
from .widgets.actions import permission_check
from .widgets.filters import choice_filter, time_filter
from .widgets.formats import duration, timestamp
from .widgets.waits import find_pauses, wait_text
from .widgets.window_list import WindowChangeList

NEXT_CHECK = OUTAGES | {WaitReason.RATE_LIMITED, WaitReason.DECRYPTION_FAILED}
"""Reasons without a known end: the due time is only the next check."""
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def _any_delivery(condition: dict[str, Any]) -> dict[str, Any]:
    """Return a condition that any delivery meets, written so that MongoDB uses no index."""
    # With an index, MongoDB would sort all matches. Without, it reads the list in order.
    return {"$nor": [{"delivery": {"$not": {"$elemMatch": condition}}}]}


def _now() -> datetime:
    # In a saved view, that is the moment of each count.
    return ago(timedelta(), now=utc_now())


WaitReasonFilter = choice_filter(
    "wait reason",
    options_of(WAIT_LABELS),
    parameter="reason",
    condition=lambda value: _any_delivery(wait_condition(WaitReason(value), now=_now())),
)
ChannelFilter = choice_filter(
    "channel", filters.CHANNEL_OPTIONS, condition=lambda value: _any_delivery({"channel": value})
)
PriorityFilter = choice_filter("priority", choices(Priority))


@admin.register(WaitingNotification)
class WaitingNotificationAdmin(SecondaryListAdmin):
    """Open notifications, the next due first."""

    list_display = (
        "due",
        "notification",
        "recipient_display",
        "reason",
        "priority_display",
        "client",
    )
    list_display_links = ("due", "notification")
    empty_title = "Nothing scheduled or held"
    list_filter = (
        WaitReasonFilter,
        ChannelFilter,
        filters.TypeFilter,
        PriorityFilter,
        filters.ClientFilter,
        time_filter("due", "due_at"),
    )
    changelist_class = WindowChangeList
    ordering = ("due_at", "id")
    # With an index by channel, MongoDB would read and sort all open notifications.
    list_index = "ntf_due"
    scanned_filters = (WaitReasonFilter, ChannelFilter, filters.TypeFilter, filters.ClientFilter)
    actions = ("run_selected", "reschedule_selected", "cancel_selected")
    run_selected = selected_action(SEND_NOW, "reschedule")
    reschedule_selected = selected_action(RESCHEDULE, "reschedule")
    has_reschedule_permission = permission_check("notifications.reschedule_notification")
    priority_display = columns.label_column("Priority", "priority", dict(choices(Priority)))

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return open notifications. Naming each priority lets one index serve the order."""
        condition = {
            "priority": {"$in": [priority.value for priority in Priority]},
            "due_at": {"$gte": LONG_AGO},
        }
        return super().get_queryset(request).filter(Match(condition))

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """Return the order by due time. Search results are few, so they have the same order."""
        return self.ordering

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the pauses of providers, which hold deliveries."""
        super().prepare_rows(request, rows)
        pauses = find_pauses() if rows else {}
        for row in rows:
            row.pauses = pauses

    @admin.display(description="Due")
    def due(self, row: Any) -> SafeString:
        """Return the due time and the time until or since then."""
        now = utc_now()
        left = (row.due_at - now).total_seconds()
        waits = find_waits(row.delivery, now=now)
        if left > 0 and waits and waits[0].reason in NEXT_CHECK:
            return columns.two_lines("Unknown", f"next check in {duration(left)}")
        relative = f"in {duration(left)}" if left > 0 else f"{duration(-left)} ago"
        return columns.two_lines(timestamp(row.due_at), relative)

    @admin.display(description="Status")
    def reason(self, row: Any) -> SafeString:
        """Return the reason why each open channel waits."""
        now = utc_now()
        lines = (
            (
                CHANNELS[wait.channel],
                wait_text(
                    wait.reason,
                    wait.channel,
                    wait.until,
                    goal=row.plan_until,
                    limit=wait.limit,
                    pauses=row.pauses,
                    now=now,
                ),
            )
            for wait in find_waits(row.delivery, now=now)
        )
        return format_html(
            '<span class="two-lines">{}</span>',
            format_html_join("", "<span>{}: {}</span>", lines),
        )
