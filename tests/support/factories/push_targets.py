"""Pushes, and where they go."""

from datetime import datetime
from typing import Any

from delivery import targets
from domain.states import Channel
from notifications.store import ClaimedDelivery, Deferred
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON

PUSH = Channel.PUSH


def push(**fields: Any) -> ClaimedDelivery:
    """Return a push that a worker has just claimed."""
    return factories.claimed(channel=PUSH, **fields)


def resolve_targets(
    *claims: ClaimedDelivery, channel: Channel = PUSH, now: datetime = NOON
) -> targets.ResolvedTargets:
    """Return where these go."""
    return targets.resolve_targets(claims, channel=channel, now=now)


def target_ids(one: ClaimedDelivery, *, now: datetime = NOON) -> list[str | None]:
    """Return the devices it goes to; it goes somewhere."""
    aimed = resolve_targets(one, now=now)
    assert aimed.deferred == []
    return [target.device_id for target in aimed.targets[one.reference]]


def deferral(one: ClaimedDelivery, *, now: datetime = NOON) -> Deferred:
    """Return why it goes nowhere."""
    aimed = resolve_targets(one, now=now)
    assert aimed.targets == {}
    (why,) = aimed.deferred
    assert why.claimed == one
    return why
