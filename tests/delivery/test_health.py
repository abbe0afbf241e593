"""What a batch's results tell a provider's circuits and its rate, in Valkey."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from delivery import circuit_breaker, feedback, rate_limiter
from delivery.circuit_breaker import (
    FIRST_WAIT,
    MAX_WAIT,
    MIN_FAILURES,
    Allowed,
    Blocked,
    Permission,
    Probe,
)
from delivery.results import TargetResult
from domain.errors import FailureCode, TransientError
from tests.support.factories.notifications import NOON
from tests.support.fakes.provider import (
    Outcome,
    Scripted,
    accepted,
    busy,
    dead,
    refused,
    silent,
    slowed,
    suspect,
    unavailable,
    unreachable,
)

pytestmark = pytest.mark.usefixtures("broker", "valkey_anew")

SECOND = timedelta(seconds=1)
AFTER = NOON + FIRST_WAIT
"""When a circuit that opened at noon wants a probe."""
Make = Callable[..., Outcome]


@pytest.fixture
def fcm() -> Scripted:
    return Scripted(name="fcm")


def defect() -> TransientError:
    return TransientError("A defect.", code=FailureCode.INTERNAL_ERROR, is_ambiguous=True)


def report(
    provider: Scripted,
    *outcomes: Outcome,
    platform: str = "",
    probes: Mapping[str, Probe] | None = None,
    now: datetime = NOON,
) -> None:
    results = [
        TargetResult(
            device_id=None,
            outcome=outcome,
            started_at=now,
            finished_at=now,
            duration_ms=1,
            platform=platform,
        )
        for outcome in outcomes
    ]
    feedback.report_provider_health(provider, results, probes=probes or {}, now=now)


def permission(account: str, now: datetime = NOON) -> Permission:
    return circuit_breaker.request_permissions([account], now=now)[account]


def probing(account: str) -> dict[str, Probe]:
    """Return the probe of a circuit that opened at noon."""
    circuit_breaker.trip(account, now=NOON, retry_after=None)
    probe = permission(account, AFTER)
    assert isinstance(probe, Probe)
    return {account: probe}


# What opens a circuit.


@pytest.mark.parametrize("trouble", [busy, unreachable, silent])
def test_twenty_troubles_open_it(fcm: Scripted, trouble: Make) -> None:
    report(fcm, *[trouble() for _ in range(MIN_FAILURES - 1)])
    assert permission(fcm.account) == Allowed()
    report(fcm, trouble())
    assert permission(fcm.account) == Blocked(AFTER)


@pytest.mark.parametrize("answer", [accepted, dead, suspect, refused, slowed, defect])
def test_what_is_no_trouble_of_the_providers_does_not(fcm: Scripted, answer: Make) -> None:
    report(fcm, *[answer() for _ in range(5 * MIN_FAILURES)])
    assert permission(fcm.account) == Allowed()


def test_defects_of_ours_are_no_sign_of_health(fcm: Scripted) -> None:
    report(fcm, *[defect() for _ in range(100)], *[busy() for _ in range(MIN_FAILURES)])
    assert permission(fcm.account) == Blocked(AFTER)


def test_one_outage_opens_it_for_as_long_as_the_provider_says(fcm: Scripted) -> None:
    report(fcm, accepted(), unavailable(retry_after=300), accepted())
    assert permission(fcm.account) == Blocked(NOON + 300 * SECOND)


def test_an_outage_of_a_platform_is_that_platforms_alone(fcm: Scripted) -> None:
    report(fcm, *[unavailable(scope="ios") for _ in range(5 * MIN_FAILURES)])
    assert permission(fcm.account) == Allowed()
    assert permission(f"{fcm.account}:ios") == Blocked(AFTER)
    assert permission(f"{fcm.account}:android") == Allowed()


# What closes one again.


@pytest.mark.parametrize("answer", [accepted, dead, refused, slowed])
def test_any_answer_about_the_message_closes_it(fcm: Scripted, answer: Make) -> None:
    report(fcm, answer(), probes=probing(fcm.account), now=AFTER)
    assert permission(fcm.account, AFTER) == Allowed()


@pytest.mark.parametrize("trouble", [busy, unreachable, silent, unavailable])
def test_the_same_trouble_again_opens_it_for_twice_as_long(fcm: Scripted, trouble: Make) -> None:
    report(fcm, trouble(), probes=probing(fcm.account), now=AFTER)
    assert permission(fcm.account, AFTER) == Blocked(AFTER + 2 * FIRST_WAIT)


@pytest.mark.parametrize("outcomes", [[], [defect()]], ids=["nothing was sent", "a defect"])
def test_who_has_learnt_nothing_gives_the_probe_back(
    fcm: Scripted, outcomes: list[Outcome]
) -> None:
    report(fcm, *outcomes, probes=probing(fcm.account), now=AFTER)
    assert isinstance(permission(fcm.account, AFTER), Probe)


def test_a_platform_that_is_well_again_is_open_again(fcm: Scripted) -> None:
    ios = f"{fcm.account}:ios"
    report(fcm, accepted(), platform="ios", probes=probing(ios), now=AFTER)
    assert permission(ios, AFTER) == Allowed()


def test_a_platform_that_is_not_waits_for_twice_as_long(fcm: Scripted) -> None:
    ios = f"{fcm.account}:ios"
    report(fcm, unavailable(scope="ios"), platform="ios", probes=probing(ios), now=AFTER)
    assert permission(ios, AFTER) == Blocked(AFTER + 2 * FIRST_WAIT)


def test_another_platforms_answer_says_nothing_of_it(fcm: Scripted) -> None:
    ios = f"{fcm.account}:ios"
    report(fcm, accepted(), platform="android", probes=probing(ios), now=AFTER)
    assert isinstance(permission(ios, AFTER), Probe)


def test_a_platforms_outage_says_nothing_of_the_provider(fcm: Scripted) -> None:
    probes = probing(fcm.account)
    report(fcm, unavailable(scope="ios"), platform="ios", probes=probes, now=AFTER)
    assert isinstance(permission(fcm.account, AFTER), Probe)


def test_an_outage_that_lasts_is_asked_about_at_least_every_quarter_of_an_hour(
    fcm: Scripted,
) -> None:
    circuit_breaker.trip(fcm.account, now=NOON, retry_after=None)
    now = AFTER
    for _ in range(10):
        probe = permission(fcm.account, now)
        assert isinstance(probe, Probe)
        report(fcm, unavailable(), probes={fcm.account: probe}, now=now)
        blocked: Any = permission(fcm.account, now)
        assert blocked.until - now <= MAX_WAIT
        now = blocked.until


# What slows it down.


def granted(provider: Scripted, after: timedelta) -> int:
    return rate_limiter.take(provider.account, 100, rate=10, burst=10, now=NOON + after).granted


def test_too_much_halves_the_rate_after_a_pause(fcm: Scripted) -> None:
    report(fcm, accepted(), slowed(retry_after=3), slowed(retry_after=5))
    assert granted(fcm, 4 * SECOND) == 0
    assert granted(fcm, 6 * SECOND) == 5


def test_too_much_without_a_time_halves_it_at_once(fcm: Scripted) -> None:
    report(fcm, slowed())
    assert granted(fcm, SECOND) == 5


def test_nothing_else_slows_it_down(fcm: Scripted) -> None:
    report(fcm, accepted(), busy(retry_after=300), silent(), dead(), refused())
    assert granted(fcm, SECOND) == 10


# Who is trusted to take more.


def test_a_provider_of_which_nothing_is_known_has_proven_nothing(fcm: Scripted) -> None:
    assert not feedback.has_recent_success(fcm, now=NOON)


def test_what_it_took_of_late_proves_it_for_a_while(fcm: Scripted) -> None:
    report(fcm, refused(), accepted())
    assert feedback.has_recent_success(fcm, now=NOON + feedback.RECENT_SUCCESS)
    assert not feedback.has_recent_success(fcm, now=NOON + feedback.RECENT_SUCCESS + SECOND)


@pytest.mark.parametrize("answer", [refused, unavailable, busy, silent])
def test_what_it_did_not_take_proves_nothing(fcm: Scripted, answer: Make) -> None:
    report(fcm, answer())
    assert not feedback.has_recent_success(fcm, now=NOON)
