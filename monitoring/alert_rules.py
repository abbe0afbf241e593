"""Adds and reads alert rules, and detects violations. docs/guides/operate.md lists the rules."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from bson import ObjectId

from access.clients import registry
from access.documents import API_CLIENTS
from callbacks.documents import CALLBACKS
from delivery import circuit_breaker, provider_pauses
from delivery.accounts import brand_providers
from delivery.circuit_breaker import CircuitState
from delivery.heartbeats import last_sweep
from domain.channels import Channel
from domain.countries import country_name
from domain.country_units import HISTORY, SLOT, UNJUDGED, is_surge, slot_of, usual_units
from domain.daily_units import day_of
from domain.states import AttemptStatus, BroadcastStatus
from notifications.catalog.texts import unit_caps
from notifications.documents.broadcasts import BROADCASTS
from notifications.documents.catalog import NOTIFICATION_TYPES
from notifications.documents.notification import NOTIFICATIONS
from notifications.documents.policies import DAILY_UNITS
from notifications.queueing import backlog
from notifications.receipts import lag
from notifications.staff_messages import STAFF_TYPE
from notifications.store import country_units
from notifyproject.db.collections import collection
from providers.accounts import account_of, spec_of
from providers.labels import provider_name
from providers.registry import providers_for

from . import metrics, rollup_state, saved_views
from .documents import ALERT_RULES
from .incidents import Finding
from .metrics import Metric
from .models import AlertKind, Interval

log = structlog.get_logger(__name__)
SHIPPED_RULES = (
    ("failures", "Many final failures", AlertKind.FAILURES, 10),
    ("breaker-open", "A provider's circuit is open", AlertKind.BREAKER_OPEN, 0),
    ("work-overdue", "Overdue deliveries", AlertKind.WORK_OVERDUE, 5),
    ("sweep-overdue", "Sweep overdue", AlertKind.SWEEP_OVERDUE, 3),
    ("rollup-overdue", "Roll-up overdue", AlertKind.ROLLUP_OVERDUE, 15),
    ("provider-paused", "A provider stays paused", AlertKind.PROVIDER_PAUSED, 60),
    ("callback-disabled", "Callback disabled", AlertKind.CALLBACK_DISABLED, 0),
    ("key-expiring", "An API key expires", AlertKind.KEY_EXPIRING, 30),
    ("daily-units", "A client's daily SMS run out", AlertKind.DAILY_UNITS, 80),
    ("pumping", "Inflated SMS traffic", AlertKind.PUMPING, 50),
    ("no-receipts", "A provider's receipts stopped", AlertKind.NO_RECEIPTS, 120),
    ("approval-overridden", "Sent without an approval", AlertKind.APPROVAL_OVERRIDDEN, 0),
    ("emergency-change", "Type changed in an emergency", AlertKind.EMERGENCY_CHANGE, 0),
    ("approval-stopped", "A broadcast waits for its author", AlertKind.APPROVAL_STOPPED, 0),
)
"""Slug, name, kind, and threshold: failures in the window, days until an expiry, percent of a
daily cap, parts in ten minutes, else minutes."""
BLOCKED_FOR = timedelta(minutes=30)
"""How long a provider blocks numbers that it suspects to be pumped."""
RECEIPT_TIME = timedelta(minutes=15)
"""What was sent more recently may be reported yet."""
BUSY_WITHIN = timedelta(hours=24)
"""How far back messages are looked for that were sent before the time without receipts began."""
MINUTES_READ, HOUR = timedelta(hours=2), timedelta(hours=1)
"""How far back they are looked for by the minute. Before, by the hour."""
UNREPORTED = 5
"""So many messages without a receipt are no coincidence."""
DEFAULT_WINDOW_MINUTES = 60
_WINDOWS = {AlertKind.APPROVAL_OVERRIDDEN: 24 * 60}
"""Windows of shipped rules that aren't the default: alerts that were off for a while miss none."""
COUNT_CAP = 1_000
"""Maximum of notifications from which failures are counted. Thresholds are lower."""
MAX_CALLBACKS = 20
CHANGED_AT = "@"
"""Separates, in the subject of a finding, a type from the time of its change."""
MAX_BROADCASTS = 20
MAX_STOPPED = 500
"""Incidents of these close once they aren't found, so that none may be left out."""
STOPPED_FOR = timedelta(days=7)
"""After this, a broadcast that waits for its author isn't news."""
WAITS_FOR_AUTHOR = [
    status.value
    for status in (
        BroadcastStatus.DRAFT,
        BroadcastStatus.AWAITING_APPROVAL,
        BroadcastStatus.EXPIRED,
    )
]
SANDBOX_PREFIX = "sandbox-"
"""Prefix of the providers of test notifications, which raise no alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An alert rule: a condition and its threshold."""

    id: ObjectId
    name: str
    kind: AlertKind
    threshold: int
    window_minutes: int
    channel: str | None = None
    type: str | None = None
    view_id: ObjectId | None = None


def add_missing_rules() -> None:
    """Add shipped rules that were never added. Existing rules stay as operators set them."""
    for slug, name, kind, threshold in SHIPPED_RULES:
        new = {"name": name, "kind": kind.value, "threshold": threshold, "is_enabled": True}
        new["window_minutes"] = _WINDOWS.get(kind, DEFAULT_WINDOW_MINUTES)
        ALERT_RULES().update_one({"slug": slug}, {"$setOnInsert": new}, upsert=True)


def enabled_rules() -> list[Rule]:
    """Return the enabled rules, without those of a kind that only another version knows."""
    documents = list(ALERT_RULES().find({"is_enabled": True}))
    for document in documents:
        if document["kind"] not in _DETECTORS:
            log.warning("alert_rule_unknown", rule=str(document["_id"]), kind=document["kind"])
    rules = [
        Rule(
            id=document["_id"],
            name=document["name"],
            kind=AlertKind(document["kind"]),
            threshold=document["threshold"],
            window_minutes=document["window_minutes"],
            channel=document.get("channel"),
            type=document.get("type"),
            view_id=document.get("view_id"),
        )
        for document in documents
        if document["kind"] in _DETECTORS
    ]
    # A count may take its whole time, so the other rules aren't behind it.
    return sorted(rules, key=lambda rule: rule.kind is AlertKind.SAVED_VIEW)


def detect(rule: Rule, *, now: datetime) -> list[Finding]:
    """Return the current violations of a rule."""
    return list(_DETECTORS[rule.kind](rule, now))


def _detect_failures(rule: Rule, now: datetime) -> Iterator[Finding]:
    counts = _count_failed_by_channel(rule, since=now - timedelta(minutes=rule.window_minutes))
    found = sum(counts.values())
    if found <= rule.threshold:
        return
    dominant = max(counts, key=lambda name: counts[name])
    is_dominant = counts[dominant] * 5 >= found * 4
    scope = " ".join(part for part in (rule.channel, rule.type) if part)
    count = f"{found:,}" if found < COUNT_CAP else f"{COUNT_CAP:,} or more"
    yield _finding(
        rule,
        "all",
        title=f"{count} final failures{f' of {scope}' if scope else ''}",
        detail=f"{count} final failures in {rule.window_minutes} min (threshold {rule.threshold}).",
        broken_channel=rule.channel or (dominant if is_dominant else None),
    )


def _count_failed_by_channel(rule: Rule, *, since: datetime) -> Mapping[str, int]:
    counted_type = rule.type if rule.type is not None else {"$ne": STAFF_TYPE}
    # The failures of alerts raise no alert, to prevent a loop.
    match = {"failed_at": {"$gte": since}, "is_test": {"$ne": True}, "type": counted_type}
    failed: dict[str, Any] = {
        # Failed, or expired while an outage held them.
        "delivery.failed_at": {"$gte": since},
    }
    if rule.channel is not None:
        failed["delivery.channel"] = rule.channel
    found = collection(NOTIFICATIONS.name).aggregate(
        [
            {"$match": match},
            {"$sort": {"failed_at": -1, "_id": -1}},
            {"$limit": COUNT_CAP},
            {"$project": {"delivery": 1}},
            {"$unwind": "$delivery"},
            {"$match": failed},
            {"$group": {"_id": "$delivery.channel", "count": {"$sum": 1}}},
        ],
        hint="ntf_failed",
    )
    return {row["_id"]: row["count"] for row in found}


def _detect_open_circuits(rule: Rule, now: datetime) -> Iterator[Finding]:
    channels = _channels_of_providers()
    since = now - timedelta(minutes=rule.threshold)
    scopes: dict[str, list[CircuitState]] = {}
    for circuit in circuit_breaker.circuit_states(now=now) or ():
        provider = circuit.account.partition(":")[0]
        if circuit.opened_at is None or provider.startswith(SANDBOX_PREFIX):
            continue
        if circuit.opened_at > since:
            continue
        if circuit.scope:
            scopes.setdefault(circuit.account, []).append(circuit)
            continue
        yield _finding(
            rule,
            circuit.name,
            title=f"{provider_name(provider)}: circuit open",
            detail=f"Since {circuit.opened_at:%H:%M} UTC. {circuit.reason or ''}".strip(),
            broken_channel=channels.get(provider),
        )
    # One for all scopes of an account: there may be a thousand rooms.
    for account, some in scopes.items():
        first, provider = some[0], account.partition(":")[0]
        others = f" and {len(some) - 1} more" if len(some) > 1 else ""
        yield _finding(
            rule,
            f"{account}/",
            title=f"{provider_name(provider)}: circuit open for {first.scope}{others}",
            detail=f"Since {first.opened_at:%H:%M} UTC. {first.reason or ''}".strip(),
        )


def _detect_overdue_work(rule: Rule, now: datetime) -> Iterator[Finding]:
    oldest = backlog.oldest_due(now=now)
    if oldest is None or now - oldest <= timedelta(minutes=rule.threshold):
        return
    yield _finding(
        rule,
        "all",
        title=f"Deliveries overdue by more than {rule.threshold} min",
        detail=f"The oldest has been due since {oldest:%Y-%m-%d %H:%M} UTC. Check that workers "
        "run and keep up.",
    )


def _detect_overdue_sweep(rule: Rule, now: datetime) -> Iterator[Finding]:
    last = last_sweep()
    if last is not None and now - last <= timedelta(minutes=rule.threshold):
        return
    since = f"Last sweep: {last:%Y-%m-%d %H:%M} UTC." if last else "There was no sweep yet."
    yield _finding(
        rule,
        "all",
        title=f"No sweep for over {rule.threshold} min",
        detail=f"{since} Missed wake-ups aren't picked up. Check Celery beat and the workers.",
    )


def _detect_overdue_rollup(rule: Rule, now: datetime) -> Iterator[Finding]:
    last, stopped = rollup_state.counted_at(), rollup_state.stopped_at()
    if stopped is not None:
        yield _finding(
            rule,
            "all",
            title="Metrics roll-up stopped",
            detail=f"Since {stopped:%Y-%m-%d %H:%M} UTC: three workers in a row ended while they "
            "counted. See their logs, then start it again by manage.py rollup.",
        )
    elif last is not None and now - last > timedelta(minutes=rule.threshold):
        yield _finding(
            rule,
            "all",
            title=f"No metrics roll-up for over {rule.threshold} min",
            detail=f"Last roll-up: {last:%Y-%m-%d %H:%M} UTC. The metrics aren't current. Check "
            "Celery beat, and the workers' logs.",
        )


def _detect_long_pauses(rule: Rule, now: datetime) -> Iterator[Finding]:
    channels = _channels_of_providers()
    for pause in provider_pauses.pauses().values():
        if now - pause.since > timedelta(minutes=rule.threshold):
            yield _finding(
                rule,
                pause.provider,
                title=f"{provider_name(pause.provider)}: still paused",
                detail=f"Paused since {pause.since:%Y-%m-%d %H:%M} UTC by {pause.by}. "
                "Its deliveries are held (no attempt used), and fail after 3 days.",
                broken_channel=channels.get(pause.provider),
            )


def _detect_disabled_callbacks(rule: Rule, now: datetime) -> Iterator[Finding]:
    limit = now - timedelta(minutes=rule.threshold)
    by_service = ["failing", "gone", "stuck"]
    wanted = {"disabled_at": {"$lte": limit}, "disabled_reason": {"$in": by_service}}
    for document in CALLBACKS().find(wanted).limit(MAX_CALLBACKS):
        yield _finding(
            rule,
            str(document["_id"]),
            title="Callback endpoint disabled",
            detail=f"{document.get('host', 'The endpoint')} has been disabled since "
            f"{document['disabled_at']:%Y-%m-%d %H:%M} UTC, after repeated failures.",
        )


def _detect_expiring_keys(rule: Rule, now: datetime) -> Iterator[Finding]:
    notice = now + timedelta(days=rule.threshold)
    soon = {"$elemMatch": {"expires_at": {"$gt": now, "$lte": notice}, "revoked_at": None}}
    for client in API_CLIENTS().find({"is_active": True, "keys": soon}):
        ends_at = registry.access_ends_at(client["keys"], now=now)
        if ends_at is not None and ends_at <= notice:
            yield _finding(
                rule,
                str(client["_id"]),
                title=f"API client {client['name']}: key expires on {ends_at:%Y-%m-%d}",
                detail=f"Its last active key expires at {ends_at:%Y-%m-%d %H:%M} UTC. Issue a "
                "second key, change the application to it, and revoke the old one.",
            )


def _detect_used_units(rule: Rule, now: datetime) -> Iterator[Finding]:
    caps, day = unit_caps(), day_of(now).isoformat()
    if not caps:
        return
    of_day = DAILY_UNITS().find({"_id": {"$gt": f"{day}/", "$lt": f"{day}0"}})
    counters = {document["client_id"]: document for document in of_day}
    names = {
        client["_id"]: client["name"]
        for client in API_CLIENTS().find({"_id": {"$in": list(counters)}}, {"name": 1})
    }
    for client_id, counter in counters.items():
        for cap, used, where in (
            (caps.units, counter["units"], ""),
            (caps.abroad, counter["abroad"], " abroad"),
        ):
            if cap and used * 100 >= cap * rule.threshold:
                yield _finding(
                    rule,
                    f"{client_id}{where.replace(' ', '/')}",
                    title=f"API client {names.get(client_id, client_id)}: {used:,} of {cap:,} "
                    f"daily SMS parts{where} used",
                    detail="Further ones are held until midnight UTC. If nobody expects that many, "
                    "see what asks for them: inflated traffic asks for codes to foreign numbers.",
                )


def _detect_pumping(rule: Rule, now: datetime) -> Iterator[Finding]:
    asked: Counter[tuple[str, datetime]] = Counter()
    blocked: Counter[str] = Counter()
    for slot in country_units.slots_since(now - BLOCKED_FOR, now=now):
        asked[slot["country"], country_units.began_at(slot)] += slot["asked"]
        blocked[slot["country"]] += slot.get("blocks", 0)
    most = Counter[str]()
    for (country, began_at), units in asked.items():
        # This slot and the one before it: a burst that begins at the end of one is in both.
        if began_at >= slot_of(now) - SLOT:
            most[country] = max(most[country], units)
    until = slot_of(now) - UNJUDGED
    for country in sorted({*most, *blocked}):
        usual = 0.0
        if most[country] > rule.threshold:
            usual = usual_units(
                country_units.asked_units(country, since=until - HISTORY, until=until)
            )
        name = country_name(country)
        if is_surge(most[country], usual=usual, least=rule.threshold):
            yield _finding(
                rule,
                country,
                title=f"SMS to {name}: {most[country]:,} parts in 10 min",
                detail=f"Usual are {usual:,.0f}. If nobody expects that many, somebody has codes "
                "sent to numbers whose operator pays for it. See which client and type sends "
                "them, and take the country out of SMS_COUNTRIES if you have no users there.",
            )
        elif blocked[country]:
            yield _finding(
                rule,
                country,
                title=f"SMS to {name}: the provider suspects pumping",
                detail=f"It has blocked {blocked[country]:,} texts in the last half hour, and "
                "blocks numbers like theirs for about as long. See which client and type sends "
                "them.",
            )


def _detect_missing_receipts(rule: Rule, now: datetime) -> Iterator[Finding]:
    since = now - timedelta(minutes=rule.threshold)
    last = {
        name: lag.newest_receipt_at(name)
        for name in _channels_of_providers()
        if spec_of(name).webhook is not None
    }
    silent = {name: at for name, at in last.items() if at is None or at < since}
    if not silent:
        return
    sent = _sent_by_provider(Interval.MINUTE, since=since, until=now - RECEIPT_TIME)
    for name, at in silent.items():
        # One that was idle has reported on nothing, because there was nothing.
        if sum(sent[name].values()) >= UNREPORTED and _was_busy(name, after=at, until=since):
            known = f"Its last receipt: {at:%Y-%m-%d %H:%M} UTC." if at else "There are none."
            yield _finding(
                rule,
                name,
                title=f"{provider_name(name)}: no receipts for over {rule.threshold} min",
                detail=f"It accepted {sum(sent[name].values()):,} messages meanwhile. {known} "
                "Bounces suppress "
                "nobody, and lost answers aren't resolved. See the address and the secrets of its "
                f"webhook, there and here: {account_of(name).webhook_path}.",
            )


def _was_busy(provider: str, *, after: datetime | None, until: datetime) -> bool:
    """Return whether a provider accepted messages before ``until`` that it hasn't reported on."""
    since = max(after or until - BUSY_WITHIN, until - BUSY_WITHIN)
    for interval, length in ((Interval.MINUTE, timedelta(minutes=1)), (Interval.HOUR, HOUR)):
        begins = since if interval is Interval.HOUR else max(since, until - MINUTES_READ)
        found = _sent_by_provider(interval, since=begins, until=until)[provider]
        # Only what began after the last receipt and was over by then.
        if any(begins <= at <= until - length for at in found):
            return True
    return False


def _sent_by_provider(
    interval: Interval, *, since: datetime, until: datetime
) -> Mapping[str, Counter[datetime]]:
    """Return how many messages each provider accepted in each interval."""
    sent: defaultdict[str, Counter[datetime]] = defaultdict(Counter)
    for found in metrics.read_summed(
        interval,
        since=since,
        until=until,
        metrics=(Metric.TRIED.value,),
        by=("provider", "status"),
    ):
        if found.dimensions.get("status") == AttemptStatus.SENT:
            sent[found.dimensions.get("provider", "")][found.timestamp] += int(found.value)
    return sent


def _detect_overridden_approvals(rule: Rule, now: datetime) -> Iterator[Finding]:
    since = now - timedelta(minutes=rule.window_minutes)
    wanted = {"approval.overridden_at": {"$gte": since}}
    found = BROADCASTS().find(wanted, {"type": 1, "approval": 1}).hint("brc_overridden")
    for document in found.sort("approval.overridden_at", -1).limit(MAX_BROADCASTS):
        at, reason = document["approval"]["overridden_at"], document["approval"]["reason"]
        yield _finding(
            rule,
            str(document["_id"]),
            title=f"A broadcast of {document['type']} was sent without an approval",
            detail=f"At {at:%Y-%m-%d %H:%M} UTC. {reason}",
        )


def _detect_stopped_approvals(rule: Rule, now: datetime) -> Iterator[Finding]:
    latest = now - timedelta(minutes=rule.threshold)
    wanted = {
        "approval.stopped_at": {"$gte": now - STOPPED_FOR, "$lte": latest},
        "status": {"$in": WAITS_FOR_AUTHOR},
    }
    found = BROADCASTS().find(wanted, {"type": 1, "status": 1, "approval": 1}).hint("brc_stopped")
    for document in found.sort("approval.stopped_at", -1).limit(MAX_STOPPED):
        is_expired = document["status"] == BroadcastStatus.EXPIRED
        approval = document["approval"]
        reason = "Nobody decided in time." if is_expired else approval.get("reason", "")
        yield _finding(
            rule,
            str(document["_id"]),
            title=f"A broadcast of {document['type']} {'expired' if is_expired else 'was held'}",
            detail=f"At {approval['stopped_at']:%Y-%m-%d %H:%M} UTC. {reason}",
        )


def _detect_exceeded_view(rule: Rule, now: datetime) -> Iterator[Finding]:
    view = saved_views.get(rule.view_id) if rule.view_id is not None else None
    if view is None:
        yield _finding(
            rule,
            "gone",
            title=f"{rule.name}: its saved view is gone",
            detail="The rule counts nothing any more. Choose another view, or delete the rule.",
        )
        return
    limit, seconds = rule.threshold + 1, saved_views.ALERT_COUNT_SECONDS
    if saved_views.count(view, limit=limit, seconds=seconds, now=now) < limit:
        saved_views.forget_exceeded(rule.id)
        return
    window = timedelta(minutes=rule.window_minutes)
    since = saved_views.exceeded_since(rule.id, window=window, now=now)
    if now - since >= window:
        yield _finding(
            rule,
            "all",
            title=f"{rule.name}: more than {rule.threshold:,}",
            detail=f"Since {since:%Y-%m-%d %H:%M} UTC, for {rule.window_minutes} min or more.",
        )


def _detect_emergency_changes(rule: Rule, now: datetime) -> Iterator[Finding]:
    since = now - timedelta(minutes=rule.window_minutes)
    wanted = {"emergency_changes.at": {"$gte": since}}
    for document in NOTIFICATION_TYPES().find(wanted, {"emergency_changes": 1}):
        slug = document["_id"]
        for change in document["emergency_changes"]:
            if change["at"] >= since:
                yield _finding(
                    rule,
                    f"{slug}{CHANGED_AT}{change['at']:%Y%m%dT%H%M%S}",
                    title=f"The type {slug} was changed in an emergency",
                    detail=f"At {change['at']:%Y-%m-%d %H:%M} UTC, by {change['by']}. "
                    f"{change['reason']}",
                )


def _channels_of_providers() -> dict[str, str]:
    return {
        provider.name: channel.value
        for channel in Channel
        for provider in (*providers_for(channel), *brand_providers(channel))
    }


def _finding(
    rule: Rule, subject: str, *, title: str, detail: str, broken_channel: str | None = None
) -> Finding:
    return Finding(
        rule_id=rule.id,
        kind=rule.kind,
        subject=subject,
        title=title,
        detail=detail[:500],
        broken_channel=broken_channel,
    )


_DETECTORS: Mapping[AlertKind, Callable[[Rule, datetime], Iterator[Finding]]] = {
    AlertKind.FAILURES: _detect_failures,
    AlertKind.BREAKER_OPEN: _detect_open_circuits,
    AlertKind.WORK_OVERDUE: _detect_overdue_work,
    AlertKind.SWEEP_OVERDUE: _detect_overdue_sweep,
    AlertKind.ROLLUP_OVERDUE: _detect_overdue_rollup,
    AlertKind.PROVIDER_PAUSED: _detect_long_pauses,
    AlertKind.CALLBACK_DISABLED: _detect_disabled_callbacks,
    AlertKind.KEY_EXPIRING: _detect_expiring_keys,
    AlertKind.DAILY_UNITS: _detect_used_units,
    AlertKind.PUMPING: _detect_pumping,
    AlertKind.NO_RECEIPTS: _detect_missing_receipts,
    AlertKind.APPROVAL_OVERRIDDEN: _detect_overridden_approvals,
    AlertKind.EMERGENCY_CHANGE: _detect_emergency_changes,
    AlertKind.APPROVAL_STOPPED: _detect_stopped_approvals,
    AlertKind.SAVED_VIEW: _detect_exceeded_view,
}
