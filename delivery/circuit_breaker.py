"""Circuit breaker of each provider account, and of each scope of its recipients.

A scope is what the provider makes of a target: a platform, a host, a room. Its circuit exists only
while something is wrong with it, and a provider may have any number of scopes.

An open circuit waits. Then one request at a time, across all processes, is a probe; its success
closes the circuit. The state lives in Valkey. Without Valkey, all requests are allowed.

An answer that concerns one recipient opens no circuit. If it is uncertain whom an answer concerns,
MIN_RECIPIENTS in a row must get it, without an acceptance in between. Those who were refused are
remembered for an hour, beyond the end of the circuit. Their next refusal says nothing new: it is no
evidence, and they are not the probe while others may come.

A circuit that only evidence opened is doubted. Any critical message to a recipient that was not
refused is a trial: it is sent soon after the opening, and its acceptance closes the circuit.
"""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, cast

import structlog

from domain.channels import address_key
from notifications.store.claims import ClaimedDelivery
from notifyproject.platform import encryption, valkey
from notifyproject.platform.unique import new_token
from providers.contract import Provider
from providers.http import MAX_RETRY_AFTER

log = structlog.get_logger(__name__)
WINDOW, BUCKET = timedelta(minutes=1), timedelta(seconds=10)
"""Sliding window of counted results, and the resolution in which it moves."""
MIN_FAILURES, MIN_PERCENT = 20, 50
"""A circuit opens at this many failures in the window, if they are this share of all results."""
MIN_RECIPIENTS = 5
"""Different recipients that errors must concern before they count against the account."""
EVIDENCE_TTL = timedelta(hours=1)
"""A refusal of uncertain reach is forgotten after this time."""
MAX_REFUSED = 2_000
"""Recipients of an account that are remembered after a refusal of uncertain reach."""
MAX_NOTED = 100
"""Recipients of failures that are stored with a circuit."""
MAX_EVIDENCE = 1_000
"""Refusals of scopes that are stored with the account's circuit, the last ones."""
MAX_SCOPES = 1_000
"""Scopes of an account that are listed, those with the last changes."""
FIRST_PAUSE, MAX_PAUSE = timedelta(seconds=1), timedelta(minutes=1)
"""Pause of a scope with a rate limit that names no time; each further pause doubles."""
TRIAL_WAIT = timedelta(seconds=2)
"""From the opening of a doubted circuit to its first trial: requests in flight may disprove it."""
FIRST_WAIT = timedelta(seconds=30)
"""Wait before the first probe; each further wait doubles."""
MAX_WAIT = timedelta(minutes=15)
PROBE_LEASE = timedelta(seconds=30)
"""After this long without a result, another probe is granted. A send takes 15 s at most."""
PROBE_CHECK = timedelta(seconds=3)
"""Deferral of other deliveries during a probe. Most take less than a second."""
HEAD_START = timedelta(seconds=5)
"""After a circuit's wait, a refused recipient leaves the probe to others for this long."""
CIRCUIT_TTL = timedelta(hours=1)
"""An open circuit is removed if no request arrives for this long after its wait."""
LONGEST_WAIT = timedelta(seconds=2 * MAX_RETRY_AFTER)
"""Stored times beyond this count as absent: no circuit waits longer, also with a wrong clock."""
MAX_COUNT = 10**9
"""Stored counts beyond this count as absent."""
LISTING_WINDOW = timedelta(days=1)
"""Accounts without a result for this long are not listed."""
REASON_LENGTH = 200
_INDEX = "circuits"
_SEPARATOR = "/"
"""Between an account, which contains none, and its scope."""
_TRIAL = "trial:"
_KEY_LENGTH = 16
_ALLOWED, _BLOCKED, _PAUSED = 0, 1, 3
_MILLISECOND = timedelta(milliseconds=1)
_SCRIPTS = Path(__file__).with_name("lua")
_PERMISSION_SCRIPT = valkey.read_script(_SCRIPTS / "circuit_permission.lua")
_CHANGE_SCRIPT = valkey.read_script(_SCRIPTS / "circuit_change.lua")
_RULES = json.dumps(
    {
        "bucket": BUCKET // _MILLISECOND,
        "buckets": WINDOW // BUCKET,
        "min_failures": MIN_FAILURES,
        "min_percent": MIN_PERCENT,
        "first_wait": FIRST_WAIT // _MILLISECOND,
        "max_wait": MAX_WAIT // _MILLISECOND,
        "min_recipients": MIN_RECIPIENTS,
        "evidence_ttl": EVIDENCE_TTL // _MILLISECOND,
        "max_refused": MAX_REFUSED,
        "max_noted": MAX_NOTED,
        "max_evidence": MAX_EVIDENCE,
        "max_scopes": MAX_SCOPES,
        "first_pause": FIRST_PAUSE // _MILLISECOND,
        "max_pause": MAX_PAUSE // _MILLISECOND,
        "circuit_ttl": CIRCUIT_TTL // _MILLISECOND,
        "longest_wait": LONGEST_WAIT // _MILLISECOND,
        "max_count": MAX_COUNT,
        "listing_window": LISTING_WINDOW // _MILLISECOND,
    }
)
ACCOUNT, RATE = "", "/rate"
"""Scopes of evidence against an account: its circuit, and its rate. No provider's scope begins with
the separator."""


class State(StrEnum):
    """State of a circuit."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    """The wait is over: one probe at a time is allowed."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Permission to send."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Permission to send one message as a probe. Its result is reported with this token."""

    token: str
    refused: frozenset[str] = frozenset()
    """Recipients that were refused, by :func:`recipient_key`."""
    others_until: datetime | None = None
    """Until then, only a recipient that was not refused should be the probe."""
    doubted_at: datetime | None = None
    """When evidence alone opened the circuit."""

    @property
    def is_trial(self) -> bool:
        """Whether it is a trial, of which there may be many at once."""
        return self.token.startswith(_TRIAL)


@dataclass(frozen=True, slots=True)
class Blocked:
    """No permission to send before ``until``, except for trials."""

    until: datetime
    refused: frozenset[str] = frozenset()
    """Recipients that get no trial, by :func:`recipient_key`."""
    doubted_at: datetime | None = None
    """When evidence alone opened the circuit."""
    is_pause: bool = False
    """The scope has a rate limit. No probe is needed after it."""

    def trial(self, *, now: datetime) -> "Probe | Blocked":
        """Return the permission for a critical message to a recipient that was not refused."""
        if self.doubted_at is None:
            return self
        if now < self.doubted_at + TRIAL_WAIT:
            return Blocked(min(self.until, self.doubted_at + TRIAL_WAIT))
        return Probe(f"{_TRIAL}{valkey.to_milliseconds(self.doubted_at)}")


Permission = Allowed | Probe | Blocked
Recipients = Collection[str]
"""Recipients by :func:`recipient_key`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitEvidence:
    """What answers say about an account, beyond the counts of successes and failures."""

    accepted: Collection[str] = ()
    """Scopes that an acceptance has cleared."""
    refused: Mapping[str, Recipients] = field(default_factory=dict)
    """By scope: recipients that were refused after the last acceptance, with uncertain reach."""
    failed: Recipients = ()
    """Recipients of the failures."""
    disproved: Mapping[str, Recipients] = field(default_factory=dict)
    """By scope: recipients that were refused while another one was accepted."""
    forgiven: Mapping[str, Recipients] = field(default_factory=dict)
    """By scope: recipients that were accepted, if the account has refused any."""


NO_EVIDENCE = CircuitEvidence()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusals:
    """Refusals in a row of one scope, which act once MIN_RECIPIENTS are refused."""

    scope: str
    """ACCOUNT, RATE, or a provider's scope."""
    recipients: int
    """Different recipients that were refused since the last acceptance."""
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitState:
    """State of one circuit, for the console."""

    name: str
    state: State
    failures: int
    """Failures in the minute before now, or before the circuit opened."""
    successes: int
    opened_at: datetime | None = None
    open_until: datetime | None = None
    openings: int = 0
    reason: str | None = None
    refusals: Sequence[Refusals] = ()
    """Evidence that isn't enough yet."""
    paused_until: datetime | None = None
    """End of the rate limit of a scope."""

    @property
    def account(self) -> str:
        """The provider account."""
        return _split(self.name)[0]

    @property
    def scope(self) -> str:
        """The scope, or ACCOUNT."""
        return _split(self.name)[1]


def request_permissions(circuits: Sequence[str], *, now: datetime) -> Mapping[str, Permission]:
    """Return the permission of each circuit. The caller must return a ``Probe`` it does not use."""
    names, token = list(dict.fromkeys(circuits)), new_token()
    if not names:
        return {}
    times = (PROBE_LEASE, PROBE_CHECK, LONGEST_WAIT)
    args: list[str | int] = [valkey.to_milliseconds(now), token]
    args += [duration // _MILLISECOND for duration in times]
    try:
        answers = valkey.run(_PERMISSION_SCRIPT, keys=[_key(name) for name in names], args=args)
    except valkey.Unavailable:
        return dict.fromkeys(names, Allowed())
    return {name: _permission(answer, token) for name, answer in zip(names, answers, strict=True)}


class CircuitReporter:
    """Reports results to circuits; safe for many threads of one process."""

    def __init__(self) -> None:
        self._has_refused: dict[str, bool] = {}
        """By account: whether it has refused recipients. If not, acceptances need no names."""
        self._watched: dict[str, dict[str, datetime]] = {}
        """By account: scopes that have just failed, and until when their results are counted."""

    def record(
        self,
        name: str,
        *,
        successes: int,
        failures: int,
        now: datetime,
        probe: Probe | None = None,
        reason: str = "",
        evidence: CircuitEvidence = NO_EVIDENCE,
    ) -> Mapping[str, Recipients]:
        """Count results, which can open or close the circuit.

        While the circuit is open or half open, only the result of ``probe`` counts: the other
        requests began earlier. ``reason`` must not contain an address.

        Return the scopes, other than the account's circuit, against which there is enough evidence
        now, with the refused recipients.
        """
        token = probe.token if probe else ""
        refused, disproved, forgiven = (
            {scope: list(keys) for scope, keys in some.items()}
            for some in (evidence.refused, evidence.disproved, evidence.forgiven)
        )
        parts = [refused, list(evidence.failed), disproved, forgiven]
        found = json.dumps(parts) if any(parts) else ""
        accepted = json.dumps(list(evidence.accepted))
        command = ("record", successes, failures, token, accepted, found)
        proven = self._change(name, now, reason, command)
        return {
            _text(proven[at]): proven[at + 1].decode().split(",") for at in range(0, len(proven), 2)
        }

    def trip(
        self,
        name: str,
        *,
        now: datetime,
        retry_after: float | None,
        reason: str = "",
        refused: Recipients = (),
        is_doubted: bool = False,
    ) -> None:
        """Open the circuit at once, because of invalid credentials, quota, or configuration.

        It stays open for at least ``retry_after`` seconds, capped at one day. ``is_doubted``:
        because of evidence.
        """
        pause = math.ceil(1000 * min(max(0.0, retry_after or 0.0), MAX_RETRY_AFTER))
        self._change(name, now, reason, ["trip", pause, ",".join(refused), int(is_doubted)])

    def pause(self, name: str, *, now: datetime, retry_after: float | None) -> None:
        """Let no message to a scope be sent for a time, because of a rate limit."""
        pause = math.ceil(1000 * min(max(0.0, retry_after or 0.0), MAX_RETRY_AFTER))
        self._change(name, now, "", ["pause", pause])

    def return_probe(self, name: str, *, probe: Probe, now: datetime) -> None:
        """Give an unused probe back, so that another caller gets it at once."""
        self.record(name, successes=0, failures=0, probe=probe, now=now)

    def share_probe(self, name: str, *, probe: Probe, now: datetime) -> None:
        """Let others take a probe over that a refused recipient uses: they need not wait for it."""
        self._change(name, now, "", ["share", probe.token])

    def watch(self, account: str, scopes: Collection[str], *, now: datetime) -> None:
        """Count the results of scopes for a time, because they fail. Others have no circuit."""
        if scopes:
            known = {scope: until for scope, until in self._of(account).items() if until > now}
            self._watched[account] = known | dict.fromkeys(scopes, now + WINDOW)

    def watched(self, account: str, *, now: datetime) -> frozenset[str]:
        """Return the scopes of an account whose results are counted."""
        return frozenset(scope for scope, until in self._of(account).items() if until > now)

    def _of(self, account: str) -> Mapping[str, datetime]:
        return self._watched.get(account, {})

    def has_refused(self, name: str) -> bool:
        """Return whether a circuit's account has refused recipients, as this process knows."""
        return self._has_refused.get(_split(name)[0], False)

    def _change(
        self, name: str, now: datetime, reason: str, command: Sequence[str | int]
    ) -> Sequence[bytes]:
        reason, (account, scope) = reason[:REASON_LENGTH], _split(name)
        keys = [_key(name), _INDEX, _refused_key(account), _index(account)]
        args: list[str | int] = [name, valkey.to_milliseconds(now), _RULES, reason, scope, *command]
        try:
            until, has_refused, *proven = valkey.run(_CHANGE_SCRIPT, keys=keys, args=args)
        except valkey.Unavailable:
            return ()
        self._has_refused[account] = bool(has_refused)
        if until == 0:
            log.info("circuit_closed", circuit=name, by="probe")
        elif until > 0:
            at = valkey.from_milliseconds(until).isoformat()
            log.warning("circuit_opened", circuit=name, until=at, reason=reason)
        return proven


def take_places(
    lines: Mapping[tuple[str, datetime], int], *, now: datetime
) -> Mapping[tuple[str, datetime], int]:
    """Let so many messages wait in each line: those of an account that are held until a time.

    Return the first place of them in each, from 0. Without Valkey, each line is empty.
    """
    try:
        with valkey.connection() as client, client.pipeline(transaction=False) as pipe:
            for (account, until), count in lines.items():
                key = f"circuit_line:{account}:{valkey.to_milliseconds(until)}"
                pipe.incrby(key, count)
                pipe.expire(key, until - now + CIRCUIT_TTL)
            ends = pipe.execute()[::2]
    except valkey.Unavailable:
        return dict.fromkeys(lines, 0)
    return {line: end - lines[line] for line, end in zip(lines, ends, strict=True)}


def refused_among(
    circuits: Collection[str], recipients: Sequence[str], *, now: datetime
) -> Mapping[str, frozenset[str]]:
    """Return which of these recipients each circuit has refused in the last hour."""
    if not recipients:
        return {}
    since, latest = (valkey.to_milliseconds(at) for at in (now - EVIDENCE_TTL, now + LONGEST_WAIT))
    try:
        with valkey.connection() as client, client.pipeline(transaction=False) as pipe:
            for name in circuits:
                account, scope = _split(name)
                pipe.zmscore(
                    _refused_key(account), [f"{scope}/{recipient}" for recipient in recipients]
                )
            found = pipe.execute()
    except valkey.Unavailable:
        return {}
    return {
        name: frozenset(
            recipient
            for recipient, at in zip(recipients, times, strict=True)
            if at is not None and since < at <= latest
        )
        for name, times in zip(circuits, found, strict=True)
    }


def close(name: str) -> bool:
    """Close a circuit and delete its history, but for the refused recipients of the account.

    Return False if Valkey is unavailable.
    """
    try:
        with valkey.connection() as client:
            was_known = client.delete(_key(name))
    except valkey.Unavailable:
        return False
    if was_known:
        log.info("circuit_closed", circuit=name, by="operator")
    return True


def circuit_states(*, now: datetime) -> list[CircuitState] | None:
    """Return the circuits of accounts with a result in the last day, and those of their scopes.

    Return None if Valkey is unavailable.
    """
    since = valkey.to_milliseconds(now - LISTING_WINDOW)
    try:
        with valkey.connection() as client:
            listed = cast("list[bytes]", client.zrangebyscore(_INDEX, since, "+inf"))
            names = [_text(name) for name in listed]
            with client.pipeline(transaction=False) as pipe:
                for account in {_split(name)[0] for name in names}:
                    pipe.zrangebyscore(_index(account), since, "+inf")
                names += [_text(name) for scopes in pipe.execute() for name in scopes]
                for name in names:
                    pipe.hgetall(_key(name))
                found = pipe.execute()
    except valkey.Unavailable:
        return None
    # A scope's circuit that has ended is no news.
    circuits = [
        _state(name, fields, now=now)
        for name, fields in zip(names, found, strict=True)
        if fields or _SEPARATOR not in name
    ]
    return sorted(circuits, key=lambda circuit: circuit.name)


def open_reasons(circuits: Sequence[str]) -> Mapping[str, str]:
    """Return why each of these circuits opened, as far as it is known."""
    try:
        with valkey.connection() as client, client.pipeline(transaction=False) as pipe:
            for name in circuits:
                pipe.hget(_key(name), "reason")
            found = pipe.execute()
    except valkey.Unavailable:
        return {}
    return {name: _text(reason) for name, reason in zip(circuits, found, strict=True) if reason}


def circuit_name(provider: Provider, scope: str) -> str:
    """Return the name of the circuit of a scope at a provider."""
    return f"{provider.account}{_SEPARATOR}{scope}"


def _key(name: str) -> str:
    return f"circuit:{name}"


def _index(account: str) -> str:
    return f"circuit_scopes:{account}"


def _refused_key(account: str) -> str:
    return f"circuit_refused:{account}"


def _split(name: str) -> tuple[str, str]:
    """Return the account of a circuit, and its scope, or ACCOUNT."""
    account, _, scope = name.partition(_SEPARATOR)
    return account, scope


def recipient_key(claimed: ClaimedDelivery) -> str:
    """Return a keyed digest of the recipient of a delivery: its user ID, else its address."""
    if claimed.user_id is not None:
        return evidence_key(claimed.user_id)
    address = claimed.recipient.address(claimed.channel)
    return evidence_key(address_key(claimed.channel, address) if address else claimed.reference)


def evidence_key(text: str) -> str:
    """Return a short keyed digest, by which recipients are compared."""
    digest = encryption.keyed_digest(text.encode(errors="replace"), associated_data="circuits")
    return digest[:_KEY_LENGTH]


def _permission(answer: Sequence[Any], token: str) -> Permission:
    if answer[0] == _ALLOWED:
        return Allowed()
    kind, until, doubted, *refused = answer
    at = valkey.from_milliseconds(until)
    doubted_at = valkey.from_milliseconds(doubted) if doubted else None
    if kind in (_BLOCKED, _PAUSED):
        return Blocked(at, doubted_at=doubted_at, is_pause=kind == _PAUSED)
    keys = frozenset(key.decode() for key in refused)
    return Probe(token, keys, at + HEAD_START, doubted_at)


def _state(name: str, fields: Mapping[bytes, bytes], *, now: datetime) -> CircuitState:
    until = valkey.stored_instant(fields.get(b"until"), latest=now + LONGEST_WAIT)
    opened_at = valkey.stored_instant(fields.get(b"opened_at"), latest=now + LONGEST_WAIT)
    counted_at = opened_at if until is not None and opened_at is not None else now
    oldest = valkey.to_milliseconds(counted_at - WINDOW) // (BUCKET // _MILLISECOND)
    counts = {"s": 0, "f": 0}
    for key, number in fields.items():
        kind, bucket = _text(key[:1]), key[1:]
        if kind in counts and (valkey.stored_number(bucket, most=math.inf) or 0) > oldest:
            counts[kind] += int(valkey.stored_number(number, most=MAX_COUNT) or 0)
    paused_until = valkey.stored_instant(fields.get(b"paused"), latest=now + LONGEST_WAIT)
    state = State.CLOSED
    if until is not None:
        state = State.OPEN if now < until else State.HALF_OPEN
    return CircuitState(
        name=name,
        state=state,
        failures=counts["f"],
        successes=counts["s"],
        opened_at=None if until is None else counted_at,
        open_until=until,
        openings=int(valkey.stored_number(fields.get(b"openings"), most=MAX_COUNT) or 0),
        reason=_text(fields.get(b"reason", b"")) or None,
        refusals=_refusals(fields, now),
        paused_until=paused_until if paused_until is not None and now < paused_until else None,
    )


def _refusals(fields: Mapping[bytes, bytes], now: datetime) -> list[Refusals]:
    times: dict[str, list[datetime]] = {}
    for key, value in fields.items():
        scope, separator, _ = _text(key).removeprefix("e").rpartition("/")
        if key.startswith(b"e") and separator:
            at = valkey.stored_instant(value, latest=now + LONGEST_WAIT)
            if at is not None and at > now - EVIDENCE_TTL:
                times.setdefault(scope, []).append(at)
    return [
        Refusals(scope=scope, recipients=len(found), last_at=max(found))
        for scope, found in sorted(times.items())
    ]


def _text(stored: bytes) -> str:
    return stored.decode(errors="replace")
