"""How a process reaches each boundary of :mod:`notifyproject.platform.crash_points`."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from notifyproject.platform.crash_points import Boundary

EMAIL, PUSH, WHATSAPP, IN_APP = EVERY_CHANNEL = ("email", "push", "whatsapp", "in_app")
WITH_RECEIPTS = (EMAIL, WHATSAPP)


class Trigger(StrEnum):
    """The action that brings a process to a boundary."""

    SENDING = "a worker sends one notification"
    EXPIRED = "a worker claims an expired delivery"
    SAME_CONTENT = "a worker sends the same mail to two recipients"
    BURST = "a worker pulls from a client's burst"
    SHUTDOWN = "a worker is stopped in the middle of a batch"
    FROZEN = "a worker is frozen for over a minute before it sends"
    POST = "a client posts a notification"
    BULK = "a client posts a bulk request"
    BROADCAST = "a worker processes a page of a broadcast's audience"
    FILE = "a worker reads and checks a file of recipients"
    RETRY = "an operator retries a failed notification"
    RECEIPT = "a provider sends a receipt"
    DIGEST_JOIN = "a worker puts a delivery into a digest"
    DIGEST_CLOSE = "a worker closes a digest"
    SWEEP = "a sweep recovers a lost worker's sends"


@dataclass(frozen=True, slots=True)
class BoundaryCase:
    """How to reach a boundary, on which channels, and on which of them a duplicate is correct."""

    trigger: Trigger
    channels: tuple[str, ...] = EVERY_CHANNEL
    duplicated: tuple[str, ...] = ()
    """Channels with a correct duplicate: no receipt reports that the message was accepted."""


B = Boundary
_CASES = (
    (BoundaryCase(Trigger.POST), (B.KEY_RESERVED, B.ACCEPT_STORED, B.ACCEPT_ENQUEUED)),
    (BoundaryCase(Trigger.BULK), (B.BULK_RESERVED, B.BULK_STORED, B.BULK_ENQUEUED)),
    (
        BoundaryCase(Trigger.BROADCAST, (PUSH,)),
        (B.BROADCAST_LEASED, B.BROADCAST_STORED, B.BROADCAST_ADVANCED),
    ),
    (
        BoundaryCase(Trigger.FILE, (EMAIL,)),
        (B.FILE_LEASED, B.FILE_STORED, B.FILE_CHECKED, B.FILE_ADVANCED),
    ),
    (BoundaryCase(Trigger.BURST, (EMAIL,)), (B.PULL_STARTED,)),
    (BoundaryCase(Trigger.SENDING), (B.WAKEUP_RECEIVED, B.CLAIM_WRITTEN, B.CLAIMED, B.RENDERED)),
    (BoundaryCase(Trigger.SENDING), (B.START_WRITTEN, B.STARTED, B.SEND_BEGINS)),
    (BoundaryCase(Trigger.EXPIRED, (EMAIL,)), (B.DEFERRED,)),
    (BoundaryCase(Trigger.SHUTDOWN, (EMAIL,)), (B.RELEASED,)),
    (BoundaryCase(Trigger.SENDING, duplicated=(PUSH,)), (B.SEND_ANSWERED, B.BATCH_SENT)),
    (BoundaryCase(Trigger.SAME_CONTENT, (EMAIL,)), (B.GROUP_BEGINS, B.GROUP_ANSWERED)),
    (BoundaryCase(Trigger.SENDING), (B.SETTLE_LOGGED, B.SETTLED, B.REPORTED, B.TASK_DONE)),
    (BoundaryCase(Trigger.FROZEN, (EMAIL,)), (B.RETURN_LOGGED,)),
    (BoundaryCase(Trigger.RETRY, (EMAIL,)), (B.REOPENED,)),
    (BoundaryCase(Trigger.DIGEST_JOIN, (EMAIL,)), (B.DIGEST_OPENED, B.DIGEST_JOINED)),
    (
        BoundaryCase(Trigger.DIGEST_CLOSE, (EMAIL,)),
        (B.DIGEST_SELECTED, B.DIGEST_SEALED, B.DIGEST_CARRIED, B.DIGEST_MERGED),
    ),
    (
        BoundaryCase(Trigger.SWEEP, (EMAIL,)),
        (B.SWEEP_BEGINS, B.EXPIRY_LOGGED, B.LEASES_EXPIRED, B.RESOLVED, B.SWEEP_ENQUEUED),
    ),
    (
        BoundaryCase(Trigger.RECEIPT, WITH_RECEIPTS),
        (B.WEBHOOK_LOGGED, B.RECEIPT_APPLIED, B.RECEIPTS_MARKED),
    ),
)
BOUNDARY_CASES: Mapping[Boundary, BoundaryCase] = {
    boundary: case for case, boundaries in _CASES for boundary in boundaries
}


def cases_of(trigger: Trigger) -> list[tuple[Boundary, BoundaryCase]]:
    """Return the boundaries that a trigger reaches, with their cases, in order."""
    return [
        (boundary, case) for boundary, case in BOUNDARY_CASES.items() if case.trigger is trigger
    ]
