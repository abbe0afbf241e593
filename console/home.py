"""Home: what needs attention, the backlog, and the metrics of the last 24 hours."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from analytics import incidents
from domain.states import Channel
from domain.time import utc_now
from monitoring import dashboard as monitoring_dashboard
from monitoring import failure_groups
from monitoring.dashboard import ChannelTotals, Traffic, WorkSummary
from monitoring.failure_groups import FailureCounts
from monitoring.workers import SWEEP_TASK, scheduled_interval

from .alerts import MAY_ACKNOWLEDGE
from .providers import rows
from .texts.failure_codes import explain
from .texts.labels import CHANNEL_ICONS, CHANNELS, code_label
from .widgets.formats import count_of, duration, latency, percent, runs_every
from .widgets.links import FAILURES, NOTIFICATIONS

SWEEP_OVERDUE = timedelta(minutes=3)  # Maximum age of the last sweep
WORK_OVERDUE = timedelta(minutes=5)
"""Maximum age of a due delivery. Normally, a worker claims it within seconds."""
MANY_FAILURES = 10  # Failures of one cause in a day, from which they are an issue
RECENT = timedelta(hours=1)
METRICS_STALE_AFTER = timedelta(minutes=5)
"""Maximum age of the metrics."""
MAX_INCIDENTS = 10
BACKLOG_COUNT_CAP = 1_000
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_CHART_COLORS = ("--chart-delivered", "--chart-sent", "--chart-failed")
_GREY = "#8891a0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """A problem that needs an operator."""

    color: str  # ``danger`` for an outage, else ``warning``
    text: str
    advice: str
    list_query: str | None = None  # Query that shows the problem in the list of failures


def issues(*, backlog: WorkSummary, failures: FailureCounts, now: datetime) -> list[Issue]:
    """Return the problems that need an operator, the most urgent first."""
    found = [*_backlog_issues(backlog, now), *_failure_issues(failures, now)]
    return sorted(found, key=lambda issue: issue.color != "danger")


def _backlog_issues(backlog: WorkSummary, now: datetime) -> Iterator[Issue]:
    sweep = backlog.last_sweep
    if sweep is None or now - sweep > SWEEP_OVERDUE:
        since = f" for {_ago(sweep, now)}" if sweep else ""
        yield Issue(
            color="danger",
            text=f"No sweep{since}: missed wake-ups aren't picked up.",
            advice="Check Celery beat and the workers.",
        )
    oldest = backlog.oldest_due_at
    if oldest is not None and now - oldest > WORK_OVERDUE:
        yield Issue(
            color="danger",
            text=f"Deliveries overdue by {_ago(oldest, now)}",
            advice="Check that workers run and keep up.",
        )


def _failure_issues(failures: FailureCounts, now: datetime) -> Iterator[Issue]:
    for group in failures.groups:
        explanation = explain(group.code)
        is_recent = now - group.last_at <= RECENT
        if not (explanation.needs_operator or (is_recent and group.count >= MANY_FAILURES)):
            continue
        yield Issue(
            color="danger" if explanation.needs_operator and is_recent else "warning",
            text=f"{CHANNELS[group.channel]}: {count_of(group.count, 'failure')} in 24 h, "
            f"{explanation.meaning}",
            advice=explanation.advice,
            list_query=f"channel={group.channel.value}&code={group.code}",
        )


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """Return the context of Home. Only users who may view notifications see metrics."""
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
        "errors": [
            {
                "group": group,
                "channel": CHANNELS[group.channel],
                "icon": CHANNEL_ICONS[group.channel],
                "code": code_label(group.code),
                "meaning": explain(group.code).meaning,
                "url": f"{reverse(FAILURES)}?channel={group.channel.value}&code={group.code}",
            }
            for group in failures.groups
        ],
        "errors_since": failures.counted_since,
        "incidents": [
            {**incident, "id": incident["_id"]}
            for incident in incidents.open_incidents(limit=MAX_INCIDENTS)
        ],
        "may_acknowledge": request.user.has_perm(MAY_ACKNOWLEDGE),
        "issues": issues(backlog=backlog, failures=failures, now=now),
    }


def _channels(traffic: Traffic, midnight: datetime) -> list[dict[str, Any]]:
    today, day = traffic.per_channel(since=midnight), traffic.per_channel(since=min(traffic.hours))
    return [
        {
            "name": CHANNELS[channel],
            "icon": CHANNEL_ICONS[channel],
            "today": today[channel],
            "day": day[channel],
            "rate": percent(day[channel].success_rate),
            "p95": latency(day[channel].latency_quantile(0.95)),
            "is_idle": not day[channel].total,
        }
        for channel in Channel
    ]


def _totals(traffic: Traffic) -> dict[str, Any]:
    total = ChannelTotals()
    for tally in traffic.per_channel(since=min(traffic.hours)).values():
        total.add(tally)
    waits = {name: latency(total.latency_quantile(share)) for name, share in _PERCENTILES.items()}
    return {"tally": total, "rate": percent(total.success_rate), "waits": waits}


def _charts(traffic: Traffic) -> list[dict[str, Any]]:
    """Return a chart for each channel with traffic, or none if only one channel has any."""
    day = traffic.per_channel(since=min(traffic.hours))
    busy = [channel for channel in Channel if day[channel].total]
    if len(busy) == 1:
        return []
    return [
        {
            "name": CHANNELS[channel],
            "icon": CHANNEL_ICONS[channel],
            "chart": _bars(traffic, (channel,), _OPTIONS_WITHOUT_LEGEND),
        }
        for channel in busy
    ]


def _bars(traffic: Traffic, channels: Sequence[Channel], options: str) -> dict[str, str]:
    totals = []
    for by_channel in traffic.hours.values():
        total = ChannelTotals()
        for channel in channels:
            total.add(by_channel[channel])
        totals.append(total)
    bars = {
        "Delivered": [tally.delivered for tally in totals],
        "Sent, no receipt": [tally.sent - tally.delivered for tally in totals],
        "Failed": [tally.failed for tally in totals],
    }
    datasets = [
        {"label": label, "data": values, "backgroundColor": f"var({color})", "stack": "total"}
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


def _backlog_tiles(backlog: WorkSummary, now: datetime) -> list[dict[str, str]]:
    oldest, sweep = backlog.oldest_due_at, backlog.last_sweep
    tiles = (
        ("Queued", _count(backlog.due), f"oldest {_ago(oldest, now)}" if oldest else "", "queued"),
        ("Retrying", _count(backlog.retrying), "", "retrying"),
        ("Unknown", _count(backlog.unknown), "may have been sent" if backlog.unknown else "", ""),
        ("Scheduled and held", _count(backlog.scheduled), "", "created"),
    )
    found = [
        {
            "label": label,
            "value": value,
            "note": note,
            "url": f"{reverse(NOTIFICATIONS)}?"
            + (f"status={status}" if status else "delivery_status=unknown"),
        }
        for label, value, note, status in tiles
    ]
    last = f"{_ago(sweep, now)} ago" if sweep else "never"
    note = runs_every(scheduled_interval(SWEEP_TASK))
    return [*found, {"label": "Last sweep", "value": last, "note": note, "url": ""}]


def _ago(at: datetime, now: datetime) -> str:
    return duration((now - at).total_seconds())


def _count(number: int) -> str:
    return f"{number:,}" if number < BACKLOG_COUNT_CAP else f"{number:,}+"
