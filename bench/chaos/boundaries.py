"""How a process reaches each boundary of :mod:`notifyproject.platform.crash_points`. Data only."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from notifyproject.platform.crash_points import Boundary

EMAIL, PUSH, WHATSAPP, IN_APP = EVERY_CHANNEL = ("email", "push", "whatsapp", "in_app")
WITH_RECEIPTS = (EMAIL, WHATSAPP)
"""Channels whose provider sends receipts."""


class Trigger(StrEnum):
    """What brings a process to a boundary."""

    SENDING = "a worker sends one notification"
    EXPIRED = "a worker takes one whose time is over"
    SAME_CONTENT = "a worker sends the same mail to two people"
    BURST = "a worker draws from a client's crowd"
    SHUTDOWN = "a worker is asked to end in the middle of a batch"
    FROZEN = "a worker is frozen for a minute and more before it sends"
    POST = "an app posts a notification"
    BULK = "an app posts many in one request"
    BROADCAST = "a worker tells a page of a broadcast's audience"
    RETRY = "a person re-opens what has failed"
    RECEIPT = "a provider reports"
    SWEEP = "a sweep finds what a lost worker was sending"


@dataclass(frozen=True, slots=True)
class BoundaryCase:
    """How to reach a boundary, on which channels, and the duplicates that may result."""

    trigger: Trigger
    channels: tuple[str, ...] = EVERY_CHANNEL
    duplicated: tuple[str, ...] = ()
    """Channels with a correct duplicate: the message was accepted, and no receipt will tell."""


B = Boundary
WITHOUT_RECEIPTS = (PUSH,)
BOUNDARY_CASES: Mapping[Boundary, BoundaryCase] = {
    B.KEY_RESERVED: BoundaryCase(Trigger.POST),
    B.ACCEPT_STORED: BoundaryCase(Trigger.POST),
    B.ACCEPT_ENQUEUED: BoundaryCase(Trigger.POST),
    B.BULK_RESERVED: BoundaryCase(Trigger.BULK),
    B.BULK_STORED: BoundaryCase(Trigger.BULK),
    B.BULK_ENQUEUED: BoundaryCase(Trigger.BULK),
    B.BROADCAST_LEASED: BoundaryCase(Trigger.BROADCAST, (PUSH,)),
    B.BROADCAST_STORED: BoundaryCase(Trigger.BROADCAST, (PUSH,)),
    B.BROADCAST_ADVANCED: BoundaryCase(Trigger.BROADCAST, (PUSH,)),
    B.PULL_STARTED: BoundaryCase(Trigger.BURST, (EMAIL,)),
    B.WAKEUP_RECEIVED: BoundaryCase(Trigger.SENDING),
    B.CLAIM_WRITTEN: BoundaryCase(Trigger.SENDING),
    B.CLAIMED: BoundaryCase(Trigger.SENDING),
    B.RENDERED: BoundaryCase(Trigger.SENDING),
    B.DEFERRED: BoundaryCase(Trigger.EXPIRED, (EMAIL,)),
    B.RELEASED: BoundaryCase(Trigger.SHUTDOWN, (EMAIL,)),
    B.START_WRITTEN: BoundaryCase(Trigger.SENDING),
    B.STARTED: BoundaryCase(Trigger.SENDING),
    B.SEND_BEGINS: BoundaryCase(Trigger.SENDING),
    B.SEND_ANSWERED: BoundaryCase(Trigger.SENDING, duplicated=WITHOUT_RECEIPTS),
    B.GROUP_BEGINS: BoundaryCase(Trigger.SAME_CONTENT, (EMAIL,)),
    B.GROUP_ANSWERED: BoundaryCase(Trigger.SAME_CONTENT, (EMAIL,)),
    B.BATCH_SENT: BoundaryCase(Trigger.SENDING, duplicated=WITHOUT_RECEIPTS),
    B.SETTLE_LOGGED: BoundaryCase(Trigger.SENDING),
    B.SETTLED: BoundaryCase(Trigger.SENDING),
    B.RETURN_LOGGED: BoundaryCase(Trigger.FROZEN, (EMAIL,)),
    B.REPORTED: BoundaryCase(Trigger.SENDING),
    B.TASK_DONE: BoundaryCase(Trigger.SENDING),
    B.REOPENED: BoundaryCase(Trigger.RETRY, (EMAIL,)),
    B.SWEEP_BEGINS: BoundaryCase(Trigger.SWEEP, (EMAIL,)),
    B.EXPIRY_LOGGED: BoundaryCase(Trigger.SWEEP, (EMAIL,)),
    B.LEASES_EXPIRED: BoundaryCase(Trigger.SWEEP, (EMAIL,)),
    B.RESOLVED: BoundaryCase(Trigger.SWEEP, (EMAIL,)),
    B.SWEEP_ENQUEUED: BoundaryCase(Trigger.SWEEP, (EMAIL,)),
    B.WEBHOOK_LOGGED: BoundaryCase(Trigger.RECEIPT, WITH_RECEIPTS),
    B.RECEIPT_APPLIED: BoundaryCase(Trigger.RECEIPT, WITH_RECEIPTS),
    B.RECEIPTS_MARKED: BoundaryCase(Trigger.RECEIPT, WITH_RECEIPTS),
}


def cases_of(trigger: Trigger) -> list[tuple[Boundary, BoundaryCase]]:
    """Return the boundaries of a trigger, in order."""
    return [(boundary, one) for boundary, one in BOUNDARY_CASES.items() if one.trigger is trigger]
