"""Home: what needs attention, the backlog, and the metrics of the last 24 hours."""

from collections import Counter
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse

from domain.channels import Channel
from domain.errors import FailureCode
from domain.time import utc_now
from domain.wait_reasons import OUTAGES
from monitoring import dashboard as monitoring_dashboard
from monitoring import failure_groups, incidents
from monitoring.dashboard import ChannelTotals, Traffic, WorkSummary
from monitoring.models import AlertRule
from monitoring.provider_health import ProviderHealth
from monitoring.workers import SWEEP_TASK, scheduled_interval
from notifications.catalog import designs
from rooms import registry as rooms

from . import problems
from .alerts import MAY_ACKNOWLEDGE, evidence_of
from .providers import MAY_PAUSE, rows
from .texts.failure_codes import explain_cause
from .texts.labels import CHANNELS, cause_label
from .texts.wait_reasons import WAIT_LABELS
from .widgets.charts import CHART_SIZE, stacked_bars
from .widgets.formats import count_of, latency, percent, runs_every
from .widgets.links import FAILURES, NOTIFICATIONS, WAITING, may_open

METRICS_STALE_AFTER = timedelta(minutes=5)
"""Maximum age of the metrics."""
MAX_INCIDENTS = 10
BACKLOG_COUNT_CAP = 1_000
_PERCENTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


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
    since = now - problems.RECENT
    recent = failure_groups.count_failures(
        since=since,
        match={**monitoring_dashboard.NOT_TEST, "source": {"$ne": monitoring_dashboard.EXAMPLES}},
    )
    backlog = monitoring_dashboard.summarize_work(now=now, cap=BACKLOG_COUNT_CAP)
    provider_rows = rows(now=now)
    open_incidents = incidents.open_incidents(limit=MAX_INCIDENTS)
    rules = AlertRule.objects.in_bulk([incident["rule_id"] for incident in open_incidents])
    healths: list[ProviderHealth] = [row["health"] for row in provider_rows]
    outages = problems.find_outages(
        healths, work=backlog, failures=failures, incidents=open_incidents, now=now
    )
    design = designs.current()
    found = problems.issues(
        backlog=backlog,
        failures=recent,
        sent=monitoring_dashboard.recently_sent(since=since, now=now),
        out={outage.channel for outage in outages},
        rooms=rooms.find_rooms().values(),
        brands={name: design.brand(name) for name in design.brands},
        now=now,
    )
    mutes = {mute["_id"]: mute for mute in incidents.mutes(now=now)}
    shown = [problem for problem in found if problem.key not in mutes or not problem.is_mutable]
    matters = problems.join_matters(
        outages=outages,
        incidents=open_incidents,
        rules=rules,
        issues=shown,
        failures=recent,
    )
    stalled = [issue for alert in matters.alerts for issue in alert.issues if issue.is_outage]
    expired = sum(group.count for group in failures.groups if group.code == FailureCode.EXPIRED)
    ended = Counter(
        {
            channel: counts.sent + counts.failed
            for channel, counts in traffic.per_channel(since=min(traffic.hours)).items()
        }
    )
    for group in failures.groups:
        # The metrics count these as withheld.
        if group.code == FailureCode.EXPIRED:
            ended[group.channel] += group.count
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return context | {
        "as_of": now,
        "channels": _channels(traffic, midnight),
        "totals": _totals(traffic),
        "chart_size": CHART_SIZE,
        "counted_at": traffic.counted_at,
        "is_stale": traffic.counted_at is None or now - traffic.counted_at > METRICS_STALE_AFTER,
        "status": problems.service_status(
            issues=[*stalled, *matters.issues],
            providers=healths,
            incidents=[
                alert.incident
                for alert in matters.alerts
                if not alert.incident.get("acknowledged_at")
                and not any(issue.is_outage for issue in alert.issues)
            ],
        ),
        "outages": [
            {
                **{field.name: getattr(outage, field.name) for field in fields(outage)},
                "color": outage.color,
                "incident": outage.incident and {**outage.incident, "pk": outage.incident["_id"]},
                "consequences": [{**each, "pk": each["_id"]} for each in outage.consequences],
                "unacknowledged": outage.unacknowledged,
            }
            for outage in matters.outages
        ],
        "expired": expired,
        "expired_url": f"{reverse(FAILURES)}?code=expired&failed_within=24h",
        "muted": [
            mutes[problem.key] | {"text": problem.text, "key": problem.key}
            for problem in found
            if problem.key in mutes and problem.is_mutable
        ],
        "providers": provider_rows,
        "backlog_tiles": _backlog_tiles(backlog, now),
        "held_over": _held_over(backlog),
        "held": [
            {
                # The panel's title says that they are held.
                "label": WAIT_LABELS[reason][0].removeprefix("Held: ").capitalize(),
                "count": _count(count),
                "url": f"{reverse(WAITING)}?reason={reason.value}",
            }
            for reason, count in sorted(backlog.held.items(), key=lambda pair: -pair[1])
        ],
        "errors": [
            {
                "group": group,
                "channel": CHANNELS[group.channel],
                "icon": group.channel.spec.icon,
                "code": cause_label(group.code),
                "meaning": explain_cause(group.code, group.outage).meaning,
                "share": _share(group.count, ended[group.channel]),
                "url": f"{reverse(FAILURES)}?channel={group.channel.value}&code={group.code}"
                "&failed_within=24h",
            }
            for group in failures.groups
        ],
        "errors_since": failures.counted_since,
        "incidents": [
            {
                **alert.incident,
                "id": alert.incident["_id"],
                "issues": alert.issues,
                "evidence": [
                    link
                    for link in evidence_of(alert.incident, rules.get(alert.incident["rule_id"]))
                    if may_open(request, link.url)
                ],
            }
            for alert in matters.alerts
        ],
        "may_acknowledge": request.user.has_perm(MAY_ACKNOWLEDGE),
        "issues": matters.issues,
        "may_pause": request.user.has_perm(MAY_PAUSE),
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
            "icon": channel.spec.icon,
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
    ended = total.sent + total.failed
    return {
        "tally": total,
        "rate": percent(total.success_rate),
        "waits": waits,
        "ended": f"{ended:,}" if ended else "",
        "failed_share": f"{_share(total.failed, ended)} of {ended:,}" if ended else "",
        **{
            name: f"{getattr(total, name):,}"
            for name in ("sent", "delivered", "failed", "accepted")
        },
    }


def _share(count: int, total: int) -> str:
    return percent(min(count / total, 1)) if total else ""


def _backlog_tiles(backlog: WorkSummary, now: datetime) -> list[dict[str, str]]:
    oldest, sweep = backlog.oldest_due_at, backlog.last_sweep
    tiles = (
        (
            "Queued",
            _count(backlog.due),
            f"oldest {problems.ago(oldest, now)}" if oldest else "",
            "queued",
        ),
        ("Retrying", _count(backlog.retrying), "tried before", "retrying"),
        ("Unknown", _count(backlog.unknown), "may have been sent" if backlog.unknown else "", ""),
        ("Not tried yet", _count(backlog.scheduled), "scheduled or held", "created"),
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
    last = f"{problems.ago(sweep, now)} ago" if sweep else "never"
    note = runs_every(scheduled_interval(SWEEP_TASK))
    return [*found, {"label": "Last sweep", "value": last, "note": note, "url": ""}]


def _held_over(backlog: WorkSummary) -> str:
    """Return how many deliveries an outage held; empty if none. Home says so once it has ended."""
    held = sum(count for reason, count in backlog.held.items() if reason in OUTAGES)
    if held >= BACKLOG_COUNT_CAP:
        return f"{_count(held)} deliveries"
    return count_of(held, "delivery") if held else ""


def _count(number: int) -> str:
    return f"{number:,}" if number < BACKLOG_COUNT_CAP else f"{number:,}+"
