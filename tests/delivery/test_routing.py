"""Which provider each delivery of a batch goes to, with the circuits in Valkey."""

from datetime import timedelta
from typing import Any

import pytest

from delivery.circuit_breaker import PROBE_LEASE, Allowed, Probe
from domain.errors import FailureCode
from domain.retry import MAX_OUTAGE
from domain.states import DeliveryStatus
from tests.support.factories.records import NOON
from tests.support.factories.routes import AFTER, choose, one, permission, several, trip, where
from tests.support.fakes.provider import Scripted
from tests.support.fakes.valkey_faults import away

pytestmark = pytest.mark.usefixtures("broker", "valkey_anew")

S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


# In their order.


def test_the_first_provider_takes_all_while_it_is_well(first: Scripted, second: Scripted) -> None:
    claims = several(3)
    (route,), parked = choose(claims, first, second)
    assert (route.provider, route.claims, parked) == (first, claims, [])
    assert (route.probes, route.blocked_platforms) == ({}, {})


def test_only_a_provider_with_another_behind_it_has_a_substitute(
    first: Scripted, second: Scripted
) -> None:
    (route,), _ = choose([one()], first, second)
    assert route.has_failover
    (route,), _ = choose([one()], first)
    assert not route.has_failover


def test_a_provider_that_takes_nothing_is_passed_over(first: Scripted, second: Scripted) -> None:
    trip(first)
    claims = several(3)
    (route,), parked = choose(claims, first, second)
    assert (route.provider, route.claims, parked) == (second, claims, [])
    assert not route.has_failover


def test_a_provider_whose_substitute_takes_nothing_has_none(
    first: Scripted, second: Scripted
) -> None:
    trip(second)
    (route,), _ = choose([one()], first, second)
    assert (route.provider, route.has_failover) == (first, False)


def test_what_the_first_has_just_not_taken_goes_to_the_second(
    first: Scripted, second: Scripted
) -> None:
    other, not_taken = one(), one(failed_over_from="first")
    routes, _ = choose([other, not_taken], first, second)
    assert where(routes) == {"first": [other], "second": [not_taken]}


def test_what_the_last_has_just_not_taken_goes_to_the_first(
    first: Scripted, second: Scripted
) -> None:
    claim = one(failed_over_from="second")
    assert where(choose([claim], first, second)[0]) == {"first": [claim]}


@pytest.mark.parametrize("said", ["failed_over_from", "ambiguous_provider"])
def test_a_provider_that_is_no_more_does_not_matter(
    first: Scripted, second: Scripted, said: str
) -> None:
    claim = one(**{said: "gone"})
    assert where(choose([claim], first, second)[0]) == {"first": [claim]}


@pytest.mark.parametrize("name", ["first", "second"])
def test_what_a_provider_may_have_taken_goes_to_that_one(
    first: Scripted, second: Scripted, name: str
) -> None:
    claim = one(ambiguous_provider=name, failed_over_from="first")
    assert where(choose([claim], first, second)[0]) == {name: [claim]}


def test_what_a_provider_may_have_taken_waits_for_that_one(
    first: Scripted, second: Scripted
) -> None:
    trip(first, retry_after=300)
    other, doubtful = one(), one(ambiguous_provider="first")
    routes, (parked,) = choose([other, doubtful], first, second)
    assert where(routes) == {"second": [other]}
    assert (parked.claimed, parked.next_attempt_at) == (doubtful, NOON + 5 * MINUTE)


# None takes anything.


def test_all_wait_for_the_first_that_may_be_asked_again(first: Scripted, second: Scripted) -> None:
    trip(first, retry_after=600)
    trip(second, retry_after=300)
    claims = several(3)
    routes, parked = choose(claims, first, second)
    assert routes == []
    assert [(p.claimed, p.status, p.code, p.next_attempt_at) for p in parked] == [
        (claim, S.PENDING, FailureCode.CHANNEL_UNAVAILABLE, NOON + 5 * MINUTE) for claim in claims
    ]


@pytest.mark.parametrize(
    "fields",
    [{"first_due_at": NOON - MAX_OUTAGE}, {"expires_at": NOON + 5 * MINUTE}],
    ids=["after three days", "when it would be too late"],
)
def test_nobody_waits_for_ever(first: Scripted, fields: dict[str, Any]) -> None:
    trip(first, retry_after=300)
    patient, impatient = one(), one(**fields)
    _, parked = choose([patient, impatient], first)
    assert [(p.status, p.next_attempt_at) for p in parked] == [
        (S.PENDING, NOON + 5 * MINUTE),
        (S.FAILED, None),
    ]
    assert parked[1].code is FailureCode.CHANNEL_UNAVAILABLE


# A circuit whose wait is over.


def test_one_delivery_alone_tries_whether_a_provider_is_well(first: Scripted) -> None:
    trip(first)
    claims = several(5)
    (route,), parked = choose(claims, first, now=AFTER)
    assert (len(route.claims), list(route.probes)) == (1, [first.account])
    assert {p.next_attempt_at for p in parked} == {AFTER + PROBE_LEASE}
    assert [*route.claims, *(p.claimed for p in parked)] == claims


def test_while_one_tries_nobody_else_does(first: Scripted) -> None:
    trip(first)
    choose([one()], first, now=AFTER)
    routes, (parked,) = choose([one()], first, now=AFTER + SECOND)
    assert (routes, parked.next_attempt_at) == ([], AFTER + PROBE_LEASE)


def test_the_others_need_not_wait_if_another_provider_is_well(
    first: Scripted, second: Scripted
) -> None:
    trip(first)
    claims = several(5)
    routes, parked = choose(claims, first, second, now=AFTER)
    assert where(routes) == {"first": claims[:1], "second": claims[1:]}
    assert parked == []
    assert [bool(route.probes) for route in routes] == [True, False]


def test_a_probe_that_nothing_is_for_is_given_back(first: Scripted, second: Scripted) -> None:
    trip(second)
    choose([one()], first, second, now=AFTER)
    assert isinstance(permission(second.account, AFTER), Probe)


# Rates.


def test_what_a_rate_has_no_room_for_waits_its_turn(first: Scripted, settings: Any) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 3)}
    claims = several(10)
    (route,), parked = choose(claims, first)
    assert route.claims == claims[:3]
    assert [p.claimed for p in parked] == claims[3:]
    assert {(p.status, p.code) for p in parked} == {(S.PENDING, FailureCode.RATE_LIMITED)}
    tenth = SECOND / 10
    assert [p.next_attempt_at for p in parked] == [NOON + n * tenth for n in range(1, 8)]


def test_every_device_is_a_message(first: Scripted, settings: Any) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 5)}
    claims = several(3)
    (route,), parked = choose(claims, first, platforms=[["ios"] * 2] * 3)
    assert (route.claims, [p.claimed for p in parked]) == (claims[:2], claims[2:])


def test_somebody_with_more_devices_than_may_go_at_once_is_reached(
    first: Scripted, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 2)}
    claims = several(2)
    (route,), parked = choose(claims, first, platforms=[["ios"] * 5] * 2)
    assert (route.claims, [p.claimed for p in parked]) == (claims[:1], claims[1:])


def test_without_valkey_everything_goes(first: Scripted, second: Scripted) -> None:
    trip(first)
    with away():
        claims = several(2)
        (route,), parked = choose(claims, first, second)
    assert (route.provider, route.claims, parked) == (first, claims, [])
    assert permission("somebody else's", NOON) == Allowed()
