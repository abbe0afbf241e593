"""The list of failed notifications, and counts of failures by cause."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pymongo
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from pymongo.errors import PyMongoError

from domain.channels import Channel
from domain.time import utc_now
from monitoring import failure_groups
from notifications import queries
from notifications.actions.assessment import assess_risks
from notifications.models.notification import HAS_FAILED, FailedNotification
from notifyproject.db.match import Match

from .notifications import filters
from .notifications.list import SecondaryListAdmin
from .texts.failure_codes import Explanation, explain_cause
from .texts.labels import CHANNELS, RESEND_RISKS, cause_label, provider_label
from .widgets.charts import Bar, stacked_bars
from .widgets.columns import chip, time_column
from .widgets.filters import RECENT, SPANS, ChoiceFilter
from .widgets.formats import EMPTY
from .widgets.keyset_list import KeysetChangeList
from .widgets.links import page_from
from .widgets.lists import PAGE_SECONDS, TOO_SLOW, is_timeout

DEFAULT_SPAN = "24h"
"""Time range of the groups when no time is chosen, and of the list once a group is."""
DEFAULT_PERIOD = SPANS[DEFAULT_SPAN][1]
MIN_PERIOD = timedelta(minutes=1)
GROUP_FILTERS = (filters.FailedChannelFilter, filters.CauseFilter, filters.ProviderFilter)
"""Filters that together select a group. The others apply to the groups too."""
GROUP_PARAMETERS = frozenset({"channel", "code", "provider"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One row of the table of causes."""

    group: failure_groups.FailureGroup
    channel: str
    icon: str
    code: str
    provider: str
    explanation: Explanation
    count: str
    trend: str  # Comparison with the previous period of the same length; empty if unknown
    bars: Sequence[Bar]  # Of the trend
    url: str  # Selects the group or, if it is chosen, all groups
    is_chosen: bool


class FailedChangeList(KeysetChangeList):
    """A page of failures, and their groups in the same time range."""

    groups: Sequence[GroupRow] = ()
    counted_since: Any = None
    period_label = "last 24 h"
    has_time_range = False
    has_trend = False
    """There is something to compare: failures in the previous period, or in several hours."""

    def url_for_result(self, result: Any) -> str:
        """Return the URL of the notification's page."""
        return page_from(self.opts.model_name, result.pk)

    def get_results(self, request: HttpRequest) -> None:
        """Read one page of failures, and the groups."""
        super().get_results(request)
        if self.skips_rows:
            return
        limits = next(s.limits for s in self.filter_specs if isinstance(s, filters.FailedFilter))
        self.has_time_range, period = any(limits), DEFAULT_PERIOD
        if self.has_time_range and self.params.get("failed_within") != DEFAULT_SPAN:
            self.period_label = "in the selected time range"
        elif self.is_limited_to_recent:
            # The same deliveries as the list, and as a bulk operation on it.
            label, period = SPANS[RECENT]
            self.period_label = label.lower()
        until = limits[1] or utc_now()
        try:
            with pymongo.timeout(PAGE_SECONDS):
                found = failure_groups.group_failures(
                    since=min(limits[0] or until - period, until - MIN_PERIOD),
                    until=until,
                    match=[
                        spec.condition(spec.value())
                        for spec in self.filter_specs
                        if isinstance(spec, ChoiceFilter)
                        and spec.value()
                        and not isinstance(spec, GROUP_FILTERS)
                    ],
                )
        except PyMongoError as error:
            if not is_timeout(error):
                raise
            messages.warning(request, TOO_SLOW)
            return
        self.counted_since = found.counted_since if not found.is_complete else None
        self.has_trend = any(
            group.previous_count or sum(map(bool, group.trend)) > 1 for group in found.groups
        )
        self.groups = [self._row(group, found) for group in found.groups if self._is_shown(group)]

    def _is_shown(self, group: failure_groups.FailureGroup) -> bool:
        """Return whether a group matches the filters. Beside a chosen one, all are shown."""
        chosen = {name: value for name in GROUP_PARAMETERS if (value := self.params.get(name))}
        if chosen.keys() == GROUP_PARAMETERS:
            return True
        own = _parameters_of(group.cause)
        return all(own[name] == value for name, value in chosen.items())

    def _row(
        self, group: failure_groups.FailureGroup, found: failure_groups.FailureGroups
    ) -> GroupRow:
        cause = group.cause
        group_filters = _parameters_of(cause)
        chosen = all(self.params.get(name) == value for name, value in group_filters.items())
        within = {} if self.has_time_range else {"failed_within": DEFAULT_SPAN}
        query = (
            {"remove": list(group_filters)} if chosen else {"new_params": group_filters | within}
        )
        return GroupRow(
            group=group,
            channel=CHANNELS[cause.channel],
            icon=cause.channel.spec.icon,
            code=cause_label(cause.code),
            provider=provider_label(cause.provider) or EMPTY,
            explanation=explain_cause(cause.code, group.outage),
            count=f"{group.count:,}{'' if found.is_complete else '+'}",
            trend=_trend(group) if found.has_previous and self.has_trend else "",
            bars=stacked_bars(group.trend)[0],
            url=self.get_query_string(**query),
            is_chosen=chosen,
        )


def _parameters_of(cause: failure_groups.FailureCause) -> dict[str, str]:
    return {
        "channel": cause.channel.value,
        "code": cause.code,
        "provider": cause.provider or filters.NO_PROVIDER,
    }


def _trend(group: failure_groups.FailureGroup) -> str:
    if not group.previous_count:
        return "new"
    if group.count == group.previous_count:
        return f"unchanged: {group.previous_count:,}"
    return f"{'↑' if group.count > group.previous_count else '↓'} from {group.previous_count:,}"


@admin.register(FailedNotification)
class FailedNotificationAdmin(SecondaryListAdmin):
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
    empty_title = "No failed deliveries"
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
    changelist_class = FailedChangeList
    ordering = ("-failed_at", "-id")
    list_before_template = "console/failures.html"
    failed = time_column("Failed", "failed_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return notifications with a failed channel."""
        return super().get_queryset(request).filter(Match(HAS_FAILED))

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the resend risks of the failed channels."""
        super().prepare_rows(request, rows)
        risks = assess_risks(queries.get_many([row.pk for row in rows]), now=utc_now())
        for row in rows:
            failed = (Channel(d.channel) for d in row.delivery if d.failed_at is not None)
            row.resend_risks = [risks[row.pk, c] for c in failed if (row.pk, c) in risks]

    @admin.display(description="Resend risk")
    def resend_risk(self, row: Any) -> SafeString:
        """Return the resend risk of each failed channel as a chip, with the reason as tooltip."""
        reasons = {risk.kind: risk.reason for risk in row.resend_risks}
        chips = ((chip(*RESEND_RISKS[kind], title=text),) for kind, text in reasons.items())
        return format_html_join(" ", "{}", chips)
