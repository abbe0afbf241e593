"""Sends the due messages of a receiver under a lease, and sweeps."""

import os
import random
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

import structlog
from bson import ObjectId
from django.conf import settings

from notifyproject.db.collections import collection, unclaimed
from notifyproject.platform import broker
from notifyproject.platform.egress import Deadline
from notifyproject.platform.encryption import DecryptionError

from . import audit, endpoints, outbox, retry, signing, subscriptions
from .endpoints import Endpoint, EndpointResponse
from .events import CallbackState
from .outbox import MESSAGE_LEASE, ClaimedMessage, TryRecord
from .retry import Decision, ReceiverHealth, TryOutcome

Document = Mapping[str, Any]
_STORED_FIELDS = tuple(one.name for one in fields(ReceiverHealth) if one.name != "is_gone")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverLease:
    """A callback that this worker, and no other, may call until the lease ends."""

    client_id: ObjectId
    token: str
    url: str
    secrets: tuple[Document, ...]
    """As they are kept."""
    health: ReceiverHealth


def acquire_lease(client_id: ObjectId, *, now: datetime) -> ReceiverLease | None:
    """Take hold of a callback.

    None if it is switched off or gone, another worker has it, or it is left alone for now.
    """
    token = secrets.token_hex(16)
    before = collection("callbacks").find_one_and_update(
        {
            "_id": client_id,
            "state": CallbackState.ACTIVE.value,
            "$and": [
                unclaimed(now=now),
                {"$or": [{"open_until": None}, {"open_until": {"$lte": now}}]},
            ],
        },
        {"$set": {"claim": {"token": token, "lease_until": now + MESSAGE_LEASE}}},
    )
    if before is None:
        return None
    health_fields = {name: before.get(name) for name in _STORED_FIELDS}
    return ReceiverLease(
        client_id=client_id,
        token=token,
        url=before["url"],
        secrets=tuple(before["secrets"]),
        health=ReceiverHealth(**{**health_fields, "failures": before.get("failures", 0)}),
    )


def release_lease(lease: ReceiverLease, health: ReceiverHealth, *, now: datetime) -> bool:
    """Let go of a callback and write how its receiver does; return whether it was still held.

    A receiver that the app has replaced meanwhile is not judged by what the old one did.
    """
    changes = {name: getattr(health, name) for name in _STORED_FIELDS}
    if health.failures != lease.health.failures or not health.is_failing:
        changes["open_until"] = retry.circuit_open_until(failures=health.failures, now=now)
    set_fields = {name: value for name, value in changes.items() if value is not None}
    unset_fields = {name: "" for name, value in changes.items() if value is None}
    own_lease = {"_id": lease.client_id, "claim.token": lease.token}
    updated = collection("callbacks").update_one(
        {**own_lease, "url": lease.url},
        {"$set": set_fields, "$unset": {**unset_fields, "claim": ""}},
    )
    if updated.matched_count:
        return True
    released = collection("callbacks").update_one(own_lease, {"$unset": {"claim": ""}})
    return released.matched_count == 1


def is_available(callback: Document, *, now: datetime) -> bool:
    """Return whether a callback is called and no worker has hold of it."""
    claim = callback.get("claim")
    is_leased = claim is not None and claim["lease_until"] > now
    return callback["state"] == CallbackState.ACTIVE and not is_leased


log = structlog.get_logger(__name__)
BATCH_SIZE = 20
"""Messages of one round."""
MAX_CONCURRENT_REQUESTS = 4
"""Requests to one receiver at the same time."""
MAX_ROUND_SECONDS = 20.0
"""Seconds after which a round begins no further request: with the last one it takes 35 s."""
MAX_WAKEUP_DELAY = timedelta(seconds=broker.MAX_COUNTDOWN)
REQUEUE_DELAY = timedelta(seconds=1)
"""How long an app waits for a thread of this process."""
_random = random.SystemRandom()
Clock = Callable[[], datetime]
ShutdownCheck = Callable[[], bool]
"""Whether this process is to stop."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one sweep did."""

    woken: int
    """Apps that workers were told to call."""
    unpublished: int
    """Apps that are to be called and that the broker did not take a hint for."""


@dataclass(frozen=True, slots=True)
class _Route:
    """How a receiver is reached, and what its messages are signed with."""

    endpoint: Endpoint
    secrets: Sequence[str]


def _is_never_shutting_down() -> bool:
    return False


def run_round(
    client_id: ObjectId, *, clock: Clock, is_shutting_down: ShutdownCheck = _is_never_shutting_down
) -> int:
    """Send an app a round of what is due, and see to it that the rest is looked at.

    Returns how many requests were made. A process that stops begins no further ones.
    """
    slots = _round_slots(os.getpid())
    if not slots.acquire(blocking=False):
        now = clock()
        outbox.send_wakeup(client_id, at=now + REQUEUE_DELAY, now=now)
        return 0
    try:
        lease = acquire_lease(client_id, now=clock())
        if lease is None:
            return 0
        request_count = _send_round(lease, clock, is_shutting_down)
    finally:
        slots.release()
    if request_count is None:
        return 0
    callback = subscriptions.get_many([client_id]).get(client_id)
    now = clock()
    if callback is not None and (at := _next_wakeup_at(callback, now)) is not None:
        outbox.send_wakeup(client_id, at=at, now=now)
    return request_count


def run_inline(*, clock: Clock, is_shutting_down: ShutdownCheck = _is_never_shutting_down) -> int:
    """Call every app that is due in this process, without a broker; return how often."""
    total = 0
    for client_id in outbox.waiting_clients():
        while request_count := run_round(client_id, clock=clock, is_shutting_down=is_shutting_down):
            total += request_count
    return total


def sweep(*, now: datetime) -> SweepReport:
    """Find what no hint reached, and end what has nowhere to go."""
    waiting = outbox.waiting_clients()
    callbacks = subscriptions.get_many(waiting)
    woken = unpublished = 0
    for client_id in waiting:
        callback = callbacks.get(client_id)
        if callback is None:
            outbox.fail_pending(client_id=client_id, reason=outbox.REMOVED_REASON)
        elif callback["state"] != CallbackState.ACTIVE:
            outbox.fail_pending(client_id=client_id, reason=outbox.DISABLED_REASON)
        elif (at := _next_wakeup_at(callback, now)) is not None:
            is_published = outbox.send_wakeup(client_id, at=at, now=now)
            woken += is_published
            unpublished += not is_published
    log.info("callbacks_swept", waiting=len(waiting), woken=woken, unpublished=unpublished)
    return SweepReport(woken, unpublished)


def _send_round(lease: ReceiverLease, clock: Clock, is_shutting_down: ShutdownCheck) -> int | None:
    """Send a round; return how many requests that was, None if the receiver cannot be reached."""
    health, request_count = lease.health, 0
    try:
        route = _build_route(lease, clock())
        if route is None:
            return None
        limit = 1 if health.is_failing else BATCH_SIZE
        messages = outbox.claim(client_id=lease.client_id, limit=limit, now=clock())
        tried_ids = set()
        for message, started_at, response in _send_messages(
            route, messages, clock, is_shutting_down
        ):
            tried_ids.add(message.id)
            health = _settle(message, started_at, response, health, clock())
            request_count += 1
        outbox.release([one for one in messages if one.id not in tried_ids])
    finally:
        release_lease(lease, health, now=clock())
    reason = health.disable_reason(now=clock())
    if reason is not None and subscriptions.disable(
        client_id=lease.client_id, reason=reason, now=clock(), url=lease.url
    ):
        log.warning("callback_disabled", client_id=str(lease.client_id), reason=reason.value)
        audit.record_disabled(lease.client_id, reason)
        outbox.fail_pending(client_id=lease.client_id, reason=outbox.DISABLED_REASON)
    return request_count


def _send_messages(
    route: _Route, messages: Sequence[ClaimedMessage], clock: Clock, is_shutting_down: ShutdownCheck
) -> Iterator[tuple[ClaimedMessage, datetime, EndpointResponse]]:
    """Send messages, a few at once, and give each with what came of it.

    It ends early when the time of a round is over, when this process stops, and when a receiver
    has failed so often in a row that it is better left alone.
    """
    deadline, failures = Deadline.after(MAX_ROUND_SECONDS), 0
    with ThreadPoolExecutor(MAX_CONCURRENT_REQUESTS) as pool:
        for start in range(0, len(messages), MAX_CONCURRENT_REQUESTS):
            if is_shutting_down():
                return
            batch = messages[start : start + MAX_CONCURRENT_REQUESTS]
            started_at = clock()
            responses = list(pool.map(partial(_post_message, route, started_at), batch))
            yield from (
                (message, started_at, response)
                for message, response in zip(batch, responses, strict=True)
            )
            for response in responses:
                failures = 0 if response.error is None else failures + 1
            is_gone = any(response.status == retry.GONE for response in responses)
            if deadline.is_expired or is_gone or failures >= retry.FAILURES_TO_OPEN:
                return


def _post_message(route: _Route, now: datetime, message: ClaimedMessage) -> EndpointResponse:
    signed = signing.sign_headers(
        message_id=message.id,
        timestamp=int(now.timestamp()),
        body=message.body,
        secrets=route.secrets,
    )
    return endpoints.post(route.endpoint, body=message.body, headers=signed)


def _settle(
    message: ClaimedMessage,
    started_at: datetime,
    response: EndpointResponse,
    health: ReceiverHealth,
    now: datetime,
) -> ReceiverHealth:
    """Write what became of a try, and return how the receiver does after it."""
    decision = retry.decide_retry(
        status=response.status,
        tries=message.tries + 1,
        pause=retry.parse_retry_after(response.headers, now=now),
        now=now,
        jitter=_random.random(),
    )
    record = TryRecord(
        at=started_at,
        duration_ms=response.duration_ms,
        status_code=response.status,
        error=response.error,
        excerpt=response.excerpt,
    )
    if not outbox.settle(message, record, decision):
        log.info("callback_lease_lost", message_id=message.id)
    _log_attempt(message, response, decision)
    if response.error is None:
        return health.after_success(at=now)
    return health.after_failure(
        at=now, error=response.error, is_gone=decision.outcome is TryOutcome.GONE
    )


def _log_attempt(message: ClaimedMessage, response: EndpointResponse, decision: Decision) -> None:
    log.info(
        "callback_attempted",
        message_id=message.id,
        attempt=message.tries + 1,
        status=response.status,
        duration_ms=response.duration_ms,
        outcome=decision.outcome.value,
    )


def _build_route(lease: ReceiverLease, now: datetime) -> _Route | None:
    """Return how to reach a receiver; None if it cannot be, for a setting of ours."""
    try:
        endpoint = endpoints.parse_url(lease.url, allow_loopback=settings.CALLBACK_LOOPBACK)
        secrets = subscriptions.signing_secrets(lease.secrets, client_id=lease.client_id, now=now)
    except (endpoints.InvalidUrlError, DecryptionError) as error:
        log.warning("callback_misconfigured", client_id=str(lease.client_id), reason=str(error))
        return None
    return _Route(endpoint, secrets)


def _next_wakeup_at(callback: Document, now: datetime) -> datetime | None:
    """Return when a worker is to look at an app, within a minute; None if later, or not at all."""
    due = outbox.next_due_at(callback["_id"])
    if due is None or not is_available(callback, now=now):
        return None
    at = max(due, callback.get("open_until") or due, now)
    return at if at - now <= MAX_WAKEUP_DELAY else None


@cache
def _round_slots(_process_id: int) -> threading.BoundedSemaphore:
    """Return this process's places for rounds: most of its threads are for notifications."""
    return threading.BoundedSemaphore(max(settings.WORKER_THREADS // 8, 1))
