"""The list of failures: what did not arrive, grouped by cause, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.safestring import SafeString

from notifyproject.db.admin import BoundedChangeList
from notifyproject.db.match import Match

from .. import figures
from ..models import Notification
from ..models.notification import HAS_FAILED
from ..timing import utc_now
from . import columns, filters
from .explanations import CHANNEL_ICONS, CHANNELS, Explanation, code_words, explain
from .notification_list import NotificationListAdmin
from .operation_views import DETAIL

FAILED = "admin:notifications_failednotification_changelist"
LOOK_BACK = timedelta(hours=24)
"""How far the groups look back when no time is chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """Failures with one cause, as they stand above the list."""

    group: figures.FailureGroup
    channel: str
    icon: str
    code: str
    explanation: Explanation
    url: str
    """The list, narrowed to this group; or widened again, if it is."""
    is_chosen: bool


class FailedNotification(Notification):
    """A notification with a failed channel: a list of its own in the menu, with no page of its own.

    Whoever may see notifications may see these.
    """

    class Meta:
        """The same documents under another name."""

        proxy = True
        default_permissions = ()
        verbose_name = "failed delivery"
        verbose_name_plural = "failed deliveries"


class FailedChangeList(BoundedChangeList):
    """The failures, and their groups over the same time and type."""

    groups: Sequence[GroupRow] = ()
    counted_since: Any = None
    span_words = "in the last 24 hours"

    def url_for_result(self, result: Any) -> str:
        """Return where the notification is shown."""
        return reverse(DETAIL, args=[result.pk])

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and the groups."""
        super().get_results(request)
        limits = next(s.limits for s in self.filter_specs if isinstance(s, filters.FailedFilter))
        if any(limits):
            self.span_words = "in the chosen time"
        since, until = limits
        chosen_type = self.params.get("type")
        found = figures.failures(
            since=since or (until or utc_now()) - LOOK_BACK,
            until=until,
            match={"type": chosen_type} if chosen_type else None,
        )
        self.counted_since = found.counted_since
        self.groups = [self._row(group) for group in found.groups]

    def _row(self, group: figures.FailureGroup) -> GroupRow:
        narrowed = {"channel": group.channel.value, "code": group.code}
        chosen = all(self.params.get(name) == value for name, value in narrowed.items())
        url = (
            self.get_query_string(remove=list(narrowed))
            if chosen
            else self.get_query_string(narrowed)
        )
        return GroupRow(
            group=group,
            channel=CHANNELS[group.channel],
            icon=CHANNEL_ICONS[group.channel],
            code=code_words(group.code),
            explanation=explain(group.code),
            url=url,
            is_chosen=chosen,
        )


@admin.register(FailedNotification)
class FailedNotificationAdmin(NotificationListAdmin):
    """Notifications with a failed channel, the newest failure first."""

    list_display = ("failed", "what", "whom", "why", "on_channels", "client")
    list_display_links = ("failed", "what")
    list_filter = (
        filters.FailedChannelFilter,
        filters.CodeFilter,
        filters.TypeFilter,
        filters.ClientFilter,
        filters.FailedFilter,
    )
    ordering = ("-failed_at", "-id")
    list_before_template = "admin/notifications/notification/failure_groups.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return what failed."""
        return super().get_queryset(request).filter(Match(HAS_FAILED))

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[FailedChangeList]:
        """Return the kind of list."""
        return FailedChangeList

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may see notifications."""
        return bool(request.user.has_perm("notifications.view_notification"))

    def change_view(self, request: HttpRequest, object_id: str, *_args: Any) -> HttpResponse:
        """Show the notification on its own page."""
        return HttpResponseRedirect(reverse(DETAIL, args=[object_id]))

    @admin.display(description="Failed (UTC)")
    def failed(self, row: Any) -> SafeString | str:
        """When its last channel failed."""
        return columns.timestamp(row.failed_at)
