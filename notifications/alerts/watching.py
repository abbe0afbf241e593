"""What breaks a rule now. Each look is served by an index, or asks Valkey once."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from analytics.incidents import Finding
from analytics.models import AlertKind
from domain.states import Channel, DeliveryStatus
from notifyproject.db.collections import collection
from providers.registry import providers_for

from .. import backlog, breaker, pausing
from ..recovery import last_sweep
from .rules import Rule

OUR_TYPE = "system_alert"
"""What operators are told with. Its own failures raise no alert: that would go round for ever."""
COUNTED = 1_000
"""Notifications that failures are counted from; a threshold is below that."""
CALLBACKS_SHOWN = 20
SANDBOX = "sandbox-"
"""What an API client in test mode sends goes to providers of such names: nobody is woken for it."""


def findings(rule: Rule, *, now: datetime) -> list[Finding]:
    """Return what breaks a rule now."""
    return list(_LOOKS[rule.kind](rule, now))


def _failures(rule: Rule, now: datetime) -> Iterator[Finding]:
    found = _failed(rule, since=now - timedelta(minutes=rule.window_minutes))
    if found <= rule.threshold:
        return
    what = " ".join(part for part in (rule.channel, rule.type) if part)
    number = f"{found:,}" if found < COUNTED else f"{COUNTED:,} or more"
    yield _finding(
        rule,
        "all",
        title=f"{number} final failures{f' of {what}' if what else ''}",
        detail=f"In the last {rule.window_minutes} minutes {number} deliveries failed for good. "
        f"More than {rule.threshold} raise this alert.",
        broken=rule.channel or _all_of_one_channel(rule, now),
    )


def _failed(rule: Rule, *, since: datetime) -> int:
    return sum(_failed_by_channel(rule, since=since).values())


def _failed_by_channel(rule: Rule, *, since: datetime) -> Mapping[str, int]:
    """Return how many deliveries failed for good since then, by channel; never those of tests."""
    match: dict[str, Any] = {
        "failed_at": {"$gte": since},
        "is_test": {"$ne": True},
        "type": rule.type if rule.type is not None else {"$ne": OUR_TYPE},
    }
    failed: dict[str, Any] = {
        "delivery.status": DeliveryStatus.FAILED.value,
        "delivery.failed_at": {"$gte": since},
    }
    if rule.channel is not None:
        failed["delivery.channel"] = rule.channel
    found = collection("notifications").aggregate(
        [
            {"$match": match},
            {"$sort": {"failed_at": -1, "_id": -1}},
            {"$limit": COUNTED},
            {"$project": {"delivery": 1}},
            {"$unwind": "$delivery"},
            {"$match": failed},
            {"$group": {"_id": "$delivery.channel", "count": {"$sum": 1}}},
        ],
        hint="ntf_failed",
    )
    return {row["_id"]: row["count"] for row in found}


def _all_of_one_channel(rule: Rule, now: datetime) -> str | None:
    """Return the channel that most failures are of, if it is nearly all of them."""
    counts = _failed_by_channel(rule, since=now - timedelta(minutes=rule.window_minutes))
    channel = max(counts, key=lambda name: counts[name], default=None)
    is_most = channel is not None and counts[channel] * 5 >= sum(counts.values()) * 4
    return channel if is_most else None


def _breakers(rule: Rule, now: datetime) -> Iterator[Finding]:
    channels = _channels_of_providers()
    for circuit in breaker.states(now=now) or ():
        provider = circuit.account.partition(":")[0]
        if circuit.opened_at is None or provider.startswith(SANDBOX):
            continue
        if now - circuit.opened_at < timedelta(minutes=rule.threshold):
            continue
        yield _finding(
            rule,
            circuit.account,
            title=f"{provider} takes nothing: its circuit is open",
            detail=f"It has been open since {circuit.opened_at:%H:%M:%S} UTC"
            f"{f': {circuit.reason}' if circuit.reason else ''}.",
            broken=channels.get(provider),
        )


def _work(rule: Rule, now: datetime) -> Iterator[Finding]:
    oldest = backlog.measure(now=now, cap=1).oldest_due_at
    if oldest is None or now - oldest <= timedelta(minutes=rule.threshold):
        return
    yield _finding(
        rule,
        "all",
        title=f"Work has been due for over {rule.threshold} minutes",
        detail=f"The oldest has been due since {oldest:%Y-%m-%d %H:%M} UTC. Are the workers "
        "alive, and do they keep up?",
    )


def _sweep(rule: Rule, now: datetime) -> Iterator[Finding]:
    last = last_sweep()
    if last is not None and now - last <= timedelta(minutes=rule.threshold):
        return
    since = f"since {last:%Y-%m-%d %H:%M} UTC" if last else "ever"
    yield _finding(
        rule,
        "all",
        title=f"No sweep for over {rule.threshold} minutes",
        detail=f"There was none {since}: what no hint reaches waits. Is beat running, and a "
        "worker?",
    )


def _pauses(rule: Rule, now: datetime) -> Iterator[Finding]:
    channels = _channels_of_providers()
    for pause in pausing.pauses().values():
        if now - pause.since <= timedelta(minutes=rule.threshold):
            continue
        yield _finding(
            rule,
            pause.provider,
            title=f"{pause.provider} is still paused",
            detail=f"Paused since {pause.since:%Y-%m-%d %H:%M} UTC by {pause.by}. What would go "
            "there waits, and fails after three days.",
            broken=channels.get(pause.provider),
        )


def _callbacks(rule: Rule, now: datetime) -> Iterator[Finding]:
    limit = now - timedelta(minutes=rule.threshold)
    wanted = {"disabled_at": {"$lte": limit}, "disabled_reason": {"$in": ["failing", "gone"]}}
    for one in collection("callbacks").find(wanted).limit(CALLBACKS_SHOWN):
        yield _finding(
            rule,
            str(one["_id"]),
            title="An app's callback was switched off",
            detail=f"{one.get('host', 'Its receiver')} has been switched off since "
            f"{one['disabled_at']:%Y-%m-%d %H:%M} UTC: it kept failing.",
        )


def _channels_of_providers() -> dict[str, str]:
    """Return the channel of each provider."""
    return {
        provider.name: channel.value for channel in Channel for provider in providers_for(channel)
    }


def _finding(
    rule: Rule, what: str, *, title: str, detail: str, broken: str | None = None
) -> Finding:
    return Finding(
        rule_id=rule.id,
        kind=rule.kind,
        what=what,
        title=title,
        detail=detail[:500],
        broken_channel=broken,
    )


_LOOKS: Mapping[AlertKind, Callable[[Rule, datetime], Iterator[Finding]]] = {
    AlertKind.FAILURES: _failures,
    AlertKind.BREAKER_OPEN: _breakers,
    AlertKind.WORK_OVERDUE: _work,
    AlertKind.SWEEP_OVERDUE: _sweep,
    AlertKind.PROVIDER_PAUSED: _pauses,
    AlertKind.CALLBACK_DISABLED: _callbacks,
}
