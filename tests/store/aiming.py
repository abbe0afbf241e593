"""Pushes, and where they go."""

from datetime import datetime
from typing import Any

from domain.states import Channel
from notifications import targets
from notifications.store import Claimed, Parked
from tests import factories
from tests.factories import NOON

PUSH = Channel.PUSH


def push(**fields: Any) -> Claimed:
    """Return a push that a worker has just claimed."""
    return factories.claimed(channel=PUSH, **fields)


def aim(*claims: Claimed, channel: Channel = PUSH, now: datetime = NOON) -> targets.Aim:
    """Return where these go."""
    return targets.aim(claims, channel=channel, now=now)


def aimed_at(one: Claimed, *, now: datetime = NOON) -> list[str | None]:
    """Return the devices it goes to; it goes somewhere."""
    aimed = aim(one, now=now)
    assert aimed.parked == []
    return [target.device_id for target in aimed.targets[one.reference]]


def parked(one: Claimed, *, now: datetime = NOON) -> Parked:
    """Return why it goes nowhere."""
    aimed = aim(one, now=now)
    assert aimed.targets == {}
    (why,) = aimed.parked
    assert why.claimed == one
    return why
