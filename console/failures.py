"""The list of failures: what did not arrive, grouped by cause, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pymongo
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from pymongo.errors import PyMongoError

from domain.states import Channel, DeliveryStatus
from domain.time import utc_now
from monitoring import failure_groups
from notifications import queries
from notifications.models.notification import HAS_FAILED, FailedNotification
from notifications.resend.assessment import assess_risks
from notifyproject.db.match import Match

from .notifications import filters
from .notifications.actions import DETAIL
from .notifications.list import NotificationListAdmin
from .notifications.summary import PROVIDER_LABELS
from .widgets import columns
from .widgets.columns import EMPTY
from .widgets.filters import ChoiceFilter
from .widgets.keyset_list import KeysetChangeList
from .widgets.labels import CHANNEL_ICONS, CHANNELS, RESEND_RISKS, Explanation, code_label, explain
from .widgets.lists import PAGE_SECONDS, TOO_SLOW, is_timeout

FAILED_LIST = "admin:notifications_failednotification_changelist"
DEFAULT_PERIOD = timedelta(hours=24)
"""How far the groups look back when no time is chosen."""
S = DeliveryStatus
MIN_PERIOD = timedelta(minutes=1)
GROUP_FILTERS = (filters.FailedChannelFilter, filters.CauseFilter, filters.ProviderFilter)
"""Filters that choose a group: the others stay to be seen."""
CHART_SIZE = (96, 24)
"""Width and height of a group's course."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """Failures with one cause, as they stand above the list."""

    group: failure_groups.FailureGroup
    channel: str
    icon: str
    code: str
    provider: str
    explanation: Explanation
    count: str
    trend: str
    """Against the span of the same length before; empty if that is not known."""
    bars: Sequence[tuple[int, int, int]]
    """The course as bars of a drawing 96 wide and 24 high: left edge, top, height."""
    url: str
    """The list, narrowed to this group; or widened again, if it is."""
    is_chosen: bool


class FailedChangeList(KeysetChangeList):
    """The failures, and their groups over the same time, narrowed by all but their own filters."""

    groups: Sequence[GroupRow] = ()
    counted_since: Any = None
    period_label = "in the last 24 hours"

    def url_for_result(self, result: Any) -> str:
        """Return where the notification is shown."""
        return reverse(DETAIL, args=[result.pk])

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and the groups."""
        super().get_results(request)
        if self.is_filters_only:
            return
        limits = next(s.limits for s in self.filter_specs if isinstance(s, filters.FailedFilter))
        if any(limits):
            self.period_label = "in the chosen time"
        until = limits[1] or utc_now()
        try:
            with pymongo.timeout(PAGE_SECONDS):
                found = failure_groups.group_failures(
                    since=min(limits[0] or until - DEFAULT_PERIOD, until - MIN_PERIOD),
                    until=until,
                    match=self._list_conditions(),
                )
        except PyMongoError as error:
            if not is_timeout(error):
                raise
            messages.warning(request, TOO_SLOW)
            return
        self.counted_since = found.counted_since if not found.is_complete else None
        self.groups = [self._row(group, found) for group in found.groups]

    def _list_conditions(self) -> list[dict[str, Any]]:
        """Return what the chosen filters say of the notifications that are grouped."""
        return [
            spec.condition(spec.value())
            for spec in self.filter_specs
            if isinstance(spec, ChoiceFilter)
            and spec.value()
            and not isinstance(spec, GROUP_FILTERS)
        ]

    def _row(
        self, group: failure_groups.FailureGroup, found: failure_groups.FailureGroups
    ) -> GroupRow:
        cause = group.cause
        group_filters = {
            "channel": cause.channel.value,
            "code": cause.code,
            "provider": cause.provider or filters.NO_PROVIDER,
        }
        chosen = all(self.params.get(name) == value for name, value in group_filters.items())
        url = (
            self.get_query_string(remove=list(group_filters))
            if chosen
            else self.get_query_string(group_filters)
        )
        return GroupRow(
            group=group,
            channel=CHANNELS[cause.channel],
            icon=CHANNEL_ICONS[cause.channel],
            code=code_label(cause.code),
            provider=PROVIDER_LABELS.get(cause.provider or "", cause.provider or EMPTY),
            explanation=explain(cause.code),
            count=f"{group.count:,}{'' if found.is_complete else '+'}",
            trend=_trend(group) if found.has_previous else "",
            bars=_bars(group.trend),
            url=url,
            is_chosen=chosen,
        )


def _trend(group: failure_groups.FailureGroup) -> str:
    """Return how a group's count compares with the span before, in words."""
    if not group.previous_count:
        return "new"
    if group.count == group.previous_count:
        return f"as before: {group.previous_count:,}"
    return f"{'up' if group.count > group.previous_count else 'down'} from {group.previous_count:,}"


def _bars(counts: Sequence[int]) -> list[tuple[int, int, int]]:
    highest = max(counts, default=0) or 1
    step = CHART_SIZE[0] // len(counts)
    heights = [max(round(count * CHART_SIZE[1] / highest), 1 if count else 0) for count in counts]
    return [(n * step, CHART_SIZE[1] - height, height) for n, height in enumerate(heights)]


@admin.register(FailedNotification)
class FailedNotificationAdmin(NotificationListAdmin):
    """Notifications with a failed channel, the newest failure first."""

    list_display = (
        "failed",
        "notification",
        "recipient_display",
        "failure_cause",
        "resend_risk",
        "channels_display",
        "client",
    )
    list_display_links = ("failed", "notification")
    empty_title = "Nothing has failed"
    list_filter = (
        filters.FailedChannelFilter,
        filters.CauseFilter,
        filters.ProviderFilter,
        filters.TypeFilter,
        filters.CategoryFilter,
        filters.PriorityFilter,
        filters.ClientFilter,
        filters.AttemptsFilter,
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

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Give each row also the verdicts on what failed of it."""
        super().prepare_rows(request, rows)
        risks = assess_risks(queries.get_many([row.pk for row in rows]), now=utc_now())
        for row in rows:
            failed = (Channel(d.channel) for d in row.delivery if d.status == S.FAILED)
            row.resend_risks = [one for c in failed if (one := risks.get((row.pk, c))) is not None]

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

    @admin.display(description="A resend is")
    def resend_risk(self, row: Any) -> SafeString:
        """What sending again would be, for each channel that failed."""
        reasons = {one.kind: one.reason for one in row.resend_risks}
        chips = ((columns.chip(*RESEND_RISKS[kind], title=why),) for kind, why in reasons.items())
        return format_html_join(" ", "{}", chips)
