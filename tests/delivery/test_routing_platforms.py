"""A platform in trouble at a provider that is well: its devices wait, the others do not."""

from datetime import timedelta

import pytest

from delivery.circuit_breaker import PROBE_LEASE, Probe
from tests.support.factories.records import NOON
from tests.support.factories.routes import AFTER, choose, one, permission, several, trip, where
from tests.support.fakes.provider import Scripted

pytestmark = pytest.mark.usefixtures("broker", "valkey_anew")

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def test_a_platform_in_trouble_is_left_out_and_the_others_go(first: Scripted) -> None:
    trip(first, "ios", retry_after=300)
    ios, both, android = several(3)
    platforms = [["ios"], ["android", "ios"], ["android"]]
    (route,), (parked,) = choose([ios, both, android], first, platforms=platforms)
    assert route.claims == [both, android]
    assert route.blocked_platforms == {"ios": NOON + 5 * MINUTE}
    assert (parked.claimed, parked.next_attempt_at) == (ios, NOON + 5 * MINUTE)


def test_what_is_for_platforms_in_trouble_waits_for_the_first_of_them(first: Scripted) -> None:
    trip(first, "ios", retry_after=300)
    trip(first, "web", retry_after=100)
    _, (parked,) = choose([one()], first, platforms=[["ios", "web"]])
    assert parked.next_attempt_at == NOON + 100 * SECOND


def test_one_delivery_alone_tries_whether_a_platform_is_well(first: Scripted) -> None:
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


def test_one_delivery_can_try_several_platforms(first: Scripted) -> None:
    trip(first, "ios")
    trip(first, "web")
    (route,), _ = choose([one()], first, now=AFTER, platforms=[["web", "ios"]])
    assert sorted(route.probes) == [f"{first.account}:ios", f"{first.account}:web"]


def test_exactly_one_delivery_tries_a_provider_and_its_platforms(first: Scripted) -> None:
    trip(first)
    trip(first, "ios")
    platforms = [["android"], ["ios"], ["ios"]]
    (route,), parked = choose(several(3), first, now=AFTER, platforms=platforms)
    assert (len(route.claims), len(parked)) == (1, 2)
    assert list(route.probes) == [first.account]
    assert isinstance(permission(f"{first.account}:ios", AFTER), Probe)


def test_what_tries_a_provider_has_somewhere_to_go(first: Scripted) -> None:
    trip(first)
    trip(first, "ios", retry_after=300)
    claims = several(2)
    (route,), (parked,) = choose(claims, first, now=AFTER, platforms=[["ios"], ["android"]])
    assert route.claims == [claims[1]]
    assert (parked.claimed, parked.next_attempt_at) == (claims[0], NOON + 5 * MINUTE)


def test_a_provider_that_only_platforms_in_trouble_are_for_is_not_tried(first: Scripted) -> None:
    trip(first)
    trip(first, "ios", retry_after=300)
    routes, _ = choose([one()], first, now=AFTER, platforms=[["ios"]])
    assert routes == []
    assert isinstance(permission(first.account, AFTER), Probe)


def test_a_platforms_probe_is_given_back_if_the_provider_takes_nothing(first: Scripted) -> None:
    trip(first, retry_after=300)
    trip(first, "ios")
    choose([one()], first, now=AFTER, platforms=[["ios"]])
    assert isinstance(permission(f"{first.account}:ios", AFTER), Probe)


def test_a_platform_in_trouble_at_one_provider_goes_to_another(
    first: Scripted, second: Scripted
) -> None:
    trip(first, "ios", retry_after=300)
    claims = several(2)
    routes, parked = choose(claims, first, second, platforms=[["ios"], ["android"]])
    assert where(routes) == {"first": [claims[1]], "second": [claims[0]]}
    assert parked == []


def test_a_substitute_that_would_not_take_it_is_none(first: Scripted, second: Scripted) -> None:
    trip(second, "ios", retry_after=300)
    (route,), _ = choose([one()], first, second, platforms=[["ios"]])
    assert (route.provider, route.has_failover) == (first, False)
