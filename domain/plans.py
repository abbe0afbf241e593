"""Plans: a notification's channels in steps, each used only if no earlier one reached them. Pure.

The recipient is reached when the plan's goal, :class:`Until`, is met. A later step is sent at its
time unless they have been reached by then, or earlier if no channel before it can reach them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from .channels import Channel
from .states import DeliveryStatus
from .stored import known_member

S = DeliveryStatus
MAX_STEPS = 6
FIRST_STEP = 1
ENDED_UNREACHED = frozenset({S.FAILED, S.SUPPRESSED, S.EXPIRED, S.CANCELLED})
"""Statuses of a delivery that has ended and did not reach the recipient."""


class Until(StrEnum):
    """The goal of a plan, after which no further step is sent. Each includes the ones after it."""

    DELIVERED = "delivered"  # Confirmed by a provider; in-app does not count
    READ = "read"  # On any channel, or marked as read
    ACTED = "acted"  # Chose an action in the inbox, or the client says that they acted


def until_of(stored: str) -> Until:
    """Return a stored goal. For one of a newer version, the last: so no step is left out."""
    return known_member(stored, otherwise=Until.ACTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The channels that are used together, ``after`` the send time."""

    channels: tuple[Channel, ...]
    after: timedelta = timedelta(0)
    skip_if_late: timedelta | None = None
    """The step expires if it can't begin within this time. None: it is sent however late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Steps in the order of their times. A channel that no step names is in the first one."""

    until: Until
    steps: tuple[Step, ...]

    def step_of(self, channel: Channel) -> int:
        """Return the number of a channel's step, from 1."""
        return next(
            (number for number, step in enumerate(self.steps, 1) if channel in step.channels),
            FIRST_STEP,
        )


def may_reach(channel: Channel, status: DeliveryStatus, *, until: Until) -> bool:
    """Return whether a delivery, open or sent, may still meet the goal, so that steps wait."""
    # In-app always delivers, which says nothing about the recipient, and neither does a room.
    is_proof = channel.is_personal and (until is not Until.DELIVERED or not channel.is_inbox)
    return is_proof and status not in ENDED_UNREACHED


def how_reached(
    until: Until,
    *,
    statuses: Mapping[Channel, DeliveryStatus],
    is_marked_read: bool,
    is_acted: bool,
) -> str | None:
    """Return how the recipient was reached, as "delivered by push", or None if they were not."""
    if is_acted:
        return "acted on"
    if until is Until.ACTED:
        return None
    if read := _with_status(statuses, S.READ):
        return f"read on {read[0]}"
    if is_marked_read:
        return "marked as read"
    if until is Until.READ:
        return None
    delivered = [c for c in _with_status(statuses, S.DELIVERED) if c.is_personal and not c.is_inbox]
    return f"delivered by {delivered[0]}" if delivered else None


def _with_status(
    statuses: Mapping[Channel, DeliveryStatus], wanted: DeliveryStatus
) -> list[Channel]:
    return [channel for channel, status in statuses.items() if status is wanted]
