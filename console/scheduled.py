"""The list of what is scheduled or waits: what is due when, why, and how to send it now."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from domain.states import Priority
from domain.time import utc_now
from notifications.models.notification import WaitingNotification
from notifyproject.db.match import Match

from .notifications import actions as notifications_actions
from .notifications import filters
from .notifications.actions import DETAIL
from .notifications.list import NotificationListAdmin
from .notifications.summary import duration
from .wait_reasons import WAIT_REASON_LABELS, WaitReason, find_waits, wait_condition
from .widgets import columns
from .widgets.filters import ChoiceFilter, TimeFilter
from .widgets.labels import CHANNELS
from .widgets.window_list import WindowChangeList

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
WAITING = "admin:notifications_waitingnotification_changelist"


class WaitReasonFilter(ChoiceFilter):
    """By what it waits for, on any of its channels."""

    title = "waits for"
    parameter_name = "reason"
    options = tuple((reason.value, words) for reason, (words, _) in WAIT_REASON_LABELS.items())

    def condition(self, word: str) -> dict[str, Any]:
        """Return that one of the deliveries waits for it."""
        return _any_delivery(wait_condition(WaitReason(word), now=utc_now()))


class DueFilter(TimeFilter):
    """By when it is due."""

    title = "due"
    parameter_name = "due"
    path = "due_at"


class PriorityFilter(filters.PriorityFilter):
    """By priority: here an index serves it."""

    is_unindexed = False


class ChannelFilter(filters.ChannelFilter):
    """By channel: what waits is looked through in its order."""

    is_unindexed = False

    def condition(self, word: str) -> dict[str, Any]:
        """Return that one of the deliveries is on the channel."""
        return _any_delivery({"channel": word})


def _any_delivery(wanted: dict[str, Any]) -> dict[str, Any]:
    """Return that one of the deliveries is like this, so that no index is chosen for it.

    One that is would have all that it finds sorted; the list reads on in its own order instead.
    """
    return {"$nor": [{"delivery": {"$not": {"$elemMatch": wanted}}}]}


@admin.register(WaitingNotification)
class WaitingNotificationAdmin(NotificationListAdmin):
    """What is open, the next to be looked at first."""

    list_display = (
        "due",
        "notification",
        "recipient_display",
        "reason",
        "priority_display",
        "client",
    )
    list_display_links = ("due", "notification")
    empty_title = "Nothing waits"
    list_filter = (
        WaitReasonFilter,
        ChannelFilter,
        filters.TypeFilter,
        PriorityFilter,
        filters.ClientFilter,
        DueFilter,
    )
    ordering = ("due_at", "id")
    # Another one, by channel, would have all that waits read and sorted.
    list_index = "ntf_due"
    scanned_filters = (WaitReasonFilter, ChannelFilter, filters.TypeFilter, filters.ClientFilter)
    actions = ("run_selected", "reschedule_selected", "cancel_selected")

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[WindowChangeList]:
        """Return the kind of list: what waits for something rare is not looked for in all."""
        return WindowChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return what is open; each priority is named, so that one index serves the order."""
        wanted = {
            "priority": {"$in": [priority.value for priority in Priority]},
            "due_at": {"$gte": LONG_AGO},
        }
        return super().get_queryset(request).filter(Match(wanted))

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """Return the order: by due time, also of what a search found, which is little."""
        return self.ordering

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may see notifications."""
        return bool(request.user.has_perm("notifications.view_notification"))

    def has_reschedule_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may send at another time."""
        return request.user.has_perm("notifications.reschedule_notification")

    def change_view(self, request: HttpRequest, object_id: str, *_args: Any) -> HttpResponse:
        """Show the notification on its own page."""
        return HttpResponseRedirect(reverse(DETAIL, args=[object_id]))

    @admin.action(description="Run now", permissions=["reschedule"])
    def run_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        """Send the ticked notifications now, after asking."""
        return notifications_actions.run_on_selected(
            self, request, queryset, notifications_actions.SEND_NOW
        )

    @admin.action(description="Reschedule", permissions=["reschedule"])
    def reschedule_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        """Send the ticked notifications at another time, after asking when."""
        return notifications_actions.run_on_selected(
            self, request, queryset, notifications_actions.RESCHEDULE
        )

    @admin.display(description="Due (UTC)")
    def due(self, row: Any) -> SafeString:
        """When it is looked at next, and how far off that is."""
        now = utc_now()
        seconds_left = (row.due_at - now).total_seconds()
        remaining = (
            f"in {duration(seconds_left)}" if seconds_left > 0 else f"for {duration(-seconds_left)}"
        )
        return columns.two_lines(columns.timestamp(row.due_at), remaining)

    @admin.display(description="Waits for")
    def reason(self, row: Any) -> SafeString:
        """What each open channel waits for, and why."""
        open_waits = find_waits(row.delivery, now=utc_now())
        lines = ((CHANNELS[one.channel], *WAIT_REASON_LABELS[one.reason]) for one in open_waits)
        return format_html(
            '<span class="two-lines">{}</span>',
            format_html_join("", '<span>{}: {}<span class="quiet"> · {}</span></span>', lines),
        )

    @admin.display(description="Priority")
    def priority_display(self, row: Any) -> str:
        """How urgent it is."""
        return str(Priority(row.priority).value).capitalize()
