"""Batches to choose routes for, and the circuits of providers."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bson import ObjectId

from notifications import breaker, routing
from notifications.breaker import FIRST_WAIT, Permission
from notifications.routing import Route
from notifications.store import Claimed, Parked
from notifications.targets import Target
from tests.scripted import Scripted
from tests.unit.building import NOON, claimed

AFTER = NOON + FIRST_WAIT
"""When a circuit that opened at noon wants a probe."""


def one(**fields: Any) -> Claimed:
    """Return a claimed delivery that was not tried yet."""
    return claimed(**{"notification_id": ObjectId(), "attempt_count": 0, **fields})


def several(count: int, **fields: Any) -> list[Claimed]:
    """Return so many of them."""
    return [one(**fields) for _ in range(count)]


def choose(
    claims: Sequence[Claimed],
    *providers: Scripted,
    now: datetime = NOON,
    platforms: Sequence[Sequence[str]] = (),
    paused: Mapping[str, datetime] | None = None,
) -> tuple[list[Route], list[Parked]]:
    """Choose for these claims; each goes to devices of its ``platforms``, or to one address."""
    some = platforms or [[""]] * len(claims)
    targets = {
        claim.reference: tuple(Target(address="x", platform=platform) for platform in own)
        for claim, own in zip(claims, some, strict=True)
    }
    return routing.choose(
        claims, providers=providers, targets=targets, paused=paused or {}, now=now
    )


def where(routes: Sequence[Route]) -> dict[str, list[Claimed]]:
    """Return what goes to which provider."""
    found: dict[str, list[Claimed]] = {}
    for route in routes:
        found.setdefault(route.provider.name, []).extend(route.claims)
    return found


def trip(provider: Scripted, platform: str = "", *, retry_after: float | None = None) -> None:
    """Open the circuit of a provider, or of a platform there, at noon."""
    name = f"{provider.account}:{platform}" if platform else provider.account
    breaker.trip(name, now=NOON, retry_after=retry_after)


def permission(account: str, now: datetime) -> Permission:
    """Return what an account takes."""
    return breaker.ask([account], now=now)[account]
