"""Kills or freezes a process at a named boundary, for fault injection.

``CRASH_AT=settle_logged:3`` kills it when it reaches that boundary for the third time;
``FREEZE_AT`` suspends it there until SIGCONT.
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
    """A point between two steps, where a crash leaves work half done."""

    KEY_RESERVED = "key_reserved"
    """The idempotency key is reserved; the notification is not stored."""
    ACCEPT_STORED = "accept_stored"
    """The notification is stored; no wake-up and no response has been sent."""
    ACCEPT_ENQUEUED = "accept_enqueued"
    """The wake-up is enqueued; the client has no response."""

    BULK_RESERVED = "bulk_reserved"
    """The IDs of a bulk request are reserved; no notification is stored."""
    BULK_STORED = "bulk_stored"
    """As ``accept_stored``, for a bulk request."""
    BULK_ENQUEUED = "bulk_enqueued"
    """As ``accept_enqueued``, for a bulk request. Its idempotency record has no results yet."""

    BROADCAST_LEASED = "broadcast_leased"
    """A worker holds the lease of a broadcast; no recipient of the page is stored."""
    BROADCAST_STORED = "broadcast_stored"
    """A page of a broadcast is stored; no wake-up is sent, and the cursor has not moved."""
    BROADCAST_ADVANCED = "broadcast_advanced"
    """The cursor has moved; no wake-up for the next page is sent."""

    FILE_LEASED = "file_leased"
    """A worker holds the lease of a file; its next step isn't begun."""
    FILE_STORED = "file_stored"
    """The rows of a file are stored; it counts as not read."""
    FILE_CHECKED = "file_checked"
    """What was found of a part's rows is stored; the file's counts don't have it."""
    FILE_ADVANCED = "file_advanced"
    """A step of a file is recorded; no wake-up for the next one is sent."""

    PULL_STARTED = "pull_started"
    """A worker has released its pull token and pulled nothing; no other pull is enqueued."""
    WAKEUP_RECEIVED = "wakeup_received"
    """A worker has the IDs of a wake-up and has done nothing."""
    CLAIM_WRITTEN = "claim_written"
    """Deliveries are claimed; their documents are not read."""
    CLAIMED = "claimed"
    """A worker has read the documents of its claims."""
    RENDERED = "rendered"
    """The messages are rendered; no attempt is recorded."""
    DEFERRED = "deferred"
    """Claims were deferred or ended; the next steps of their plans are not opened."""
    RELEASED = "released"
    """Claims were released at shutdown; no wake-up is sent."""
    START_WRITTEN = "start_written"
    """Deliveries are in the state sending; their attempts are not recorded."""
    STARTED = "started"
    """The attempts are recorded; no byte has been sent."""
    SEND_BEGINS = "send_begins"
    """A send has enough lease left and is about to connect."""
    SEND_ANSWERED = "send_answered"
    """The provider has responded; the response is only in memory."""
    GROUP_BEGINS = "group_begins"
    """As ``send_begins``, for a request with several recipients."""
    GROUP_ANSWERED = "group_answered"
    """As ``send_answered``, for a request with several recipients."""
    BATCH_SENT = "batch_sent"
    """All responses of a batch are in memory; nothing is written."""
    SETTLE_LOGGED = "settle_logged"
    """The results are in the attempts, not in the deliveries."""
    SETTLED = "settled"
    """The deliveries are settled; the next steps of their plans are not opened."""
    RETURN_LOGGED = "return_logged"
    """The attempts are recorded as not begun; the deliveries are still in the state sending."""
    REPORTED = "reported"
    """The circuit has the result; the reputation of addresses and devices does not."""
    TASK_DONE = "task_done"
    """A batch is done; its wake-ups are not sent."""

    DIGEST_OPENED = "digest_opened"
    """Digests are open; their members are not stored as such."""
    DIGEST_JOINED = "digest_joined"
    """Members are stored; whether their digests are still open is not read again."""
    DIGEST_SELECTED = "digest_selected"
    """A worker has leased digests and selected their members; nothing is decided."""
    DIGEST_SEALED = "digest_sealed"
    """The members and outcomes of digests are fixed; no carrier is stored."""
    DIGEST_CARRIED = "digest_carried"
    """The carriers are stored; the members still wait."""
    DIGEST_MERGED = "digest_merged"
    """The members have ended; the digests are not closed, and no wake-up is sent."""

    REOPENED = "reopened"
    """A retry by hand has reopened deliveries; no response and no wake-up is sent."""

    SWEEP_BEGINS = "sweep_begins"
    """A sweep has started and done nothing."""
    EXPIRY_LOGGED = "expiry_logged"
    """The attempts of lost workers are closed; their deliveries are still in the state sending."""
    LEASES_EXPIRED = "leases_expired"
    """Deliveries of lost workers are in the state unknown; none is resolved."""
    RESOLVED = "resolved"
    """Unknown outcomes are resolved; no wake-up is sent."""
    SWEEP_ENQUEUED = "sweep_enqueued"
    """Wake-ups for all due work are sent; the heartbeat of the sweep is not written."""

    WEBHOOK_LOGGED = "webhook_logged"
    """A provider webhook is stored; its receipts are not applied."""
    RECEIPT_APPLIED = "receipt_applied"
    """A receipt is applied; reputation and the record of the receipt are not written."""
    RECEIPTS_MARKED = "receipts_marked"
    """A receipt is processed; the provider has no response."""


def make_reach(crash_at: str, freeze_at: str = "") -> Callable[[Boundary], None]:
    """Return a function that stops this process as configured. Raises ImproperlyConfigured."""
    targets = [
        (*_parse(text), number, itertools.count(1))
        for text, number in ((crash_at, signal.SIGKILL), (freeze_at, signal.SIGSTOP))
        if text
    ]

    def stop(boundary: Boundary) -> None:
        for target, occurrence, signal_number, counter in targets:
            if boundary is target and next(counter) == occurrence:
                # Signal this thread: if another thread took the signal, this thread would run on.
                signal.pthread_kill(threading.get_ident(), signal_number)

    return stop


def _parse(text: str) -> tuple[Boundary, int]:
    name, _, times = text.partition(":")
    if name not in set(Boundary) or not (times or "1").isdecimal():
        raise ImproperlyConfigured(f"{text!r} is not a boundary, or a boundary:n.")
    return Boundary(name), int(times or 1)


@functools.cache
def _configured() -> Callable[[Boundary], None] | None:
    if not (settings.CRASH_AT or settings.FREEZE_AT):
        return None
    return make_reach(settings.CRASH_AT, settings.FREEZE_AT)


def reach(boundary: Boundary) -> None:
    """Kill or freeze this process if configured. Each boundary has one call site."""
    if stop := _configured():
        stop(boundary)
