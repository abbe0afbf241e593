"""Routing: the provider of each delivery in a batch, by circuit and by platform."""

from datetime import timedelta
from typing import Any

import pytest

from delivery.circuit_breaker import PROBE_LEASE, Allowed, Probe
from domain.errors import FailureCode
from domain.retry import MAX_OUTAGE
from domain.states import DeliveryStatus
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.routes import (
    AFTER,
    choose,
    chosen_providers,
    one,
    permission,
    several,
    trip,
)
from tests.support.fakes.provider import ScriptedProvider
from tests.support.fakes.valkey_faults import unavailable

pytestmark = pytest.mark.usefixtures("broker", "valkey_anew")


S = DeliveryStatus

SECOND = timedelta(seconds=1)

MINUTE = timedelta(minutes=1)


def test_the_first_provider_takes_all_while_it_is_well(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    claims = several(3)
    (route,), parked = choose(claims, first, second)
    assert (route.provider, route.claims, parked) == (first, claims, [])
    assert (route.probes, route.blocked_platforms) == ({}, {})


def test_only_a_provider_with_another_behind_it_has_a_substitute(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    (route,), _ = choose([one()], first, second)
    assert route.has_failover
    (route,), _ = choose([one()], first)
    assert not route.has_failover


def test_a_provider_that_takes_nothing_is_passed_over(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    trip(first)
    claims = several(3)
    (route,), parked = choose(claims, first, second)
    assert (route.provider, route.claims, parked) == (second, claims, [])
    assert not route.has_failover


def test_a_provider_whose_substitute_takes_nothing_has_none(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    trip(second)
    (route,), _ = choose([one()], first, second)
    assert (route.provider, route.has_failover) == (first, False)


def test_what_the_first_has_just_not_taken_goes_to_the_second(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    other, not_taken = one(), one(failed_over_from="first")
    routes, _ = choose([other, not_taken], first, second)
    assert chosen_providers(routes) == {"first": [other], "second": [not_taken]}


def test_what_the_last_has_just_not_taken_goes_to_the_first(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    claim = one(failed_over_from="second")
    assert chosen_providers(choose([claim], first, second)[0]) == {"first": [claim]}


@pytest.mark.parametrize("said", ["failed_over_from", "ambiguous_provider"])
def test_a_provider_that_is_no_more_does_not_matter(
    first: ScriptedProvider, second: ScriptedProvider, said: str
) -> None:
    claim = one(**{said: "gone"})
    assert chosen_providers(choose([claim], first, second)[0]) == {"first": [claim]}


@pytest.mark.parametrize("name", ["first", "second"])
def test_what_a_provider_may_have_taken_goes_to_that_one(
    first: ScriptedProvider, second: ScriptedProvider, name: str
) -> None:
    claim = one(ambiguous_provider=name, failed_over_from="first")
    assert chosen_providers(choose([claim], first, second)[0]) == {name: [claim]}


def test_what_a_provider_may_have_taken_waits_for_that_one(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    trip(first, retry_after=300)
    other, doubtful = one(), one(ambiguous_provider="first")
    routes, (parked,) = choose([other, doubtful], first, second)
    assert chosen_providers(routes) == {"second": [other]}
    assert (parked.claimed, parked.next_attempt_at) == (doubtful, NOON + 5 * MINUTE)


def test_all_wait_for_the_first_that_may_be_asked_again(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
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
def test_nobody_waits_for_ever(first: ScriptedProvider, fields: dict[str, Any]) -> None:
    trip(first, retry_after=300)
    patient, impatient = one(), one(**fields)
    _, parked = choose([patient, impatient], first)
    assert [(p.status, p.next_attempt_at) for p in parked] == [
        (S.PENDING, NOON + 5 * MINUTE),
        (S.FAILED, None),
    ]
    assert parked[1].code is FailureCode.CHANNEL_UNAVAILABLE


def test_one_delivery_alone_tries_whether_a_provider_is_well(first: ScriptedProvider) -> None:
    trip(first)
    claims = several(5)
    (route,), parked = choose(claims, first, now=AFTER)
    assert (len(route.claims), list(route.probes)) == (1, [first.account])
    assert {p.next_attempt_at for p in parked} == {AFTER + PROBE_LEASE}
    assert [*route.claims, *(p.claimed for p in parked)] == claims


def test_while_one_tries_nobody_else_does(first: ScriptedProvider) -> None:
    trip(first)
    choose([one()], first, now=AFTER)
    routes, (parked,) = choose([one()], first, now=AFTER + SECOND)
    assert (routes, parked.next_attempt_at) == ([], AFTER + PROBE_LEASE)


def test_the_others_need_not_wait_if_another_provider_is_well(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    trip(first)
    claims = several(5)
    routes, parked = choose(claims, first, second, now=AFTER)
    assert chosen_providers(routes) == {"first": claims[:1], "second": claims[1:]}
    assert parked == []
    assert [bool(route.probes) for route in routes] == [True, False]


def test_a_probe_that_nothing_is_for_is_given_back(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    trip(second)
    choose([one()], first, second, now=AFTER)
    assert isinstance(permission(second.account, AFTER), Probe)


def test_what_a_rate_has_no_room_for_waits_its_turn(first: ScriptedProvider, settings: Any) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 3)}
    claims = several(10)
    (route,), parked = choose(claims, first)
    assert route.claims == claims[:3]
    assert [p.claimed for p in parked] == claims[3:]
    assert {(p.status, p.code) for p in parked} == {(S.PENDING, FailureCode.RATE_LIMITED)}
    tenth = SECOND / 10
    assert [p.next_attempt_at for p in parked] == [NOON + n * tenth for n in range(1, 8)]


def test_every_device_is_a_message(first: ScriptedProvider, settings: Any) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 5)}
    claims = several(3)
    (route,), parked = choose(claims, first, platforms=[["ios"] * 2] * 3)
    assert (route.claims, [p.claimed for p in parked]) == (claims[:2], claims[2:])


def test_somebody_with_more_devices_than_may_go_at_once_is_reached(
    first: ScriptedProvider, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 2)}
    claims = several(2)
    (route,), parked = choose(claims, first, platforms=[["ios"] * 5] * 2)
    assert (route.claims, [p.claimed for p in parked]) == (claims[:1], claims[1:])


def test_without_valkey_everything_goes(first: ScriptedProvider, second: ScriptedProvider) -> None:
    trip(first)
    with unavailable():
        claims = several(2)
        (route,), parked = choose(claims, first, second)
    assert (route.provider, route.claims, parked) == (first, claims, [])
    assert permission("somebody else's", NOON) == Allowed()


def test_a_platform_in_trouble_is_left_out_and_the_others_go(first: ScriptedProvider) -> None:
    trip(first, "ios", retry_after=300)
    ios, both, android = several(3)
    platforms = [["ios"], ["android", "ios"], ["android"]]
    (route,), (parked,) = choose([ios, both, android], first, platforms=platforms)
    assert route.claims == [both, android]
    assert route.blocked_platforms == {"ios": NOON + 5 * MINUTE}
    assert (parked.claimed, parked.next_attempt_at) == (ios, NOON + 5 * MINUTE)


def test_what_is_for_platforms_in_trouble_waits_for_the_first_of_them(
    first: ScriptedProvider,
) -> None:
    trip(first, "ios", retry_after=300)
    trip(first, "web", retry_after=100)
    _, (parked,) = choose([one()], first, platforms=[["ios", "web"]])
    assert parked.next_attempt_at == NOON + 100 * SECOND


def test_one_delivery_alone_tries_whether_a_platform_is_well(first: ScriptedProvider) -> None:
    trip(first, "ios")
    claims = several(5)
    platforms = [["android"], ["ios"], ["ios"], ["android", "ios"], ["android"]]
    routes, (parked,) = choose(claims, first, now=AFTER, platforms=platforms)
    probing = [route for route in routes if route.probes]
    assert [(r.claims, list(r.probes), dict(r.blocked_platforms)) for r in probing] == [
        ([claims[1]], [f"{first.account}:ios"], {})
    ]
    (others,) = [route for route in routes if not route.probes]
    assert others.claims == [claims[0], claims[3], claims[4]]
    assert others.blocked_platforms == {"ios": AFTER + PROBE_LEASE}
    assert (parked.claimed, parked.next_attempt_at) == (claims[2], AFTER + PROBE_LEASE)


def test_one_delivery_can_try_several_platforms(first: ScriptedProvider) -> None:
    trip(first, "ios")
    trip(first, "web")
    (route,), _ = choose([one()], first, now=AFTER, platforms=[["web", "ios"]])
    assert sorted(route.probes) == [f"{first.account}:ios", f"{first.account}:web"]


def test_exactly_one_delivery_tries_a_provider_and_its_platforms(first: ScriptedProvider) -> None:
    trip(first)
    trip(first, "ios")
    platforms = [["android"], ["ios"], ["ios"]]
    (route,), parked = choose(several(3), first, now=AFTER, platforms=platforms)
    assert (len(route.claims), len(parked)) == (1, 2)
    assert list(route.probes) == [first.account]
    assert isinstance(permission(f"{first.account}:ios", AFTER), Probe)


def test_what_tries_a_provider_has_somewhere_to_go(first: ScriptedProvider) -> None:
    trip(first)
    trip(first, "ios", retry_after=300)
    claims = several(2)
    (route,), (parked,) = choose(claims, first, now=AFTER, platforms=[["ios"], ["android"]])
    assert route.claims == [claims[1]]
    assert (parked.claimed, parked.next_attempt_at) == (claims[0], NOON + 5 * MINUTE)


def test_a_provider_that_only_platforms_in_trouble_are_for_is_not_tried(
    first: ScriptedProvider,
) -> None:
    trip(first)
    trip(first, "ios", retry_after=300)
    routes, _ = choose([one()], first, now=AFTER, platforms=[["ios"]])
    assert routes == []
    assert isinstance(permission(first.account, AFTER), Probe)


def test_a_platforms_probe_is_given_back_if_the_provider_takes_nothing(
    first: ScriptedProvider,
) -> None:
    trip(first, retry_after=300)
    trip(first, "ios")
    choose([one()], first, now=AFTER, platforms=[["ios"]])
    assert isinstance(permission(f"{first.account}:ios", AFTER), Probe)


def test_a_platform_in_trouble_at_one_provider_goes_to_another(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    trip(first, "ios", retry_after=300)
    claims = several(2)
    routes, parked = choose(claims, first, second, platforms=[["ios"], ["android"]])
    assert chosen_providers(routes) == {"first": [claims[1]], "second": [claims[0]]}
    assert parked == []


def test_a_substitute_that_would_not_take_it_is_none(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    trip(second, "ios", retry_after=300)
    (route,), _ = choose([one()], first, second, platforms=[["ios"]])
    assert (route.provider, route.has_failover) == (first, False)
