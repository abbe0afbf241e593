"""Claimed deliveries to route, and open circuits."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bson import ObjectId

from delivery import circuit_breaker, routing
from delivery.circuit_breaker import FIRST_WAIT, CircuitReporter, Permission
from delivery.routing import Route
from delivery.runtime import SendingRuntime
from notifications.store.claims import ClaimedDelivery, NotSent
from providers.contract import SendTarget
from tests.support.factories.notifications import FIXED_NOON, claimed_delivery
from tests.support.fakes.provider import ScriptedProvider

AFTER = FIXED_NOON + FIRST_WAIT
"""When a circuit opened at noon allows a probe."""


def one(**fields: Any) -> ClaimedDelivery:
    """Return a claimed delivery without attempts."""
    return claimed_delivery(**{"notification_id": ObjectId(), "attempt_count": 0, **fields})


def several(count: int, **fields: Any) -> list[ClaimedDelivery]:
    return [one(**fields) for _ in range(count)]


def choose(
    claims: Sequence[ClaimedDelivery],
    *providers: ScriptedProvider,
    now: datetime = FIXED_NOON,
    platforms: Sequence[Sequence[str]] = (),
    paused: Mapping[str, datetime] | None = None,
    units: Mapping[str, int] | None = None,
) -> tuple[list[Route], list[NotSent]]:
    """Choose routes. ``platforms`` has the device platforms of each claim."""
    some = platforms or [[""]] * len(claims)
    targets = {
        claim.reference: tuple(SendTarget(address="x", platform=platform) for platform in own)
        for claim, own in zip(claims, some, strict=True)
    }
    return routing.choose_routes(
        SendingRuntime(),
        claims,
        providers=providers,
        targets=targets,
        paused=paused or {},
        units=units or {},
        now=now,
    )


def chosen_providers(routes: Sequence[Route]) -> dict[str, list[ClaimedDelivery]]:
    found: dict[str, list[ClaimedDelivery]] = {}
    for route in routes:
        found.setdefault(route.provider.name, []).extend(route.claims)
    return found


def trip(
    provider: ScriptedProvider, platform: str = "", *, retry_after: float | None = None
) -> None:
    """Open the circuit of a provider or platform at noon."""
    name = f"{provider.account}/{platform}" if platform else provider.account
    CircuitReporter().trip(name, now=FIXED_NOON, retry_after=retry_after)


def permission(account: str, now: datetime) -> Permission:
    return circuit_breaker.request_permissions([account], now=now)[account]
