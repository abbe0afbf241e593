"""Circuits in Valkey: when one opens, who may try again, and how it closes."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
import redis
from structlog.testing import capture_logs

from delivery import circuit_breaker
from delivery.circuit_breaker import (
    FIRST_WAIT,
    MAX_WAIT,
    PROBE_LEASE,
    Allowed,
    Blocked,
    Permission,
    Probe,
    State,
)
from tests.support.factories.notifications import NOON
from tests.support.fakes.valkey_faults import at_once

pytestmark = pytest.mark.usefixtures("broker", "valkey_anew")

FCM = "fcm:1a2b3c4d"
IOS = "fcm:1a2b3c4d:ios"
SECOND, MINUTE, HOUR, DAY = (
    timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days")
)


def permission(after: timedelta = timedelta(), account: str = FCM) -> Permission:
    return circuit_breaker.request_permissions([account], now=NOON + after)[account]


def record(
    successes: int = 0, failures: int = 0, after: timedelta = timedelta(), **more: Any
) -> None:
    circuit_breaker.record(FCM, successes=successes, failures=failures, now=NOON + after, **more)


def trip(after: timedelta = timedelta(), retry_after: float | None = None) -> None:
    circuit_breaker.trip(FCM, now=NOON + after, retry_after=retry_after)


def probe(after: timedelta) -> Probe:
    given = permission(after)
    assert isinstance(given, Probe)
    return given


def the_state(after: timedelta = timedelta()) -> circuit_breaker.CircuitState:
    (state,) = circuit_breaker.circuit_states(now=NOON + after) or []
    return state


def test_an_account_nobody_has_used_may_be_used() -> None:
    assert permission() == Allowed()


@pytest.mark.parametrize(
    ("successes", "failures", "opens"),
    [(0, 19, False), (0, 20, True), (20, 20, True), (21, 20, False), (999, 1000, True)],
)
def test_it_opens_at_20_failures_that_are_half_of_all(
    successes: int, failures: int, opens: bool
) -> None:
    record(successes, failures)
    assert permission() == (Blocked(NOON + FIRST_WAIT) if opens else Allowed())


def test_outcomes_of_all_processes_add_up() -> None:
    at_once(20, lambda: record(failures=1))
    assert permission() == Blocked(NOON + FIRST_WAIT)


def test_only_the_last_minute_counts() -> None:
    record(failures=19)
    record(failures=1, after=MINUTE)
    assert permission(MINUTE) == Allowed()
    record(failures=18, after=2 * MINUTE - 10 * SECOND)
    assert permission(2 * MINUTE - 10 * SECOND) == Allowed()
    record(failures=1, after=2 * MINUTE - 10 * SECOND)
    assert permission(2 * MINUTE - 10 * SECOND) == Blocked(NOON + 110 * SECOND + FIRST_WAIT)


def test_credentials_that_are_refused_open_it_at_once() -> None:
    trip()
    assert permission() == Blocked(NOON + FIRST_WAIT)


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        (None, 30),
        (0.0, 30),
        (-5.0, 30),
        (29.0, 30),
        (120.0, 120),
        (3600.0, 3600),
        (1e300, 86_400),
        (float("inf"), 86_400),
        (float("nan"), 30),
    ],
)
def test_it_stays_open_for_as_long_as_the_provider_asks(
    retry_after: float | None, wait: int
) -> None:
    trip(retry_after=retry_after)
    assert permission() == Blocked(NOON + wait * SECOND)


def test_each_wait_is_twice_the_one_before_up_to_a_quarter_of_an_hour() -> None:
    after, waits = timedelta(), []
    trip()
    for _ in range(7):
        blocked = permission(after)
        assert isinstance(blocked, Blocked)
        waits.append((blocked.until - NOON - after).total_seconds())
        after = blocked.until - NOON
        record(failures=1, after=after, probe=probe(after))
    assert waits == [30, 60, 120, 240, 480, 900, 900]


def test_a_probe_that_meets_the_same_again_may_trip_it() -> None:
    trip()
    assert isinstance(permission(FIRST_WAIT), Probe)
    trip(FIRST_WAIT)
    assert permission(FIRST_WAIT) == Blocked(NOON + 3 * FIRST_WAIT)


def test_those_in_flight_when_it_opened_do_not_lengthen_the_wait() -> None:
    at_once(32, trip)
    record(failures=100, after=SECOND)
    assert permission(SECOND) == Blocked(NOON + FIRST_WAIT)
    assert the_state().openings == 1


def test_but_one_of_them_may_ask_for_more_time() -> None:
    trip()
    trip(SECOND, retry_after=60)
    trip(SECOND, retry_after=40)
    assert permission(SECOND) == Blocked(NOON + 61 * SECOND)


def test_after_the_wait_one_of_any_number_may_send_one() -> None:
    trip()
    answers = at_once(32, lambda: permission(FIRST_WAIT))
    assert Counter(type(answer) for answer in answers) == {Probe: 1, Blocked: 31}
    others = {answer for answer in answers if isinstance(answer, Blocked)}
    assert others == {Blocked(NOON + FIRST_WAIT + PROBE_LEASE)}


def test_a_probe_that_arrives_closes_it_and_the_past_is_forgotten() -> None:
    record(failures=20)
    record(successes=1, after=FIRST_WAIT, probe=probe(FIRST_WAIT))
    assert permission(FIRST_WAIT) == Allowed()
    record(failures=19, after=FIRST_WAIT)
    assert permission(FIRST_WAIT) == Allowed()
    trip(FIRST_WAIT)
    assert permission(FIRST_WAIT) == Blocked(NOON + 2 * FIRST_WAIT)


@pytest.mark.parametrize("after", [SECOND, FIRST_WAIT, 2 * FIRST_WAIT])
def test_a_success_from_before_it_opened_does_not_close_it(after: timedelta) -> None:
    trip()
    record(successes=50, after=after)
    record(successes=50, after=after, probe=Probe("of another time"))
    assert permission(after) != Allowed()


def test_a_prober_that_died_is_followed_by_another() -> None:
    trip()
    dead = probe(FIRST_WAIT)
    heir = probe(FIRST_WAIT + PROBE_LEASE)
    assert dead != heir
    record(failures=1, after=FIRST_WAIT + PROBE_LEASE, probe=heir)
    assert permission(2 * FIRST_WAIT) == Blocked(NOON + PROBE_LEASE + 3 * FIRST_WAIT)


def test_a_prober_who_was_given_up_is_not_heard_any_more() -> None:
    trip()
    late = probe(FIRST_WAIT)
    heir = probe(FIRST_WAIT + PROBE_LEASE)
    after = FIRST_WAIT + PROBE_LEASE + SECOND
    record(successes=1, after=after, probe=late)
    record(failures=1, after=after, probe=late)
    assert permission(after) == Blocked(NOON + FIRST_WAIT + 2 * PROBE_LEASE)
    record(successes=1, after=after, probe=heir)
    assert permission(after) == Allowed()


def test_a_late_prober_whom_nobody_followed_is_heard() -> None:
    trip()
    record(successes=1, after=HOUR, probe=probe(FIRST_WAIT))
    assert permission(HOUR) == Allowed()


def test_a_probe_that_was_not_used_goes_to_another_at_once() -> None:
    trip()
    circuit_breaker.return_probe(FCM, probe=probe(FIRST_WAIT), now=NOON + FIRST_WAIT)
    assert isinstance(permission(FIRST_WAIT), Probe)


def test_accounts_are_asked_about_together_and_do_not_touch_each_other() -> None:
    circuit_breaker.trip(IOS, now=NOON, retry_after=None)
    accounts = [FCM, IOS, "smtp:9", IOS]
    assert circuit_breaker.request_permissions(accounts, now=NOON) == {
        FCM: Allowed(),
        IOS: Blocked(NOON + FIRST_WAIT),
        "smtp:9": Allowed(),
    }
    assert isinstance(
        circuit_breaker.request_permissions(accounts, now=NOON + FIRST_WAIT)[IOS], Probe
    )
    assert circuit_breaker.request_permissions([], now=NOON) == {}


# What people see and do.


def test_its_states_can_be_told_apart() -> None:
    record(successes=3, failures=5)
    closed = the_state()
    assert (closed.state, closed.successes, closed.failures) == (State.CLOSED, 3, 5)
    assert (closed.opened_at, closed.open_until, closed.openings) == (None, None, 0)
    record(failures=15, after=SECOND, reason="HTTP 503")
    opened = the_state(HOUR)
    assert (opened.state, opened.failures, opened.reason) == (State.HALF_OPEN, 20, "HTTP 503")
    assert the_state(2 * SECOND).state is State.OPEN
    assert opened.opened_at == NOON + SECOND
    assert opened.open_until == NOON + SECOND + FIRST_WAIT
    record(failures=1, after=MINUTE, probe=probe(MINUTE))
    again = the_state(MINUTE)
    assert (again.openings, again.opened_at, again.reason) == (2, NOON + SECOND, "HTTP 503")


def test_what_is_shown_is_of_the_last_minute() -> None:
    record(failures=5)
    assert the_state(50 * SECOND).failures == 5
    assert the_state(MINUTE).failures == 0


def test_accounts_are_listed_by_name_for_a_day() -> None:
    for hours, account in enumerate(["smtp:1", "fcm:2", "sendgrid:3"]):
        circuit_breaker.record(account, successes=1, failures=0, now=NOON + hours * HOUR)

    def listed(after: timedelta) -> list[str]:
        return [state.account for state in circuit_breaker.circuit_states(now=NOON + after) or []]

    assert listed(2 * HOUR) == ["fcm:2", "sendgrid:3", "smtp:1"]
    assert listed(DAY + HOUR) == ["fcm:2", "sendgrid:3"]


def test_an_operator_closes_it() -> None:
    trip(retry_after=3600)
    old = the_state()
    assert circuit_breaker.close(FCM)
    assert permission(SECOND) == Allowed()
    assert (old.state, the_state().state) == (State.OPEN, State.CLOSED)


def test_a_reason_is_kept_short_and_whatever_is_in_it() -> None:
    circuit_breaker.trip(FCM, now=NOON, retry_after=None, reason="\ud800é" * 500)
    assert the_state().reason == "?é" * 100


def test_it_is_logged_when_it_opens_and_closes_and_only_then() -> None:
    with capture_logs() as logs:
        trip()
        trip()
        record(failures=5)
        record(successes=1, after=FIRST_WAIT, probe=probe(FIRST_WAIT))
        record(successes=1, after=FIRST_WAIT)
    assert [entry["event"] for entry in logs] == ["circuit_opened", "circuit_closed"]


def test_nothing_stays_in_valkey_for_ever(broker: redis.Redis) -> None:
    record(successes=1)
    assert 0 < broker.pttl(f"circuit:{FCM}") <= 70_000
    trip(retry_after=1e9)
    most = (DAY + circuit_breaker.CIRCUIT_TTL) / timedelta(milliseconds=1)
    assert 0 < broker.pttl(f"circuit:{FCM}") <= most
    circuit_breaker.record("smtp:1", successes=1, failures=0, now=NOON + DAY + SECOND)
    assert broker.zrange("circuits", 0, -1) == [b"smtp:1"]


def test_a_wait_that_nobody_waited_for_is_remembered_for_a_while(broker: redis.Redis) -> None:
    trip()
    assert broker.pttl(f"circuit:{FCM}") > MAX_WAIT / timedelta(milliseconds=1)
