"""Home: the status of the service, what needs attention, and the figures of the day."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from unfold.dataclasses import SearchResult

from analytics import incidents
from domain.states import Channel
from domain.time import utc_now
from monitoring import dashboard as monitoring_dashboard
from monitoring import failure_groups
from monitoring.dashboard import WorkSummary
from monitoring.failure_groups import FailureCounts
from notifications import queries
from recipients.masking import can_see_addresses, mask_address

from .alerts import MAY_ACKNOWLEDGE
from .failures import FAILED_LIST
from .notifications import search
from .notifications.actions import DETAIL, LIST
from .notifications.summary import duration
from .providers import rows, short_duration
from .widgets import names
from .widgets.labels import CHANNEL_ICONS, CHANNELS, code_label, explain

SWEEP_OVERDUE = timedelta(minutes=3)
"""The sweep runs four times a minute."""
WORK_OVERDUE = timedelta(minutes=5)
"""A worker takes what is due within seconds."""
MANY_FAILURES = 10
"""Failures of one cause in a day that are worth a look."""
RECENT = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """Something a person should do."""

    color: str
    """``danger``: nothing goes on without it. ``warning``: it should be looked at."""
    text: str
    advice: str
    list_query: str | None = None
    """Where to see it: the query of the list of failures."""


def issues(*, backlog: WorkSummary, failures: FailureCounts, now: datetime) -> list[Issue]:
    """Return what needs a person, the most urgent first."""
    found = [*_backlog_issues(backlog, now), *_failure_issues(failures, now)]
    return sorted(found, key=lambda issue: issue.color != "danger")


def _backlog_issues(backlog: WorkSummary, now: datetime) -> Iterator[Issue]:
    sweep = backlog.last_sweep
    if sweep is None or now - sweep > SWEEP_OVERDUE:
        ago = f"for {duration((now - sweep).total_seconds())}" if sweep else "yet"
        yield Issue(
            color="danger",
            text=f"No sweep {ago}: what no hint reaches waits.",
            advice="Is beat running, and a worker? Sends that need no sweep go on.",
        )
    oldest = backlog.oldest_due_at
    if oldest is not None and now - oldest > WORK_OVERDUE:
        yield Issue(
            color="danger",
            text=f"Work has been due for {duration((now - oldest).total_seconds())}.",
            advice="Are the workers alive, and do they keep up? Look at their logs.",
        )


def _failure_issues(failures: FailureCounts, now: datetime) -> Iterator[Issue]:
    for group in failures.groups:
        explanation = explain(group.code)
        is_recent = now - group.last_at <= RECENT
        if not (explanation.needs_operator or (is_recent and group.count >= MANY_FAILURES)):
            continue
        times = "time" if group.count == 1 else "times"
        yield Issue(
            color="danger" if explanation.needs_operator and is_recent else "warning",
            text=f"{CHANNELS[group.channel]} failed {group.count:,} {times} in 24 hours: "
            f"{explanation.meaning} ({code_label(group.code).lower()}).",
            advice=explanation.advice,
            list_query=f"channel={group.channel.value}&code={group.code}",
        )


SEARCH_LIMIT = 20
METRICS_STALE_AFTER = timedelta(minutes=5)
"""They are counted every minute."""
MAX_INCIDENTS = 10
BACKLOG_COUNT_CAP = 1_000
"""What waits is counted up to here: that it is a thousand or more says enough at a glance."""
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_CHART_COLORS = ("--chart-delivered", "--chart-sent", "--chart-failed")
_GREY = "#8891a0"


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Return the home page's context: figures for those who may see notifications."""
    context["title"] = "Home"
    if not request.user.has_perm("notifications.view_notification"):
        return context
    now = utc_now()
    traffic = monitoring_dashboard.traffic(now=now)
    failures = failure_groups.count_failures(
        since=now - timedelta(hours=24), match=monitoring_dashboard.NOT_TEST
    )
    backlog = monitoring_dashboard.summarize_work(now=now, cap=BACKLOG_COUNT_CAP)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return context | {
        "as_of": now,
        "channels": _channels(traffic, midnight),
        "totals": _totals(traffic),
        "chart": _bars(traffic, tuple(Channel), _OPTIONS),
        "charts": _charts(traffic),
        "counted_at": traffic.counted_at,
        "is_stale": traffic.counted_at is None or now - traffic.counted_at > METRICS_STALE_AFTER,
        "providers": rows(now=now),
        "backlog_tiles": _backlog_tiles(backlog, now),
        "errors": _errors(failures),
        "errors_since": failures.counted_since,
        "incidents": [
            {**one, "id": one["_id"]} for one in incidents.open_incidents(limit=MAX_INCIDENTS)
        ],
        "may_acknowledge": request.user.has_perm(MAY_ACKNOWLEDGE),
        "issues": issues(backlog=backlog, failures=failures, now=now),
    }


def search_notifications(request: HttpRequest, _term: str) -> list[SearchResult]:
    """Return the notifications a text in the command palette means, the newest first."""
    if not request.user.has_perm("notifications.view_notification"):
        return []
    # As it was typed: keys differ by case.
    text = request.GET.get("s", "").strip()
    ids = sorted(search.find_ids(text, cap=SEARCH_LIMIT), reverse=True)[:SEARCH_LIMIT]
    unmasked = can_see_addresses(request.user)
    found = {document["_id"]: document for document in queries.get_many(ids)}
    types = names.type_names({document["type"] for document in found.values()})
    return [
        _result(found[one], type_name=types[found[one]["type"]], unmasked=unmasked)
        for one in ids
        if one in found
    ]


def _result(document: Mapping[str, Any], *, type_name: str, unmasked: bool) -> SearchResult:
    recipient = document["recipient"]
    address = recipient.get("email") or recipient.get("phone") or ""
    shown = address if unmasked or not address else mask_address(address)
    return SearchResult(
        title=f"{type_name} {document.get('entity_id') or document['_id']}",
        description=" · ".join(
            part
            for part in (document.get("user_id"), shown, f"{document['created_at']:%d %b %H:%M}")
            if part
        ),
        link=reverse(DETAIL, args=[document["_id"]]),
        icon="notifications",
    )


def _channels(traffic: monitoring_dashboard.Traffic, midnight: datetime) -> list[dict[str, Any]]:
    """Return the channels that had anything to do, with today's and 24 hours' figures."""
    today, day = traffic.per_channel(since=midnight), traffic.per_channel(since=min(traffic.hours))
    return [
        {
            "name": CHANNELS[channel],
            "icon": CHANNEL_ICONS[channel],
            "today": today[channel],
            "day": day[channel],
            "rate": _percent(day[channel].success_rate),
            "p95": short_duration(day[channel].latency_quantile(0.95)),
            "is_idle": not day[channel].total,
        }
        for channel in Channel
    ]


def _totals(traffic: monitoring_dashboard.Traffic) -> dict[str, Any]:
    total = monitoring_dashboard.ChannelTotals()
    for tally in traffic.per_channel(since=min(traffic.hours)).values():
        total.add(tally)
    waits = {
        name: short_duration(total.latency_quantile(share)) for name, share in _PERCENTILES.items()
    }
    return {"tally": total, "rate": _percent(total.success_rate), "waits": waits}


def _charts(traffic: monitoring_dashboard.Traffic) -> list[dict[str, Any]]:
    """Return the channels that had anything to do, each with its course over the day."""
    day = traffic.per_channel(since=min(traffic.hours))
    busy = [channel for channel in Channel if day[channel].total]
    if len(busy) == 1:
        # The chart of all channels is that of the only one.
        return []
    return [
        {
            "name": CHANNELS[channel],
            "icon": CHANNEL_ICONS[channel],
            "chart": _bars(traffic, (channel,), _OPTIONS_WITHOUT_LEGEND),
        }
        for channel in busy
    ]


def _bars(
    traffic: monitoring_dashboard.Traffic, channels: Sequence[Channel], options: str
) -> dict[str, str]:
    """Return the bars of the last 24 hours as the chart component wants them."""
    totals = []
    for by_channel in traffic.hours.values():
        total = monitoring_dashboard.ChannelTotals()
        for channel in channels:
            total.add(by_channel[channel])
        totals.append(total)
    bars = {
        "Delivered": [tally.delivered for tally in totals],
        "Sent, no word yet": [tally.sent - tally.delivered for tally in totals],
        "Failed": [tally.failed for tally in totals],
    }
    datasets = [
        {"label": label, "data": values, "backgroundColor": f"var({color})", "stack": "one"}
        for (label, values), color in zip(bars.items(), _CHART_COLORS, strict=True)
    ]
    labels = [f"{hour:%H}" for hour in traffic.hours]
    return {"data": json.dumps({"labels": labels, "datasets": datasets}), "options": options}


def _options(legend: Mapping[str, Any]) -> str:
    return json.dumps(
        {
            "animation": False,
            "responsive": True,
            "maintainAspectRatio": False,
            "interaction": {"mode": "index", "intersect": False},
            "plugins": {"legend": legend},
            "scales": {
                "x": {"stacked": True, "grid": {"display": False}, "ticks": {"color": _GREY}},
                "y": {
                    "stacked": True,
                    "beginAtZero": True,
                    "ticks": {"precision": 0, "color": _GREY},
                },
            },
        }
    )


_OPTIONS = _options({"position": "bottom", "labels": {"color": _GREY, "boxWidth": 12}})
_OPTIONS_WITHOUT_LEGEND = _options({"display": False})


def _backlog_tiles(
    backlog: monitoring_dashboard.WorkSummary, now: datetime
) -> list[dict[str, str]]:
    notifications = reverse(LIST)
    oldest = backlog.oldest_due_at
    sweep = backlog.last_sweep
    return [
        {
            "label": "Due now",
            "value": _count(backlog.due),
            "note": f"oldest for {duration((now - oldest).total_seconds())}" if oldest else "",
            "url": f"{notifications}?status=queued",
        },
        {
            "label": "Retry queue",
            "value": _count(backlog.retrying),
            "note": "wait for another try" if backlog.retrying else "",
            "url": f"{notifications}?status=retrying",
        },
        {
            "label": "Outcome unknown",
            "value": _count(backlog.unknown),
            "note": "they may have gone" if backlog.unknown else "",
            "url": f"{notifications}?delivery_status=unknown",
        },
        {
            "label": "Scheduled",
            "value": _count(backlog.scheduled),
            "note": "",
            "url": f"{notifications}?status=created",
        },
        {
            "label": "Last sweep",
            "value": f"{duration((now - sweep).total_seconds())} ago" if sweep else "never",
            "note": "it comes every minute",
            "url": "",
        },
    ]


def _errors(failures: failure_groups.FailureCounts) -> list[dict[str, Any]]:
    failed = reverse(FAILED_LIST)
    return [
        {
            "group": group,
            "channel": CHANNELS[group.channel],
            "icon": CHANNEL_ICONS[group.channel],
            "code": code_label(group.code),
            "meaning": explain(group.code).meaning,
            "url": f"{failed}?channel={group.channel.value}&code={group.code}",
        }
        for group in failures.groups
    ]


def _percent(rate: float | None) -> str:
    """Return a share as a percentage that is 100 only if it is."""
    if rate is None:
        return "-"
    return "100 %" if rate == 1 else f"{min(rate * 100, 99.9):.1f} %"


def _count(number: int) -> str:
    return f"{number:,}" if number < BACKLOG_COUNT_CAP else f"{number:,} or more"
