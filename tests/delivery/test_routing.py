"""Routing: the provider of each delivery in a batch, by circuit and by platform."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from delivery.circuit_breaker import PROBE_CHECK, Allowed, CircuitReporter, Probe
from domain.channels import Channel
from domain.errors import FailureCode
from domain.retry import MAX_OUTAGE
from domain.states import DeliveryStatus, Priority
from domain.wait_reasons import WaitReason
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

pytestmark = pytest.mark.usefixtures("db", "broker", "valkey_anew")


S = DeliveryStatus
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def test_healthy_first_provider_has_all(first: ScriptedProvider, second: ScriptedProvider) -> None:
    claims = several(3)
    (route,), deferred = choose(claims, first, second)
    assert (route.provider, route.claims, deferred) == (first, claims, [])
    assert (route.probes, route.blocked_scopes) == ({}, {})


def test_last_provider_has_no_failover(first: ScriptedProvider, second: ScriptedProvider) -> None:
    (route,), _ = choose([one()], first, second)
    assert route.has_failover
    (route,), _ = choose([one()], first)
    assert not route.has_failover


def test_blocked_provider_is_skipped(first: ScriptedProvider, second: ScriptedProvider) -> None:
    trip(first)
    claims = several(3)
    (route,), deferred = choose(claims, first, second)
    assert (route.provider, route.claims, deferred) == (second, claims, [])
    assert not route.has_failover


def test_provider_with_a_blocked_successor_has_no_failover(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    trip(second)
    (route,), _ = choose([one()], first, second)
    assert (route.provider, route.has_failover) == (first, False)


def test_failed_over_delivery_goes_second(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    other, not_taken = one(), one(failed_over_from="first")
    routes, _ = choose([other, not_taken], first, second)
    assert chosen_providers(routes) == {"first": [other], "second": [not_taken]}


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"failed_over_from": "second"}, "first"),
        ({"failed_over_from": "gone"}, "first"),
        ({"ambiguous_provider": "gone"}, "first"),
        ({"ambiguous_provider": "first", "failed_over_from": "first"}, "first"),
        ({"ambiguous_provider": "second", "failed_over_from": "first"}, "second"),
    ],
    ids=["last failed over", "unknown", "unknown and ambiguous", "ambiguous", "ambiguous there"],
)
def test_earlier_providers_of_a_delivery_decide_its_next(
    first: ScriptedProvider, second: ScriptedProvider, fields: dict[str, str], name: str
) -> None:
    claim = one(**fields)
    assert chosen_providers(choose([claim], first, second)[0]) == {name: [claim]}


def test_ambiguous_delivery_is_deferred(first: ScriptedProvider, second: ScriptedProvider) -> None:
    trip(first, retry_after=300)
    other, ambiguous = one(), one(ambiguous_provider="first")
    routes, (deferred,) = choose([other, ambiguous], first, second)
    assert chosen_providers(routes) == {"second": [other]}
    assert (deferred.claimed, deferred.next_attempt_at) == (ambiguous, NOON + 5 * MINUTE)


def test_all_wait_for_the_earliest_probe(first: ScriptedProvider, second: ScriptedProvider) -> None:
    trip(first, retry_after=600)
    trip(second, retry_after=300)
    claims = several(3)
    routes, deferred = choose(claims, first, second)
    assert routes == []
    assert [(p.claimed, p.status, p.code, p.next_attempt_at) for p in deferred] == [
        (claim, S.PENDING, FailureCode.CHANNEL_UNAVAILABLE, NOON + 5 * MINUTE) for claim in claims
    ]


@pytest.mark.parametrize("paused", [{}, {"first": NOON + 5 * MINUTE}], ids=["open", "paused"])
@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        ({}, (S.PENDING, FailureCode.CHANNEL_UNAVAILABLE, NOON + 5 * MINUTE)),
        (
            {"held_for": MAX_OUTAGE},
            (S.FAILED, FailureCode.CHANNEL_UNAVAILABLE, None),
        ),
        (
            {"expires_at": NOON + 4 * MINUTE},
            (S.PENDING, FailureCode.CHANNEL_UNAVAILABLE, NOON + 4 * MINUTE),
        ),
        (
            {"expires_at": NOON + 4 * MINUTE, "later_channels": (Channel.IN_APP,)},
            (S.EXPIRED, FailureCode.EXPIRED, None),
        ),
    ],
    ids=["young", "after three days", "expires before", "expires before, with a fallback"],
)
def test_held_delivery_waits_until_its_expiry_and_fails_at_the_outage_limit(
    first: ScriptedProvider,
    fields: dict[str, Any],
    outcome: tuple[DeliveryStatus, FailureCode, datetime | None],
    paused: dict[str, datetime],
) -> None:
    trip(first, retry_after=300)
    _, (deferred,) = choose([one(**fields)], first, paused=paused)
    assert (deferred.status, deferred.code, deferred.next_attempt_at) == outcome


def test_deferral_names_the_pause_or_the_open_circuit(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    trip(second, retry_after=300)
    _, (by_pause,) = choose([one()], first, second, paused={"first": NOON + MINUTE})
    _, (by_circuit,) = choose([one()], first, second, paused={"first": NOON + 10 * MINUTE})
    assert by_pause.held_reason is WaitReason.PROVIDER_PAUSED
    assert (by_pause.reason, by_pause.next_attempt_at) == ("Provider paused.", NOON + MINUTE)
    assert by_circuit.held_reason is WaitReason.CIRCUIT_OPEN
    assert (by_circuit.reason, by_circuit.next_attempt_at) == ("Circuit open.", NOON + 5 * MINUTE)


def test_second_caller_waits_for_the_probe(first: ScriptedProvider) -> None:
    trip(first)
    choose([one()], first, now=AFTER)
    routes, (deferred,) = choose([one()], first, now=AFTER + SECOND)
    assert (routes, deferred.next_attempt_at) == ([], AFTER + SECOND + PROBE_CHECK)


def test_unused_probe_is_returned(first: ScriptedProvider, second: ScriptedProvider) -> None:
    trip(second)
    choose([one()], first, second, now=AFTER)
    assert isinstance(permission(second.account, AFTER), Probe)


def test_deliveries_beyond_the_rate_are_spread_out(first: ScriptedProvider, settings: Any) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 3)}
    claims = several(10)
    (route,), deferred = choose(claims, first)
    assert route.claims == claims[:3]
    assert [p.claimed for p in deferred] == claims[3:]
    assert {(p.status, p.code, p.held_reason) for p in deferred} == {
        (S.PENDING, FailureCode.RATE_LIMITED, WaitReason.RATE_LIMITED)
    }
    tenth = SECOND / 10
    assert [p.next_attempt_at for p in deferred] == [NOON + n * tenth for n in range(1, 8)]


def test_every_device_counts_against_the_rate(first: ScriptedProvider, settings: Any) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 5)}
    claims = several(4)
    (route,), deferred = choose(claims, first, platforms=[["ios"] * 2] * 4)
    # The third is sent on one token, and owes another.
    assert (route.claims, [p.claimed for p in deferred]) == (claims[:3], claims[3:])
    assert [p.next_attempt_at for p in deferred] == [NOON + SECOND / 5]


def test_critical_delivery_does_not_wait_behind_a_backlog(
    first: ScriptedProvider, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 1)}
    choose(several(10), first)
    code = replace(one(), priority=Priority.CRITICAL)
    (route,), deferred = choose([code], first)
    assert (route.claims, deferred) == ([code], [])


def test_more_devices_than_the_burst_are_reached(first: ScriptedProvider, settings: Any) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 2)}
    claims = several(2)
    (route,), deferred = choose(claims, first, platforms=[["ios"] * 5] * 2)
    assert (route.claims, [p.claimed for p in deferred]) == (claims[:1], claims[1:])


def test_each_part_of_a_text_counts_against_the_rate(
    first: ScriptedProvider, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"first": (1.0, 1)}
    claims = several(4)
    parts = dict(zip((c.reference for c in claims), (3, 2, 1, 1), strict=True))
    (route,), deferred = choose(claims, first, units=parts)
    assert (route.claims, [p.claimed for p in deferred]) == (claims[:1], claims[1:])
    assert [p.next_attempt_at for p in deferred] == [NOON + n * SECOND for n in (3, 5, 6)]
    (route,), _ = choose(claims[1:], first, units=parts, now=NOON + 3 * SECOND)
    assert route.claims == claims[1:2]


def test_all_are_routed_without_valkey(first: ScriptedProvider, second: ScriptedProvider) -> None:
    trip(first)
    with unavailable():
        claims = several(2)
        (route,), deferred = choose(claims, first, second)
    assert (route.provider, route.claims, deferred) == (first, claims, [])
    assert permission("another account", NOON) == Allowed()


def test_blocked_platform_is_left_out(first: ScriptedProvider) -> None:
    trip(first, "ios", retry_after=300)
    ios, both, android = several(3)
    platforms = [["ios"], ["android", "ios"], ["android"]]
    (route,), (deferred,) = choose([ios, both, android], first, platforms=platforms)
    assert route.claims == [both, android]
    assert route.blocked_scopes == {"ios": NOON + 5 * MINUTE}
    assert (deferred.claimed, deferred.next_attempt_at) == (ios, NOON + 5 * MINUTE)


def test_deliveries_without_a_doubted_platform_are_sent_together_and_within_the_rate(
    first: ScriptedProvider, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"first": (10.0, 6)}
    name = f"{first.account}/ios"
    CircuitReporter().trip(name, now=NOON, retry_after=300, refused=["ab"], is_doubted=True)
    claims = several(5)
    (route,), deferred = choose(claims, first, platforms=[["android", "ios"]] * 5)
    assert (route.claims, [unsent.claimed for unsent in deferred]) == (claims[:3], claims[3:])
    assert route.blocked_scopes == {"ios": NOON + 5 * MINUTE}


def test_blocked_scopes_defer_to_the_earliest(first: ScriptedProvider) -> None:
    trip(first, "ios", retry_after=300)
    trip(first, "web", retry_after=100)
    _, (deferred,) = choose([one()], first, platforms=[["ios", "web"]])
    assert deferred.next_attempt_at == NOON + 100 * SECOND


def test_one_delivery_probes_a_platform(first: ScriptedProvider) -> None:
    trip(first, "ios")
    claims = several(5)
    platforms = [["android"], ["ios"], ["ios"], ["android", "ios"], ["android"]]
    routes, (deferred,) = choose(claims, first, now=AFTER, platforms=platforms)
    probing = [route for route in routes if route.probes]
    assert [(r.claims, list(r.probes), dict(r.blocked_scopes)) for r in probing] == [
        ([claims[1]], [f"{first.account}/ios"], {})
    ]
    (others,) = [route for route in routes if not route.probes]
    assert others.claims == [claims[0], claims[3], claims[4]]
    assert others.blocked_scopes == {"ios": AFTER + PROBE_CHECK}
    assert (deferred.claimed, deferred.next_attempt_at) == (claims[2], AFTER + PROBE_CHECK)


def test_one_delivery_probes_several_platforms(first: ScriptedProvider) -> None:
    trip(first, "ios")
    trip(first, "web")
    (route,), _ = choose([one()], first, now=AFTER, platforms=[["web", "ios"]])
    assert sorted(route.probes) == [f"{first.account}/ios", f"{first.account}/web"]


def test_provider_and_its_platforms_get_one_probe(first: ScriptedProvider) -> None:
    trip(first)
    trip(first, "ios")
    platforms = [["android"], ["ios"], ["ios"]]
    (route,), deferred = choose(several(3), first, now=AFTER, platforms=platforms)
    assert (len(route.claims), len(deferred)) == (1, 2)
    assert list(route.probes) == [first.account]
    assert isinstance(permission(f"{first.account}/ios", AFTER), Probe)


def test_probe_has_an_open_platform(first: ScriptedProvider) -> None:
    trip(first)
    trip(first, "ios", retry_after=300)
    claims = several(2)
    (route,), (deferred,) = choose(claims, first, now=AFTER, platforms=[["ios"], ["android"]])
    assert route.claims == [claims[1]]
    assert (deferred.claimed, deferred.next_attempt_at) == (claims[0], NOON + 5 * MINUTE)


def test_provider_is_not_probed_for_blocked_scopes_alone(first: ScriptedProvider) -> None:
    trip(first)
    trip(first, "ios", retry_after=300)
    routes, _ = choose([one()], first, now=AFTER, platforms=[["ios"]])
    assert routes == []
    assert isinstance(permission(first.account, AFTER), Probe)


def test_platform_probe_is_returned_if_the_provider_is_blocked(first: ScriptedProvider) -> None:
    trip(first, retry_after=300)
    trip(first, "ios")
    choose([one()], first, now=AFTER, platforms=[["ios"]])
    assert isinstance(permission(f"{first.account}/ios", AFTER), Probe)


def test_blocked_platform_fails_over(first: ScriptedProvider, second: ScriptedProvider) -> None:
    trip(first, "ios", retry_after=300)
    claims = several(2)
    routes, deferred = choose(claims, first, second, platforms=[["ios"], ["android"]])
    assert chosen_providers(routes) == {"first": [claims[1]], "second": [claims[0]]}
    assert deferred == []


def test_successor_with_a_blocked_platform_is_no_failover(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    trip(second, "ios", retry_after=300)
    (route,), _ = choose([one()], first, second, platforms=[["ios"]])
    assert (route.provider, route.has_failover) == (first, False)


def test_held_delivery_has_the_reason_of_its_own_circuit(first: ScriptedProvider) -> None:
    for platform in ("ios", "web"):
        CircuitReporter().trip(
            f"{first.account}/{platform}", now=NOON, retry_after=300, reason=f"No key of {platform}"
        )
    platforms = [["ios"], ["web"], ["ios"]]
    _, deferred = choose(several(3), first, platforms=platforms)
    assert [unsent.hold.detail for unsent in deferred if unsent.hold] == [
        "No key of ios",
        "No key of web",
        "No key of ios",
    ]


def test_open_account_is_the_reason_also_if_a_platform_is_blocked(first: ScriptedProvider) -> None:
    CircuitReporter().trip(f"{first.account}/ios", now=NOON, retry_after=300, reason="No key")
    CircuitReporter().trip(first.account, now=NOON, retry_after=300, reason="Quota")
    _, (deferred,) = choose([one()], first, platforms=[["ios"]])
    assert deferred.hold is not None
    assert deferred.hold.detail == "Quota"
