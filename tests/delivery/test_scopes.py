"""Scopes: a platform, a host, or a room that fails concerns neither the account nor the others."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest
import redis
from bson import ObjectId

from delivery import circuit_breaker, feedback, rate_limiter, routing
from delivery.circuit_breaker import (
    ACCOUNT,
    FIRST_WAIT,
    MAX_EVIDENCE,
    MAX_SCOPES,
    MIN_FAILURES,
    MIN_RECIPIENTS,
    WINDOW,
    Allowed,
    Blocked,
    CircuitEvidence,
    CircuitReporter,
    Permission,
    State,
    evidence_key,
)
from delivery.results import TargetResult
from delivery.runtime import SendingRuntime
from delivery.sending import PreparedDelivery
from domain.channels import Channel
from domain.errors import Reach
from domain.states import Priority
from domain.wait_reasons import WaitReason
from providers.contract import Message, SendTarget
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import claimed_delivery
from tests.support.factories.routes import choose, one, several
from tests.support.fakes.provider import (
    Outcome,
    ScriptedProvider,
    accepted,
    channel_unavailable,
    provider_error,
    rate_limited,
    timeout,
)
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker", "valkey_anew")

SECOND, MINUTE, HOUR, DAY = (
    timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days")
)
NAMES = ("ops", "account", "rate", "push.example:443", "a,b", "a/b/1f", "Zoë's room", "%w+")
"""Scopes that a storage format could take for something else."""


def circuit(provider: ScriptedProvider, scope: str) -> str:
    return circuit_breaker.circuit_name(provider, scope)


def permission(name: str, after: timedelta = timedelta()) -> Permission:
    return circuit_breaker.request_permissions([name], now=NOON + after)[name]


def report(
    provider: ScriptedProvider,
    *outcomes: Outcome,
    scope: str,
    after: timedelta = timedelta(),
    runtime: SendingRuntime | None = None,
) -> None:
    """Report the outcomes of messages to a scope that is one recipient, such as a room."""
    sent = []
    for outcome in outcomes:
        claim = claimed_delivery(
            channel=Channel.PUSH, notification_id=ObjectId(), user_id=f"room {scope}"
        )
        at = NOON + after
        result = TargetResult(
            device_id=None,
            outcome=outcome,
            started_at=at,
            finished_at=at,
            duration_ms=1,
            scope=scope,
        )
        message = Message(subject=None, text="")
        sent.append((PreparedDelivery(claimed=claim, message=message, targets=()), result))
    feedback.report_provider_health(
        runtime or SendingRuntime(), provider, sent, probes={}, now=NOON + after
    )


@pytest.mark.parametrize("make", [provider_error, timeout])
def test_failing_room_opens_its_own_circuit_alone(
    fcm: ScriptedProvider, make: Callable[..., Outcome]
) -> None:
    for _ in range(5):
        report(fcm, *[make(scope="ops")] * MIN_FAILURES, scope="ops")
    assert permission(circuit(fcm, "ops")) == Blocked(NOON + FIRST_WAIT)
    assert permission(fcm.account) == Allowed()
    assert permission(circuit(fcm, "dev")) == Allowed()


def test_failures_of_a_scope_are_weighed_against_its_successes(fcm: ScriptedProvider) -> None:
    runtime = SendingRuntime()
    for _ in range(MIN_FAILURES):
        report(fcm, provider_error(scope="host"), scope="host", runtime=runtime)
        report(fcm, *[accepted()] * 3, scope="host", runtime=runtime)
    assert permission(circuit(fcm, "host")) == Allowed()


def test_successes_of_a_healthy_scope_are_not_stored(
    fcm: ScriptedProvider, broker: redis.Redis
) -> None:
    runtime = SendingRuntime()
    report(fcm, accepted(), scope="dev", runtime=runtime)
    assert broker.exists(f"circuit:{circuit(fcm, 'dev')}") == 0
    report(fcm, provider_error(scope="dev"), scope="dev", runtime=runtime)
    report(fcm, accepted(), scope="dev", after=WINDOW, runtime=runtime)
    (state,) = [s for s in circuit_breaker.circuit_states(now=NOON) or [] if s.scope]
    assert (state.scope, state.failures, state.successes) == ("dev", 1, 0)


@pytest.mark.parametrize("scope", NAMES)
def test_any_text_is_a_scope(fcm: ScriptedProvider, scope: str) -> None:
    report(fcm, channel_unavailable(scope=scope), scope=scope)
    assert permission(circuit(fcm, scope)) == Blocked(NOON + FIRST_WAIT)
    assert permission(fcm.account) == Allowed()
    states = circuit_breaker.circuit_states(now=NOON) or []
    (state,) = [state for state in states if state.state is State.OPEN]
    assert (state.account, state.scope) == (fcm.account, scope)


@each_case("scope", NAMES)
def test_evidence_of_any_scope_is_its_own(fcm: ScriptedProvider, scope: str) -> None:
    keys = [evidence_key(str(n)) for n in range(MIN_RECIPIENTS)]
    record = partial(CircuitReporter().record, fcm.account, successes=0, failures=0, now=NOON)
    most = CircuitEvidence(refused={scope: keys[:-1]})
    assert record(evidence=most) == {}
    assert record(evidence=CircuitEvidence(refused={ACCOUNT: keys[-1:]})) == {}
    proven = record(evidence=CircuitEvidence(refused={scope: keys[-1:]}))
    assert {name: set(found) for name, found in proven.items()} == {scope: set(keys)}
    assert permission(fcm.account) == Allowed()


@each_case("scope", NAMES)
def test_acceptance_clears_the_evidence_of_its_scope(fcm: ScriptedProvider, scope: str) -> None:
    keys = [evidence_key(str(n)) for n in range(MIN_RECIPIENTS)]
    record = partial(CircuitReporter().record, fcm.account, failures=0, now=NOON)
    record(successes=0, evidence=CircuitEvidence(refused={scope: keys[:-1]}))
    record(successes=1, evidence=CircuitEvidence(accepted=[scope]))
    assert record(successes=0, evidence=CircuitEvidence(refused={scope: keys[-1:]})) == {}


def test_rate_limit_of_a_room_pauses_the_room_alone(fcm: ScriptedProvider) -> None:
    report(fcm, rate_limited(scope="ops", retry_after=20), scope="ops")
    assert permission(circuit(fcm, "ops")) == Blocked(NOON + 20 * SECOND, is_pause=True)
    assert permission(circuit(fcm, "dev")) == Allowed()
    assert permission(fcm.account) == Allowed()
    status = (rate_limiter.rate_statuses([fcm.account], now=NOON) or {})[fcm.account]
    assert (status.share, status.blocked_until) == (1.0, None)


def test_pause_needs_no_probe_at_its_end(fcm: ScriptedProvider) -> None:
    report(fcm, rate_limited(scope="ops", retry_after=20), scope="ops")
    assert permission(circuit(fcm, "ops"), 20 * SECOND) == Allowed()


def test_pauses_without_a_time_double_until_a_minute_passes_without_one(
    fcm: ScriptedProvider,
) -> None:
    name, after, waits = circuit(fcm, "ops"), timedelta(), []
    for _ in range(9):
        report(fcm, rate_limited(scope="ops"), scope="ops", after=after)
        blocked = permission(name, after)
        assert isinstance(blocked, Blocked)
        waits.append((blocked.until - NOON - after).total_seconds())
        after = blocked.until - NOON
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_answers_in_flight_do_not_double_a_pause(fcm: ScriptedProvider) -> None:
    for retry_after in (5, 9, 2):
        report(fcm, rate_limited(scope="ops", retry_after=retry_after), scope="ops")
    assert permission(circuit(fcm, "ops")) == Blocked(NOON + 9 * SECOND, is_pause=True)


def test_refusal_of_a_recipient_pauses_nobody(fcm: ScriptedProvider) -> None:
    error = rate_limited(scope="ops", retry_after=20, reach=Reach.RECIPIENT)
    report(fcm, error, scope="ops")
    assert permission(circuit(fcm, "ops")) == Allowed()


def test_circuit_of_a_pause_expires_after_it(fcm: ScriptedProvider, broker: redis.Redis) -> None:
    report(fcm, rate_limited(scope="ops", retry_after=600), scope="ops")
    report(fcm, provider_error(scope="ops"), scope="ops")
    left = broker.pttl(f"circuit:{circuit(fcm, 'ops')}")
    assert 10 * 60_000 < left <= 11 * 60_000


def test_paused_room_waits_without_delaying_others(first: ScriptedProvider) -> None:
    name = circuit(first, "ops")
    CircuitReporter().pause(name, now=NOON, retry_after=20)
    claims = several(3)
    (route,), (waiting,) = choose(claims, first, platforms=[["dev"], ["ops"], ["hr"]])
    assert route.claims == [claims[0], claims[2]]
    assert (waiting.claimed, waiting.next_attempt_at) == (claims[1], NOON + 20 * SECOND)
    assert (waiting.held_reason, waiting.hold) == (WaitReason.RATE_LIMITED, None)


@pytest.mark.parametrize("in_batches", [1, 3])
def test_who_waits_for_a_scope_follows_its_probe_one_by_one(
    first: ScriptedProvider, in_batches: int
) -> None:
    """If thousands were due at once, those of healthy scopes would wait behind them."""
    until = NOON + 5 * MINUTE
    CircuitReporter().trip(circuit(first, "apple"), now=NOON, retry_after=300)
    times = []
    for _ in range(in_batches):
        claims = several(6 // in_batches)
        _, held = choose(claims, first, platforms=[["apple"]] * len(claims))
        assert [unsent.claimed for unsent in held] == claims
        times += [unsent.next_attempt_at for unsent in held]
    later = until + circuit_breaker.PROBE_CHECK
    assert times == [until, *(later + place * SECOND / 100 for place in range(1, 6))]


def test_who_waits_for_the_rate_of_a_room_follows_one_by_one(first: ScriptedProvider) -> None:
    CircuitReporter().pause(circuit(first, "ops"), now=NOON, retry_after=5)
    _, waiting = choose(several(3), first, platforms=[["ops"]] * 3)
    assert [unsent.next_attempt_at for unsent in waiting] == [
        NOON + 5 * SECOND + place * SECOND / 100 for place in range(3)
    ]


def test_code_is_due_with_the_probe_of_its_scope(first: ScriptedProvider) -> None:
    CircuitReporter().trip(circuit(first, "apple"), now=NOON, retry_after=300)
    claims = [*several(2), one(priority=Priority.CRITICAL)]
    _, held = choose(claims, first, platforms=[["apple"]] * 3)
    at = {unsent.claimed.reference: unsent.next_attempt_at for unsent in held}
    first_one, _, code = (claim.reference for claim in claims)
    assert at[first_one] == at[code] == NOON + 5 * MINUTE


def test_nobody_waits_in_line_if_nothing_else_is_sent(first: ScriptedProvider) -> None:
    CircuitReporter().trip(first.account, now=NOON, retry_after=300)
    _, held = choose(several(3), first)
    assert {unsent.next_attempt_at for unsent in held} == {NOON + 5 * MINUTE}


@each_case("room, code", [("ops", "recipient_rate_limited"), ("", "rate_limited")])
def test_only_a_room_is_a_recipient_of_its_own(
    first: ScriptedProvider, room: str, code: str
) -> None:
    """Behind a country or the host of a push service are many recipients."""
    CircuitReporter().pause(circuit(first, "ops"), now=NOON, retry_after=20)
    claim = one()
    targets = {claim.reference: (SendTarget(address="x", platform="ops", room=room),)}
    _, (waiting,) = routing.choose_routes(
        SendingRuntime(), [claim], providers=[first], targets=targets, paused={}, now=NOON
    )
    assert waiting.code == code


def test_open_circuit_outlasts_a_pause(first: ScriptedProvider) -> None:
    name = circuit(first, "ops")
    CircuitReporter().pause(name, now=NOON, retry_after=5)
    CircuitReporter().trip(name, now=NOON, retry_after=60)
    assert permission(name) == Blocked(NOON + MINUTE)
    _, (held,) = choose([one()], first, platforms=[["ops"]])
    assert held.held_reason is WaitReason.CIRCUIT_OPEN


def test_thousands_of_dead_rooms_take_a_bounded_space(
    fcm: ScriptedProvider, broker: redis.Redis
) -> None:
    reporter, key = CircuitReporter(), evidence_key("recipient")
    for n in range(MAX_SCOPES + 50):
        reporter.trip(circuit(fcm, f"room-{n}"), now=NOON + n * SECOND, retry_after=None)
    for start in range(0, MAX_EVIDENCE + 50, 50):
        refused = {f"room-{n}": [key] for n in range(start, start + 50)}
        reporter.record(
            fcm.account,
            successes=0,
            failures=0,
            now=NOON + start * SECOND,
            evidence=CircuitEvidence(refused=refused),
        )
    listed = broker.zrange(f"circuit_scopes:{fcm.account}", 0, -1)
    assert len(listed) == MAX_SCOPES
    assert listed[-1].decode().endswith(f"/room-{MAX_SCOPES + 49}")
    assert broker.hlen(f"circuit:{fcm.account}") == MAX_EVIDENCE
    assert broker.hexists(f"circuit:{fcm.account}", f"eroom-{MAX_EVIDENCE + 49}/{key}")
    assert broker.zrange("circuits", 0, -1) == [fcm.account.encode()]


def test_closed_circuit_of_a_scope_is_forgotten(fcm: ScriptedProvider) -> None:
    name = circuit(fcm, "ops")
    CircuitReporter().trip(name, now=NOON, retry_after=None)
    probe = permission(name, FIRST_WAIT)
    assert isinstance(probe, circuit_breaker.Probe)
    CircuitReporter().record(
        name,
        successes=1,
        failures=0,
        now=NOON + FIRST_WAIT,
        probe=probe,
        evidence=CircuitEvidence(accepted=[ACCOUNT]),
    )
    assert [s.scope for s in circuit_breaker.circuit_states(now=NOON + FIRST_WAIT) or []] == [""]
