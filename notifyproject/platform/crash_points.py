"""Stopping at a step's boundary, to show that nothing is lost there.

``CRASH_AT=settle_logged`` kills the process when it first comes to that boundary,
``CRASH_AT=settle_logged:3`` the third time; ``FREEZE_AT`` stops it there until SIGCONT. Without
them :func:`at` does nothing.
"""

import functools
import itertools
import signal
import threading
from collections.abc import Callable
from enum import StrEnum

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class Boundary(StrEnum):
    """A point between two steps at which a power cut would leave things half done."""

    KEY_RESERVED = "key_reserved"
    """The idempotency key is taken, the notification is not stored."""
    ACCEPT_STORED = "accept_stored"
    """The notification is stored; nobody has been told, neither a worker nor the client."""
    ACCEPT_ENQUEUED = "accept_hinted"
    """A worker has been told; the client has no answer."""

    BULK_RESERVED = "bulk_promised"
    """The ids of a call with many notifications are promised, none of them is stored."""
    BULK_STORED = "bulk_stored"
    """As ``accept_stored``, of many."""
    BULK_ENQUEUED = "bulk_hinted"
    """As ``accept_hinted``, of many; the call's key does not know yet what became of each."""

    BROADCAST_LEASED = "broadcast_taken"
    """A worker has a broadcast's turn, and nobody of the page has been told."""
    BROADCAST_STORED = "broadcast_stored"
    """A page of a broadcast is stored; no worker was told, and its cursor does not know."""
    BROADCAST_ADVANCED = "broadcast_noted"
    """The cursor has moved, and nobody was called to the next page."""

    PULL_STARTED = "turn_taken"
    """A worker may draw from a client's crowd and has drawn nothing; nobody else was told to."""
    WAKEUP_RECEIVED = "task_taken"
    """A worker knows which deliveries to look at and has done nothing about them."""
    CLAIM_WRITTEN = "claim_written"
    """Deliveries are claimed and nobody has read what they are."""
    CLAIMED = "claimed"
    """A worker knows what it has claimed."""
    RENDERED = "rendered"
    """The messages are made; nothing is on record of a send."""
    DEFERRED = "parked"
    """Claims were given back unsent; the channels that wait for these to fail are not told."""
    RELEASED = "released"
    """Claims were given back because the process stops; nobody is told to look at them."""
    START_WRITTEN = "start_written"
    """Deliveries are being sent, their attempts are not on record."""
    STARTED = "started"
    """The attempts are on record, no byte has left."""
    SEND_BEGINS = "send_begins"
    """A sender has made sure that there is time, and is about to connect."""
    SEND_ANSWERED = "send_answered"
    """The provider has answered, and only this process knows what."""
    GROUP_BEGINS = "group_begins"
    """As ``send_begins``, of one request for several people."""
    GROUP_ANSWERED = "group_answered"
    """As ``send_answered``, of one request for several people."""
    BATCH_SENT = "batch_sent"
    """All of a batch is answered, nothing is written."""
    SETTLE_LOGGED = "settle_logged"
    """The attempts' records say what happened, the deliveries do not."""
    SETTLED = "settled"
    """The deliveries say it, too; the channels that wait for these to fail are not told."""
    RETURN_LOGGED = "withdraw_logged"
    """The records say that it was too late to begin, the deliveries are still being sent."""
    REPORTED = "reported"
    """The provider's circuit knows how it went; addresses and devices are not yet judged by it."""
    TASK_DONE = "task_done"
    """A batch is over, what is to be looked at again is not hinted at."""

    REOPENED = "reopened"
    """What had failed is open again, at a person's wish; neither they nor a worker know."""

    SWEEP_BEGINS = "sweep_begins"
    """A sweep has begun and done nothing."""
    EXPIRY_LOGGED = "rescue_logged"
    """The records of lost attempts are closed, their deliveries are still being sent."""
    LEASES_EXPIRED = "rescued"
    """What lost workers left is in doubt now, nothing is decided."""
    RESOLVED = "resolved"
    """What was in doubt is decided, nothing is hinted at."""
    SWEEP_ENQUEUED = "sweep_hinted"
    """All that is due is hinted at, the sweep's sign of life is not written."""

    WEBHOOK_LOGGED = "webhook_logged"
    """A provider's report is stored as it came, nothing is done about it."""
    RECEIPT_APPLIED = "receipt_applied"
    """A report has changed its delivery; the address is not judged, the report not remembered."""
    RECEIPTS_MARKED = "receipts_remembered"
    """All is done about a report, the provider has no answer."""


def make_reach(crash_at: str, freeze_at: str = "") -> Callable[[Boundary], None]:
    """Return what :func:`at` is to be for these places; raises ImproperlyConfigured.

    Killed, a process is gone as by a power cut; frozen, it stays as it is until SIGCONT.
    """
    targets = [
        (*_parse(text), number, itertools.count(1))
        for text, number in ((crash_at, signal.SIGKILL), (freeze_at, signal.SIGSTOP))
        if text
    ]

    def stop(boundary: Boundary) -> None:
        for target, occurrence, signal_number, counter in targets:
            if boundary is target and next(counter) == occurrence:
                # To this thread: a stop that any other takes leaves it going on for a while.
                signal.pthread_kill(threading.get_ident(), signal_number)

    return stop


def _parse(text: str) -> tuple[Boundary, int]:
    """Return the boundary, and the how manieth time it is meant."""
    name, _, times = text.partition(":")
    if name not in set(Boundary) or not (times or "1").isdecimal():
        raise ImproperlyConfigured(f"{text!r} is not a boundary, or a boundary:n.")
    return Boundary(name), int(times or 1)


@functools.cache
def _configured() -> Callable[[Boundary], None] | None:
    """Return what stops this process, or None without ``CRASH_AT`` and ``FREEZE_AT``."""
    if not (settings.CRASH_AT or settings.FREEZE_AT):
        return None
    return make_reach(settings.CRASH_AT, settings.FREEZE_AT)


def reach(boundary: Boundary) -> None:
    """Report that this process reaches a boundary: called at one place for each boundary."""
    if stop := _configured():
        stop(boundary)
