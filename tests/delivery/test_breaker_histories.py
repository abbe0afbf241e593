"""Circuits after any history: one prober at a time, and always a way back."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from delivery import circuit_breaker
from delivery.circuit_breaker import MAX_WAIT, PROBE_LEASE, Allowed, Blocked, Probe
from notifyproject.platform import valkey
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("broker", "valkey_anew")

HOUR = 3600


class Histories(RuleBasedStateMachine):
    """Workers that ask, send, die, report late, report twice, and report what they never sent."""

    def __init__(self) -> None:
        super().__init__()
        valkey.client().flushdb()
        self.account = "fcm:1a2b3c4d"
        self.now = NOON
        self.given: list[Probe] = []
        self.out: tuple[Probe, datetime] | None = None
        """The probe that nobody reported on yet, and when it was given."""
        self.was_open = False

    def report(self, **what: Any) -> None:
        circuit_breaker.record(
            self.account, now=self.now, **{"successes": 0, "failures": 0, **what}
        )

    def is_open(self) -> bool:
        states = circuit_breaker.circuit_states(now=self.now) or []
        return any(state.state is not circuit_breaker.State.CLOSED for state in states)

    @rule(seconds=st.sampled_from([0.001, 1, 9, 30, 900, 4 * HOUR]))
    def time_passes(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.was_open = self.is_open()

    @rule()
    def the_wait_ends(self) -> None:
        for state in circuit_breaker.circuit_states(now=self.now) or []:
            self.now = max(self.now, state.open_until or self.now)

    @rule(pauses=st.lists(st.sampled_from([0, 9, 21, 29.999, 30]), max_size=6))
    def some_ask_in_turn(self, pauses: list[float]) -> None:
        self.ask()
        for seconds in pauses:
            self.time_passes(seconds)
            self.ask()

    def ask(self) -> None:
        answer = circuit_breaker.request_permissions([self.account], now=self.now)[self.account]
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
    def sends_of_the_usual_kind_end(self, successes: int, failures: int) -> None:
        self.report(successes=successes, failures=failures)
        assert self.is_open() or not self.was_open, "closed by one who was not asked to"

    @rule(retry_after=st.none() | st.integers(0, HOUR).map(float))
    def credentials_are_refused(self, retry_after: float | None) -> None:
        circuit_breaker.trip(self.account, now=self.now, retry_after=retry_after)
        assert self.is_open()

    @rule(data=st.data(), works=st.sampled_from([True, False, None]))
    def a_prober_reports(self, data: st.DataObject, works: bool | None) -> None:
        """Report on a probe that was given at some time; on most of them somebody did before."""
        if not self.given:
            return
        probe = data.draw(st.sampled_from(self.given))
        self.report(successes=int(works is True), failures=int(works is False), probe=probe)
        if self.out is not None and probe == self.out[0]:
            self.out = None
        elif self.was_open:
            assert self.is_open(), "closed by a prober who was given up"

    @rule()
    def an_operator_closes_it(self) -> None:
        assert circuit_breaker.close(self.account)
        assert not self.is_open()

    @invariant()
    def it_is_remembered_whether_it_is_open(self) -> None:
        self.was_open = self.is_open()
        if not self.was_open:
            self.out = None

    def teardown(self) -> None:
        """From here, too, a probe that arrives leads back: after two waits at most."""
        answer = circuit_breaker.request_permissions([self.account], now=self.now)[self.account]
        for _ in range(2):
            if isinstance(answer, Blocked):
                self.now = answer.until
                answer = circuit_breaker.request_permissions([self.account], now=self.now)[
                    self.account
                ]
        assert not isinstance(answer, Blocked)
        if isinstance(answer, Probe):
            self.report(successes=1, probe=answer)
        assert (
            circuit_breaker.request_permissions([self.account], now=self.now)[self.account]
            == Allowed()
        )


def test_after_any_history_one_probes_at_a_time_and_its_success_closes() -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=100,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


def test_no_wait_is_longer_than_the_longest_unless_the_provider_asks() -> None:
    now = NOON
    circuit_breaker.trip("fcm:1", now=now, retry_after=None)
    for _ in range(100):
        blocked = circuit_breaker.request_permissions(["fcm:1"], now=now)["fcm:1"]
        assert isinstance(blocked, Blocked)
        assert blocked.until - now <= MAX_WAIT
        now = blocked.until
        probe = circuit_breaker.request_permissions(["fcm:1"], now=now)["fcm:1"]
        assert isinstance(probe, Probe)
        circuit_breaker.record("fcm:1", successes=0, failures=1, now=now, probe=probe)
