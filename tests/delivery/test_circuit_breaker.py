"""Circuit breakers in Valkey: opening, probes, closing, and outages of Valkey."""

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from structlog.testing import capture_logs

from delivery import circuit_breaker
from delivery.circuit_breaker import (
    ACCOUNT,
    FIRST_WAIT,
    MAX_WAIT,
    MIN_RECIPIENTS,
    PROBE_CHECK,
    PROBE_LEASE,
    Allowed,
    Blocked,
    CircuitEvidence,
    CircuitReporter,
    Permission,
    Probe,
    State,
)
from notifyproject.platform import server_health, valkey
from tests.support.factories.notifications import NOON
from tests.support.fakes.valkey_faults import at_once, own_valkey, unavailable, unresponsive
from tests.support.tables import each_case
from tests.support.waiting import SHORT

pytestmark = pytest.mark.usefixtures("broker", "valkey_anew")


FCM = "fcm:1a2b3c4d"
IOS = "fcm:1a2b3c4d/ios"

SECOND, MINUTE, HOUR, DAY = (
    timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days")
)


def permission(after: timedelta = timedelta(), account: str = FCM) -> Permission:
    return circuit_breaker.request_permissions([account], now=NOON + after)[account]


FIVE = [circuit_breaker.evidence_key(str(n)) for n in range(MIN_RECIPIENTS)]


def record(
    successes: int = 0, failures: int = 0, after: timedelta = timedelta(), **more: Any
) -> None:
    """Record results; failures are those of five recipients."""
    more = {"evidence": CircuitEvidence(failed=FIVE if failures else ())} | more
    CircuitReporter().record(FCM, successes=successes, failures=failures, now=NOON + after, **more)


def trip(after: timedelta = timedelta(), retry_after: float | None = None) -> None:
    CircuitReporter().trip(FCM, now=NOON + after, retry_after=retry_after)


def probe(after: timedelta) -> Probe:
    given = permission(after)
    assert isinstance(given, Probe)
    return given


def only_state(after: timedelta = timedelta()) -> circuit_breaker.CircuitState:
    (state,) = circuit_breaker.circuit_states(now=NOON + after) or []
    return state


def test_unused_account_is_allowed() -> None:
    assert permission() == Allowed()


@pytest.mark.parametrize(
    ("successes", "failures", "opens"),
    [(0, 19, False), (0, 20, True), (20, 20, True), (21, 20, False), (999, 1000, True)],
)
def test_opens_at_20_failures_that_are_half_of_all(
    successes: int, failures: int, opens: bool
) -> None:
    record(successes, failures)
    assert permission() == (Blocked(NOON + FIRST_WAIT) if opens else Allowed())


def test_outcomes_of_all_processes_add_up() -> None:
    at_once(20, lambda: record(failures=1))
    assert permission() == Blocked(NOON + FIRST_WAIT)


def test_only_outcomes_of_the_last_minute_count() -> None:
    record(failures=19)
    record(failures=1, after=MINUTE)
    assert permission(MINUTE) == Allowed()
    record(failures=18, after=2 * MINUTE - 10 * SECOND)
    assert permission(2 * MINUTE - 10 * SECOND) == Allowed()
    record(failures=1, after=2 * MINUTE - 10 * SECOND)
    assert permission(2 * MINUTE - 10 * SECOND) == Blocked(NOON + 110 * SECOND + FIRST_WAIT)


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        *((retry_after, 30) for retry_after in (None, 0.0, -5.0, 29.0)),
        (120.0, 120),
        (3600.0, 3600),
        (1e300, 86_400),
        (float("inf"), 86_400),
        (float("nan"), 30),
    ],
)
def test_circuit_honours_retry_after_up_to_a_day(retry_after: float | None, wait: int) -> None:
    trip(retry_after=retry_after)
    assert permission() == Blocked(NOON + wait * SECOND)


def test_wait_doubles_up_to_fifteen_minutes() -> None:
    after, waits = timedelta(), []
    trip()
    for _ in range(100):
        blocked = permission(after)
        assert isinstance(blocked, Blocked)
        waits.append((blocked.until - NOON - after).total_seconds())
        after = blocked.until - NOON
        record(failures=1, after=after, probe=probe(after))
    assert waits == [30, 60, 120, 240, 480, *[900] * 95]


def test_failed_probe_can_trip_the_circuit_again() -> None:
    trip()
    assert isinstance(permission(FIRST_WAIT), Probe)
    trip(FIRST_WAIT)
    assert permission(FIRST_WAIT) == Blocked(NOON + 3 * FIRST_WAIT)


def test_late_failures_do_not_lengthen_the_wait() -> None:
    at_once(32, trip)
    record(failures=100, after=SECOND)
    assert permission(SECOND) == Blocked(NOON + FIRST_WAIT)
    assert only_state().openings == 1


def test_longer_retry_after_extends_an_open_circuit() -> None:
    trip()
    trip(SECOND, retry_after=60)
    trip(SECOND, retry_after=40)
    assert permission(SECOND) == Blocked(NOON + 61 * SECOND)


def test_one_caller_gets_the_probe_after_the_wait() -> None:
    trip()
    answers = at_once(32, lambda: permission(FIRST_WAIT))
    assert Counter(type(answer) for answer in answers) == {Probe: 1, Blocked: 31}
    others = {answer for answer in answers if isinstance(answer, Blocked)}
    assert others == {Blocked(NOON + FIRST_WAIT + PROBE_CHECK)}


def test_successful_probe_closes_the_circuit_and_clears_its_counts() -> None:
    record(failures=20)
    record(successes=1, after=FIRST_WAIT, probe=probe(FIRST_WAIT))
    assert permission(FIRST_WAIT) == Allowed()
    record(failures=19, after=FIRST_WAIT)
    assert permission(FIRST_WAIT) == Allowed()
    trip(FIRST_WAIT)
    assert permission(FIRST_WAIT) == Blocked(NOON + 2 * FIRST_WAIT)


def test_refusal_of_a_recipient_who_was_refused_before_closes_nothing() -> None:
    """A refusal for good is no failure, and no acceptance either."""
    record(evidence=CircuitEvidence(refused={circuit_breaker.ACCOUNT: dict.fromkeys(FIVE)}))
    again = {circuit_breaker.ACCOUNT: dict.fromkeys(FIVE[:1])}
    own = probe(FIRST_WAIT)
    record(successes=1, after=FIRST_WAIT, probe=own, evidence=CircuitEvidence(refused=again))
    assert permission(FIRST_WAIT) != Allowed()
    own = probe(FIRST_WAIT + PROBE_LEASE)
    mixed = CircuitEvidence(accepted=frozenset({circuit_breaker.ACCOUNT}), refused=again)
    record(successes=2, after=FIRST_WAIT + PROBE_LEASE, probe=own, evidence=mixed)
    assert permission(FIRST_WAIT + PROBE_LEASE) == Allowed()


@pytest.mark.parametrize("after", [SECOND, FIRST_WAIT, 2 * FIRST_WAIT])
def test_success_without_a_probe_does_not_close_the_circuit(after: timedelta) -> None:
    trip()
    record(successes=50, after=after)
    record(successes=50, after=after, probe=Probe("of another time"))
    assert permission(after) != Allowed()


def test_expired_probe_is_replaced() -> None:
    trip()
    dead = probe(FIRST_WAIT)
    replacement = probe(FIRST_WAIT + PROBE_LEASE)
    assert dead != replacement
    record(failures=1, after=FIRST_WAIT + PROBE_LEASE, probe=replacement)
    assert permission(2 * FIRST_WAIT) == Blocked(NOON + PROBE_LEASE + 3 * FIRST_WAIT)


def test_replaced_probe_is_ignored() -> None:
    trip()
    late = probe(FIRST_WAIT)
    replacement = probe(FIRST_WAIT + PROBE_LEASE)
    after = FIRST_WAIT + PROBE_LEASE + SECOND
    record(successes=1, after=after, probe=late)
    record(failures=1, after=after, probe=late)
    assert permission(after) == Blocked(NOON + after + PROBE_CHECK)
    record(successes=1, after=after, probe=replacement)
    assert permission(after) == Allowed()


def test_late_probe_counts_while_it_is_not_replaced() -> None:
    trip()
    record(successes=1, after=HOUR, probe=probe(FIRST_WAIT))
    assert permission(HOUR) == Allowed()


def test_returned_probe_is_given_out_at_once() -> None:
    trip()
    CircuitReporter().return_probe(FCM, probe=probe(FIRST_WAIT), now=NOON + FIRST_WAIT)
    assert isinstance(permission(FIRST_WAIT), Probe)


def test_accounts_are_checked_together_and_independently() -> None:
    CircuitReporter().trip(IOS, now=NOON, retry_after=None)
    accounts = [FCM, IOS, "smtp:9", IOS]
    assert circuit_breaker.request_permissions(accounts, now=NOON) == {
        FCM: Allowed(),
        IOS: Blocked(NOON + FIRST_WAIT),
        "smtp:9": Allowed(),
    }
    assert isinstance(permission(FIRST_WAIT, IOS), Probe)
    assert circuit_breaker.request_permissions([], now=NOON) == {}


def test_states_show_counts_reason_and_times() -> None:
    record(successes=3, failures=5)
    closed = only_state()
    assert (closed.state, closed.successes, closed.failures) == (State.CLOSED, 3, 5)
    assert (closed.opened_at, closed.open_until, closed.openings) == (None, None, 0)
    record(failures=15, after=SECOND, reason="HTTP 503")
    opened = only_state(HOUR)
    assert (opened.state, opened.failures, opened.reason) == (State.HALF_OPEN, 20, "HTTP 503")
    assert only_state(2 * SECOND).state is State.OPEN
    assert opened.opened_at == NOON + SECOND
    assert opened.open_until == NOON + SECOND + FIRST_WAIT
    record(failures=1, after=MINUTE, probe=probe(MINUTE))
    again = only_state(MINUTE)
    assert (again.openings, again.opened_at, again.reason) == (2, NOON + SECOND, "HTTP 503")


def test_shown_counts_are_of_the_last_minute() -> None:
    record(failures=5)
    assert only_state(50 * SECOND).failures == 5
    assert only_state(MINUTE).failures == 0


def test_accounts_are_listed_by_name_for_a_day() -> None:
    for hours, account in enumerate(["smtp:1", "fcm:2", "sendgrid:3"]):
        CircuitReporter().record(account, successes=1, failures=0, now=NOON + hours * HOUR)

    def listed(after: timedelta) -> list[str]:
        return [state.name for state in circuit_breaker.circuit_states(now=NOON + after) or []]

    assert listed(2 * HOUR) == ["fcm:2", "sendgrid:3", "smtp:1"]
    assert listed(DAY + HOUR) == ["fcm:2", "sendgrid:3"]


def test_closing_by_hand_allows_requests() -> None:
    trip(retry_after=3600)
    old = only_state()
    assert circuit_breaker.close(FCM)
    assert permission(SECOND) == Allowed()
    assert (old.state, only_state().state) == (State.OPEN, State.CLOSED)


def test_reason_is_truncated_and_made_valid_text() -> None:
    CircuitReporter().trip(FCM, now=NOON, retry_after=None, reason="\ud800é" * 500)
    assert only_state().reason == "?é" * 100


def test_opening_and_closing_are_logged_once() -> None:
    with capture_logs() as logs:
        trip()
        trip()
        record(failures=5)
        record(successes=1, after=FIRST_WAIT, probe=probe(FIRST_WAIT))
        record(successes=1, after=FIRST_WAIT)
    assert [entry["event"] for entry in logs] == ["circuit_opened", "circuit_closed"]


def test_circuit_keys_expire(broker: redis.Redis) -> None:
    record(successes=1)
    assert 0 < broker.pttl(f"circuit:{FCM}") <= 70_000
    trip(retry_after=1e9)
    most = (DAY + circuit_breaker.CIRCUIT_TTL) / timedelta(milliseconds=1)
    assert 0 < broker.pttl(f"circuit:{FCM}") <= most
    CircuitReporter().record("smtp:1", successes=1, failures=0, now=NOON + DAY + SECOND)
    assert broker.zrange("circuits", 0, -1) == [b"smtp:1"]


def test_unused_circuit_outlives_its_longest_wait(broker: redis.Redis) -> None:
    trip()
    assert broker.pttl(f"circuit:{FCM}") > MAX_WAIT / timedelta(milliseconds=1)


def call_everything() -> None:
    assert circuit_breaker.request_permissions([FCM, "smtp:1"], now=NOON) == {
        FCM: Allowed(),
        "smtp:1": Allowed(),
    }
    CircuitReporter().record(FCM, successes=1, failures=20, now=NOON)
    CircuitReporter().trip(FCM, now=NOON, retry_after=None)
    CircuitReporter().return_probe(FCM, probe=circuit_breaker.Probe("x"), now=NOON)
    assert not circuit_breaker.close(FCM)
    assert circuit_breaker.circuit_states(now=NOON) is None


def test_outage_of_valkey_allows_requests_and_is_logged_once() -> None:
    with unavailable(), capture_logs() as logs:
        call_everything()
        call_everything()
    assert [entry["event"] for entry in logs] == ["valkey_unavailable"]


def test_unresponsive_valkey_is_asked_once() -> None:
    with unresponsive() as valkey_there:
        for _ in range(10):
            call_everything()
        assert valkey_there.connections == 1


def test_unresponsive_valkey_times_out_for_all_threads_together() -> None:
    with unresponsive(brief=SHORT) as valkey_there:
        at_once(16, call_everything)
        assert 1 < valkey_there.most_at_once <= valkey_there.connections <= 16


def test_valkey_is_asked_again_after_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    trip()
    blocked = Blocked(NOON + FIRST_WAIT)
    assert permission() == blocked
    seconds = 100.0
    monkeypatch.setattr(server_health, "time", SimpleNamespace(monotonic=lambda: seconds))
    valkey._health.record_failure()
    assert permission() == Allowed()
    seconds += server_health.PAUSE_AFTER_FAILURE
    assert permission() == blocked


def test_scripts_are_reloaded_after_a_restart_of_valkey(tmp_path: Path) -> None:
    with own_valkey(tmp_path) as server:
        trip()
        server.kill()
        server.start()
        assert permission() == Allowed()
        trip()
        assert isinstance(permission(), Blocked)


def test_any_number_of_accounts_takes_one_round_trip(tmp_path: Path) -> None:
    accounts = [f"smtp:{number}" for number in range(20)]
    with own_valkey(tmp_path):
        circuit_breaker.request_permissions(accounts, now=NOON)
        valkey.client().config_resetstat()
        circuit_breaker.request_permissions(accounts, now=NOON)
        stats = valkey.client().info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 1
    assert stats.keys() == {"cmdstat_evalsha", "cmdstat_hmget", "cmdstat_config|resetstat"}


def test_key_of_another_type_blocks_no_request(broker: redis.Redis) -> None:
    broker.set(f"circuit:{FCM}", "not a circuit")
    call_everything()


class CircuitHistories(RuleBasedStateMachine):
    """Random histories: workers ask, send, crash, and report late, twice, or without a send."""

    def __init__(self) -> None:
        super().__init__()
        valkey.client().flushdb()
        self.now = NOON
        self.given: list[Probe] = []
        self.out: tuple[Probe, datetime] | None = None
        """The unreported probe and when it was issued."""
        self.was_open = False

    def report(self, **what: Any) -> None:
        record(after=self.now - NOON, **what)

    def is_open(self) -> bool:
        states = circuit_breaker.circuit_states(now=self.now) or []
        return any(state.state is not circuit_breaker.State.CLOSED for state in states)

    @rule(seconds=st.sampled_from([0.001, 1, 9, 30, 900, 14_400]))
    def time_passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.was_open = self.is_open()

    @rule()
    def wait_ends(self) -> None:
        for state in circuit_breaker.circuit_states(now=self.now) or []:
            self.now = max(self.now, state.open_until or self.now)

    @rule(pauses=st.lists(st.sampled_from([0, 9, 21, 29.999, 30]), max_size=6))
    def callers_ask_in_turn(self, pauses: list[float]) -> None:
        self.ask()
        for seconds in pauses:
            self.time_passes(seconds)
            self.ask()

    def ask(self) -> None:
        answer = permission(self.now - NOON)
        if isinstance(answer, Probe):
            assert self.was_open
            if self.out is not None:
                assert self.now - self.out[1] >= PROBE_LEASE, "two probes at a time"
            self.given.append(answer)
            self.out = (answer, self.now)
        elif isinstance(answer, Blocked):
            assert self.was_open
            assert self.now < answer.until <= self.now + timedelta(hours=1)
        else:
            assert not self.was_open

    @rule(successes=st.integers(0, 30), failures=st.integers(0, 30))
    def ordinary_sends_end(self, successes: int, failures: int) -> None:
        self.report(successes=successes, failures=failures)
        assert self.is_open() or not self.was_open, "closed without a probe"

    @rule(retry_after=st.none() | st.integers(0, 3600).map(float))
    def credentials_are_refused(self, retry_after: float | None) -> None:
        trip(self.now - NOON, retry_after)
        assert self.is_open()

    @rule(data=st.data(), succeeds=st.sampled_from([True, False, None]))
    def probe_reports(self, data: st.DataObject, succeeds: bool | None) -> None:
        """Report on a random probe of all issued so far; most have been reported before."""
        if not self.given:
            return
        probe = data.draw(st.sampled_from(self.given))
        self.report(successes=int(succeeds is True), failures=int(succeeds is False), probe=probe)
        if self.out is not None and probe == self.out[0]:
            self.out = None
        elif self.was_open:
            assert self.is_open(), "closed by a replaced probe"

    @rule()
    def closed_by_hand(self) -> None:
        assert circuit_breaker.close(FCM)
        assert not self.is_open()

    @invariant()
    def remember_whether_it_is_open(self) -> None:
        self.was_open = self.is_open()
        if not self.was_open:
            self.out = None

    def teardown(self) -> None:
        """Check that a successful probe closes the circuit after a wait and a lease at most."""
        answer = permission(self.now - NOON)
        for _ in range(2 + PROBE_LEASE // PROBE_CHECK):
            if isinstance(answer, Blocked):
                self.now = answer.until
                answer = permission(self.now - NOON)
        assert not isinstance(answer, Blocked)
        if isinstance(answer, Probe):
            self.report(successes=1, probe=answer)
        assert permission(self.now - NOON) == Allowed()


def test_any_history_has_one_probe_at_a_time_and_its_success_closes() -> None:
    run_state_machine_as_test(
        CircuitHistories,
        settings=settings(
            max_examples=25,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


ODD = (b"nan", b"-nan", b"inf", b"-5", b"1e300", b"9" * 40, b"", b"soon", b"\xff")
"""Stored values that are no number, negative, or huge."""
OPEN_FIELDS = ("until", "opened_at", "openings", "doubted", "probe", "probe_until", "reason")


@each_case("odd", ODD)
@each_case("field", [*OPEN_FIELDS, "trial_failures", "s", "f", "r", "e"])
def test_odd_stored_value_counts_as_absent(field: str, odd: bytes, broker: redis.Redis) -> None:
    bucket = str(valkey.to_milliseconds(NOON) // 10_000)
    names = {"s": f"s{bucket}", "f": f"f{bucket}", "r": f"r{FIVE[0]}", "e": f"eaccount/{FIVE[0]}"}
    broker.flushdb()
    with capture_logs() as logs:
        trip()
        assert isinstance(permission(FIRST_WAIT), Probe)
        broker.hset(f"circuit:{FCM}", names.get(field, field), odd)
        given = permission(2 * SECOND)
        assert isinstance(given, Allowed if field == "until" else Blocked)
        assert only_state().state is (State.CLOSED if field == "until" else State.OPEN)
        circuit_breaker.open_reasons([FCM])
        record(failures=1, after=SECOND)
        trip(after=FIRST_WAIT)
        assert isinstance(permission(FIRST_WAIT + SECOND), Blocked)
        token = permission(10 * MINUTE)
        if isinstance(token, Probe):
            record(successes=1, after=10 * MINUTE, probe=token)
        # Closed, and counting as ever.
        circuit_breaker.close(FCM)
        broker.hset(f"circuit:{FCM}", names.get(field, field), odd)
        record(successes=1, after=SECOND)
        assert permission(SECOND) == Allowed()
        record(failures=40, after=SECOND)
        assert isinstance(permission(2 * SECOND), Blocked)
        assert only_state(2 * SECOND).failures == 40
    assert "valkey_unavailable" not in {entry["event"] for entry in logs}


@pytest.mark.parametrize("odd", [float("inf"), float("-inf"), 1e300, -5.0])
def test_odd_time_of_a_refused_recipient_counts_as_absent(odd: float, broker: redis.Redis) -> None:
    for recipient in FIVE:
        broker.zadd(f"circuit_refused:{FCM}", {f"account/{recipient}": odd})
    refused = circuit_breaker.refused_among([FCM], FIVE, now=NOON)
    assert refused == {FCM: frozenset()}
    record(successes=1, evidence=CircuitEvidence(refused={ACCOUNT: FIVE}))
    assert isinstance(permission(SECOND), Blocked)


def test_nobody_is_refused_among_nobody() -> None:
    trip()
    assert circuit_breaker.refused_among([FCM], [], now=NOON) == {}
    assert isinstance(permission(after=SECOND), Blocked)
