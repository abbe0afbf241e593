"""How each boundary of :mod:`notifyproject.platform.crash_points` is come to. Data alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from notifyproject.platform.crash_points import Boundary

EMAIL, PUSH, WHATSAPP, IN_APP = EVERY_CHANNEL = ("email", "push", "whatsapp", "in_app")
REPORTING = (EMAIL, WHATSAPP)
"""Channels whose provider reports what became of a message."""


class Way(StrEnum):
    """What brings a process to a boundary."""

    SENDING = "a worker sends one notification"
    EXPIRED = "a worker takes one whose time is over"
    ALIKE = "a worker sends the same mail to two people"
    CROWD = "a worker draws from a client's crowd"
    ENDING = "a worker is asked to end in the middle of a batch"
    FROZEN = "a worker is frozen for a minute and more before it sends"
    POST = "an app posts a notification"
    BULK = "an app posts many in one request"
    BROADCAST = "a worker tells a page of a broadcast's audience"
    RETRY = "a person re-opens what has failed"
    REPORT = "a provider reports"
    SWEEP = "a sweep finds what a lost worker was sending"


@dataclass(frozen=True, slots=True)
class Arrival:
    """How to come to a boundary, on which channels, and what the provider then gets twice."""

    way: Way
    channels: tuple[str, ...] = EVERY_CHANNEL
    twice: tuple[str, ...] = ()
    """Channels on which a second copy is right: it was taken, and nobody will ever say so."""


B = Boundary
UNREPORTED = (PUSH,)
ARRIVALS: Mapping[Boundary, Arrival] = {
    B.KEY_RESERVED: Arrival(Way.POST),
    B.ACCEPT_STORED: Arrival(Way.POST),
    B.ACCEPT_ENQUEUED: Arrival(Way.POST),
    B.BULK_RESERVED: Arrival(Way.BULK),
    B.BULK_STORED: Arrival(Way.BULK),
    B.BULK_ENQUEUED: Arrival(Way.BULK),
    B.BROADCAST_LEASED: Arrival(Way.BROADCAST, (PUSH,)),
    B.BROADCAST_STORED: Arrival(Way.BROADCAST, (PUSH,)),
    B.BROADCAST_ADVANCED: Arrival(Way.BROADCAST, (PUSH,)),
    B.PULL_STARTED: Arrival(Way.CROWD, (EMAIL,)),
    B.WAKEUP_RECEIVED: Arrival(Way.SENDING),
    B.CLAIM_WRITTEN: Arrival(Way.SENDING),
    B.CLAIMED: Arrival(Way.SENDING),
    B.RENDERED: Arrival(Way.SENDING),
    B.DEFERRED: Arrival(Way.EXPIRED, (EMAIL,)),
    B.RELEASED: Arrival(Way.ENDING, (EMAIL,)),
    B.START_WRITTEN: Arrival(Way.SENDING),
    B.STARTED: Arrival(Way.SENDING),
    B.SEND_BEGINS: Arrival(Way.SENDING),
    B.SEND_ANSWERED: Arrival(Way.SENDING, twice=UNREPORTED),
    B.GROUP_BEGINS: Arrival(Way.ALIKE, (EMAIL,)),
    B.GROUP_ANSWERED: Arrival(Way.ALIKE, (EMAIL,)),
    B.BATCH_SENT: Arrival(Way.SENDING, twice=UNREPORTED),
    B.SETTLE_LOGGED: Arrival(Way.SENDING),
    B.SETTLED: Arrival(Way.SENDING),
    B.RETURN_LOGGED: Arrival(Way.FROZEN, (EMAIL,)),
    B.REPORTED: Arrival(Way.SENDING),
    B.TASK_DONE: Arrival(Way.SENDING),
    B.REOPENED: Arrival(Way.RETRY, (EMAIL,)),
    B.SWEEP_BEGINS: Arrival(Way.SWEEP, (EMAIL,)),
    B.EXPIRY_LOGGED: Arrival(Way.SWEEP, (EMAIL,)),
    B.LEASES_EXPIRED: Arrival(Way.SWEEP, (EMAIL,)),
    B.RESOLVED: Arrival(Way.SWEEP, (EMAIL,)),
    B.SWEEP_ENQUEUED: Arrival(Way.SWEEP, (EMAIL,)),
    B.WEBHOOK_LOGGED: Arrival(Way.REPORT, REPORTING),
    B.RECEIPT_APPLIED: Arrival(Way.REPORT, REPORTING),
    B.RECEIPTS_MARKED: Arrival(Way.REPORT, REPORTING),
}


def of_way(way: Way) -> list[tuple[Boundary, Arrival]]:
    """Return the boundaries that are come to in this way, in the order of the table."""
    return [(boundary, one) for boundary, one in ARRIVALS.items() if one.way is way]
