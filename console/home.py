"""Home: what needs attention, the backlog, and the metrics of the last 24 hours."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from analytics import incidents
from analytics.models import AlertRule
from domain.states import Channel
from domain.time import utc_now
from monitoring import dashboard as monitoring_dashboard
from monitoring import failure_groups
from monitoring.dashboard import ChannelTotals, Traffic, WorkSummary
from monitoring.failure_groups import FailureCounts
from monitoring.provider_health import Health, ProviderHealth
from monitoring.workers import SWEEP_TASK, scheduled_interval

from .alerts import MAY_ACKNOWLEDGE, evidence_of
from .providers import HEALTH_LABELS, rows
from .texts.failure_codes import explain
from .texts.labels import CHANNEL_ICONS, CHANNELS, code_label, provider_label
from .texts.wait_reasons import WAIT_LABELS
from .widgets.charts import CHART_SIZE, stacked_bars
from .widgets.formats import count_of, duration, latency, percent, runs_every
from .widgets.links import FAILURES, NOTIFICATIONS, PROVIDERS, WAITING
from .widgets.waits import pause_text

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
BLOCKED = frozenset({Health.PAUSED, Health.OPEN})
"""States in which a provider sends nothing."""


class ServiceState(StrEnum):
    """The state of the whole service, from the best to the worst."""

    OPERATIONAL = "operational"
    DEGRADED = "degraded"
    OUTAGE = "outage"


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why the service isn't operational."""

    text: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The state of the service, and its causes."""

    state: ServiceState
    causes: Sequence[Cause] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """A problem that needs an operator."""

    color: str  # ``danger`` for an outage, else ``warning``
    text: str
    advice: str
    list_query: str | None = None  # Query that shows the problem in the list of failures
    is_outage: bool = False  # Due work isn't done


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
            is_outage=True,
        )
    oldest = backlog.oldest_due_at
    if oldest is not None and now - oldest > WORK_OVERDUE:
        yield Issue(
            color="danger",
            text=f"Deliveries overdue by {_ago(oldest, now)}",
            advice="Check that workers run and keep up.",
            is_outage=True,
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


def service_status(
    *,
    issues: Sequence[Issue],
    providers: Sequence[ProviderHealth],
    incidents: Sequence[Mapping[str, Any]],
) -> ServiceStatus:
    """Return the state of the service.

    An outage: a channel has no provider that sends, or due work isn't done. Degraded: a provider
    isn't healthy, or there is another issue or an open incident.
    """
    by_channel: dict[Channel, list[ProviderHealth]] = {}
    for one in providers:
        by_channel.setdefault(one.channel, []).append(one)
    blocked = [
        channel
        for channel, found in by_channel.items()
        if all(provider.health in BLOCKED for provider in found)
    ]
    outages = [Cause(f"{CHANNELS[channel]} isn't sent", _provider_url()) for channel in blocked]
    outages += [Cause(issue.text) for issue in issues if issue.is_outage]
    degraded = [
        Cause(_describe(provider), _provider_url(provider.name))
        for provider in providers
        if provider.health is not Health.HEALTHY
    ]
    others = sum(not issue.is_outage for issue in issues) + len(incidents)
    if others:
        degraded.append(Cause(f"{count_of(others, 'open alert')}, listed below"))
    if outages:
        return ServiceStatus(ServiceState.OUTAGE, [*outages, *degraded])
    state = ServiceState.DEGRADED if degraded else ServiceState.OPERATIONAL
    return ServiceStatus(state, degraded)


def _describe(health: ProviderHealth) -> str:
    if health.pause is not None:
        return pause_text(health.pause)
    name = provider_label(health.name)
    if health.health is Health.FAILING:
        return f"{name}: {health.recent_failures} of {health.recent_attempts} attempts failed"
    return f"{name}: {HEALTH_LABELS[health.health][0].lower()}"


def _provider_url(name: str = "") -> str:
    return reverse(PROVIDERS) + (f"#{name}" if name else "")


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
    provider_rows = rows(now=now)
    open_incidents = incidents.open_incidents(limit=MAX_INCIDENTS)
    rules = AlertRule.objects.in_bulk([incident["rule_id"] for incident in open_incidents])
    found = issues(backlog=backlog, failures=failures, now=now)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return context | {
        "as_of": now,
        "channels": _channels(traffic, midnight),
        "totals": _totals(traffic),
        "chart_size": CHART_SIZE,
        "counted_at": traffic.counted_at,
        "is_stale": traffic.counted_at is None or now - traffic.counted_at > METRICS_STALE_AFTER,
        "status": service_status(
            issues=found,
            providers=[row["health"] for row in provider_rows],
            incidents=open_incidents,
        ),
        "providers": provider_rows,
        "backlog_tiles": _backlog_tiles(backlog, now),
        "held": [
            {
                "label": WAIT_LABELS[reason][0],
                "count": _count(count),
                "url": f"{reverse(WAITING)}?reason={reason.value}",
            }
            for reason, count in sorted(backlog.held.items(), key=lambda one: -one[1])
        ],
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
            {
                **incident,
                "id": incident["_id"],
                "evidence": evidence_of(incident, rules.get(incident["rule_id"])),
            }
            for incident in open_incidents
        ],
        "may_acknowledge": request.user.has_perm(MAY_ACKNOWLEDGE),
        "issues": found,
    }


def refresh_view(request: HttpRequest) -> HttpResponse:
    """Return the part of Home that changes. Raises PermissionDenied."""
    if not request.user.has_perm("notifications.view_notification"):
        raise PermissionDenied
    return render(request, "console/home_state.html", dashboard(request, {}))


urlpatterns = [path("", admin.site.admin_view(refresh_view), name="home_refresh")]


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
            "bars": stacked_bars(
                [hour[channel].sent for hour in traffic.hours.values()],
                [hour[channel].failed for hour in traffic.hours.values()],
            ),
        }
        for channel in Channel
    ]


def _totals(traffic: Traffic) -> dict[str, Any]:
    total = ChannelTotals()
    for tally in traffic.per_channel(since=min(traffic.hours)).values():
        total.add(tally)
    waits = {name: latency(total.latency_quantile(share)) for name, share in _PERCENTILES.items()}
    return {"tally": total, "rate": percent(total.success_rate), "waits": waits}


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
