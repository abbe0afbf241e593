"""Circuit breaker of each provider account; a pause by staff is a circuit forced open.

An account that keeps failing isn't called for a while: its circuit is open. The first call after
that is a probe, one at a time across all processes, and its success closes the circuit. The state
lives in Valkey. Without Valkey every process breaks its own circuits.
"""

import json
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import cast

import structlog

from notifyproject.db.collections import collection
from notifyproject.platform import valkey
from notifyproject.platform.cache import SharedCache
from providers.contract import Provider
from providers.http import MAX_RETRY_AFTER

log = structlog.get_logger(__name__)
WINDOW, BUCKET = timedelta(minutes=1), timedelta(seconds=10)
"""How far back outcomes count, in steps of a bucket."""
MIN_FAILURES, MIN_PERCENT = 20, 50
"""A circuit opens at so many failures in the window, if they are this share of all outcomes."""
FIRST_WAIT = timedelta(seconds=30)
"""Wait before the first probe; each further wait is twice the one before."""
MAX_WAIT = timedelta(minutes=15)
PROBE_LEASE = timedelta(seconds=30)
"""A probe nobody reported on for this long is given to somebody else; a send takes 15 s at most."""
CIRCUIT_TTL = timedelta(hours=1)
"""An open circuit nobody asks about for this long after its wait is forgotten."""
LISTING_WINDOW = timedelta(days=1)
"""Accounts without an outcome for this long are not listed."""
REASON_LENGTH = 200
_INDEX = "circuits"
_MILLISECOND = timedelta(milliseconds=1)
_SCRIPTS = Path(__file__).with_name("lua")
_PERMISSION_SCRIPT = (_SCRIPTS / "circuit_ask.lua").read_text()
_CHANGE_SCRIPT = (_SCRIPTS / "circuit_change.lua").read_text()
_RULES = json.dumps(
    {
        "bucket": BUCKET // _MILLISECOND,
        "buckets": WINDOW // BUCKET,
        "min_failures": MIN_FAILURES,
        "min_percent": MIN_PERCENT,
        "first_wait": FIRST_WAIT // _MILLISECOND,
        "longest_wait": MAX_WAIT // _MILLISECOND,
        "remembered": CIRCUIT_TTL // _MILLISECOND,
        "listed": LISTING_WINDOW // _MILLISECOND,
    }
)


class State(StrEnum):
    """Where a circuit stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    """The wait is over: one probe at a time."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Send."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Send one message, and say with this token what became of it."""

    token: str


@dataclass(frozen=True, slots=True)
class Blocked:
    """Send nothing, and ask again then."""

    until: datetime


Permission = Allowed | Probe | Blocked


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitState:
    """One account's circuit, for people."""

    account: str
    state: State
    failures: int
    """Failures in the last minute before it opened, or until now."""
    successes: int
    opened_at: datetime | None = None
    """Since when nothing but probes has gone."""
    open_until: datetime | None = None
    openings: int = 0
    """How often it has opened since it was last closed."""
    reason: str | None = None


def request_permissions(accounts: Sequence[str], *, now: datetime) -> Mapping[str, Permission]:
    """Return what each of these accounts takes; all in one question to Valkey.

    A Probe is the caller's alone. Who cannot use it should :func:`give_back` it.
    """
    names, token = list(dict.fromkeys(accounts)), uuid.uuid4().hex
    if not names:
        return {}
    args: list[str | int] = [valkey.to_milliseconds(now), token, PROBE_LEASE // _MILLISECOND]
    try:
        answers = valkey.run(_PERMISSION_SCRIPT, keys=[_key(name) for name in names], args=args)
    except valkey.Unavailable:
        return dict.fromkeys(names, Allowed())
    return {name: _permission(answer, token) for name, answer in zip(names, answers, strict=True)}


def record(
    account: str,
    *,
    successes: int,
    failures: int,
    now: datetime,
    probe: Probe | None = None,
    reason: str = "",
) -> None:
    """Count outcomes of sends, and open or close the circuit if they say so.

    While it is not closed, only the ``probe``'s outcome matters: the others began before it opened.
    ``reason`` is why it opens, if it does, and holds no address.
    """
    token = probe.token if probe else ""
    _change(account, now, reason, ["record", successes, failures, token])


def trip(account: str, *, now: datetime, retry_after: float | None, reason: str = "") -> None:
    """Open the circuit at once: credentials, quota, configuration.

    It stays open for ``retry_after`` seconds at least, at most a day. Once its wait is over, this
    is how a probe that met the same again is reported, too.
    """
    pause = math.ceil(1000 * min(max(0.0, retry_after or 0.0), MAX_RETRY_AFTER))
    _change(account, now, reason, ["trip", pause])


def return_probe(account: str, *, probe: Probe, now: datetime) -> None:
    """Give back a probe that nothing was sent with, so that another caller gets it at once."""
    record(account, successes=0, failures=0, probe=probe, now=now)


def close(account: str) -> bool:
    """Close a circuit and forget its past, because an operator says so; False without Valkey."""
    try:
        with valkey.connection() as client:
            client.delete(_key(account))
    except valkey.Unavailable:
        return False
    log.info("circuit_closed", account=account, by="operator")
    return True


def circuit_states(*, now: datetime) -> list[CircuitState] | None:
    """Return every circuit that had an outcome within a day; None if Valkey does not answer."""
    since = valkey.to_milliseconds(now - LISTING_WINDOW)
    try:
        with valkey.connection() as client:
            names = cast("list[bytes]", client.zrangebyscore(_INDEX, since, "+inf"))
            accounts = [name.decode() for name in names]
            with client.pipeline(transaction=False) as pipe:
                for account in accounts:
                    pipe.hgetall(_key(account))
                found = pipe.execute()
    except valkey.Unavailable:
        return None
    circuits = zip(accounts, found, strict=True)
    return sorted((_state(*circuit, now=now) for circuit in circuits), key=lambda c: c.account)


def _key(account: str) -> str:
    return f"circuit:{account}"


def _permission(answer: int, token: str) -> Permission:
    if answer == 0:
        return Allowed()
    return Probe(token) if answer < 0 else Blocked(valkey.from_milliseconds(answer))


def _state(account: str, fields: Mapping[bytes, bytes], *, now: datetime) -> CircuitState:
    """Return what a stored circuit means now."""
    opened = b"until" in fields
    until = valkey.from_milliseconds(int(fields[b"until"])) if opened else None
    counted_at = valkey.from_milliseconds(int(fields[b"opened_at"])) if opened else now
    oldest = valkey.to_milliseconds(counted_at - WINDOW) // (BUCKET // _MILLISECOND)
    counts = {"s": 0, "f": 0}
    for name, number in fields.items():
        kind, bucket = name[:1].decode(), name[1:]
        if kind in counts and bucket.isdigit() and int(bucket) > oldest:
            counts[kind] += int(number)
    state = State.CLOSED
    if until is not None:
        state = State.OPEN if now < until else State.HALF_OPEN
    return CircuitState(
        account=account,
        state=state,
        failures=counts["f"],
        successes=counts["s"],
        opened_at=counted_at if opened else None,
        open_until=until,
        openings=int(fields.get(b"openings", 0)),
        reason=fields.get(b"reason", b"").decode() or None,
    )


def _change(account: str, now: datetime, reason: str, command: Sequence[str | int]) -> None:
    """Tell a circuit what happened, and log if it opened or closed."""
    reason = reason[:REASON_LENGTH]
    args: list[str | int] = [account, valkey.to_milliseconds(now), _RULES, reason, *command]
    try:
        until = valkey.run(_CHANGE_SCRIPT, keys=[_key(account), _INDEX], args=args)
    except valkey.Unavailable:
        return
    if until == 0:
        log.info("circuit_closed", account=account, by="probe")
    elif until > 0:
        at = valkey.from_milliseconds(until).isoformat()
        log.warning("circuit_opened", account=account, until=at, reason=reason)


PAUSE_CHECK_INTERVAL = timedelta(seconds=30)
"""What waits for a paused provider is looked at again after this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Who paused a provider, when and why."""

    provider: str
    since: datetime
    by: str
    reason: str


def pause(provider: str, *, by: str, reason: str, now: datetime) -> bool:
    """Pause a provider; return False if it was paused already, and stays as it was."""
    changed = collection("provider_states").update_one(
        {"_id": provider},
        [
            {
                "$set": {
                    "paused_by": _keep_if_paused("paused_by", by),
                    "reason": _keep_if_paused("reason", reason[:REASON_LENGTH]),
                    "paused_at": {"$ifNull": ["$paused_at", now]},
                }
            }
        ],
        upsert=True,
    )
    _paused.invalidate()
    is_new = bool(changed.modified_count or changed.upserted_id)
    if is_new:
        log.warning("provider_paused", provider=provider, by=by)
    return is_new


def resume(provider: str, *, by: str) -> bool:
    """Let a provider be used again; return False if it was not paused."""
    changed = collection("provider_states").update_one(
        {"_id": provider, "paused_at": {"$ne": None}},
        {"$unset": {"paused_at": "", "paused_by": "", "reason": ""}},
    )
    _paused.invalidate()
    if changed.modified_count:
        log.warning("provider_resumed", provider=provider, by=by)
    return bool(changed.modified_count)


def pauses() -> dict[str, Pause]:
    """Return the providers that are paused, by name, as MongoDB has it."""
    found = collection("provider_states").find({"paused_at": {"$ne": None}})
    return {
        one["_id"]: Pause(
            provider=one["_id"],
            since=one["paused_at"],
            by=one.get("paused_by") or "",
            reason=one.get("reason") or "",
        )
        for one in found
    }


def paused_until(providers: Iterable[str], *, now: datetime) -> Mapping[str, datetime]:
    """Return which of these providers are paused, and when to ask again."""
    paused = _paused.get()
    return {name: now + PAUSE_CHECK_INTERVAL for name in providers if name in paused}


def _keep_if_paused(field: str, value: str) -> dict[str, list[object]]:
    """Return a field as it is while the provider is paused, and ``value`` otherwise."""
    is_paused = {"$gt": ["$paused_at", None]}
    return {"$cond": [is_paused, f"${field}", {"$literal": value}]}


def _paused_names() -> frozenset[str]:
    return frozenset(pauses())


_paused = SharedCache("pauses", _paused_names)


def circuit_name(provider: Provider, platform: str) -> str:
    """Return the name of the circuit of one platform at a provider."""
    return f"{provider.account}:{platform}"
