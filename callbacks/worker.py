"""Callback worker, which sends an endpoint's due messages under a lease, and the callback sweep."""

import os
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

import structlog
from bson import ObjectId
from django.conf import settings

from domain import signing
from domain.retry import parse_retry_after
from notifyproject.db.leases import Claim, Leases, is_leased
from notifyproject.platform import broker, endpoints
from notifyproject.platform.egress import Deadline
from notifyproject.platform.encryption import DecryptionError
from notifyproject.platform.endpoints import Endpoint, EndpointResponse
from notifyproject.platform.process import worker_name

from . import audit, outbox, retry, subscriptions
from .documents import CALLBACKS, CallbackDocument, CallbackSecretDocument
from .events import CallbackState, DisabledReason
from .outbox import LEASE, ClaimedMessage
from .retry import AttemptOutcome, EndpointHealth

log = structlog.get_logger(__name__)
LEASES = Leases(collection=CALLBACKS, length=LEASE, max_claims=5)
"""More than a message has: one that ends its workers fails before its endpoint is disabled."""
_UNSTORED_FIELDS = frozenset({"is_gone", "paused_until"})
_STORED_FIELDS = tuple(
    field.name for field in fields(EndpointHealth) if field.name not in _UNSTORED_FIELDS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointLease:
    """An endpoint leased to this worker."""

    claim: Claim[CallbackDocument]
    url: str
    secrets: tuple[CallbackSecretDocument, ...]
    health: EndpointHealth

    @property
    def client_id(self) -> ObjectId:
        """The client whose endpoint it is."""
        return ObjectId(self.claim.id)


def acquire_lease(client_id: ObjectId, *, now: datetime) -> EndpointLease | None:
    """Acquire an endpoint's lease. None if it is leased or disabled, or its circuit is open.

    It is disabled if too many workers in a row ended while they held its lease.
    """
    is_closed = {"$or": [{"open_until": None}, {"open_until": {"$lte": now}}]}
    wanted = {"_id": client_id, "state": CallbackState.ACTIVE.value, **is_closed}
    claim = LEASES.claim_one(wanted, worker=worker_name(), now=now)
    if claim is None:
        return None
    document = claim.document
    health_fields: dict[str, Any] = {name: document.get(name) for name in _STORED_FIELDS}
    lease = EndpointLease(
        claim=claim,
        url=document["url"],
        secrets=tuple(document["secrets"]),
        health=EndpointHealth(**{**health_fields, "failures": document.get("failures", 0)}),
    )
    if claim.is_exhausted:
        claim.release()
        _disable(lease, DisabledReason.STUCK, now=now)
        return None
    return lease


def _disable(lease: EndpointLease, reason: DisabledReason, *, now: datetime) -> None:
    """Disable an endpoint and fail its messages, unless its URL changed meanwhile."""
    client_id = lease.client_id
    if subscriptions.disable(client_id=client_id, reason=reason, now=now, url=lease.url):
        log.warning("callback_disabled", client_id=str(client_id), reason=reason.value)
        # The service itself has no user, so the client's ID is recorded as the actor.
        audit.record(client_id, audit.DISABLED_MESSAGES[reason], by=client_id)
        outbox.fail_pending(client_id=client_id, reason=outbox.DISABLED_REASON)


def release_lease(
    lease: EndpointLease, health: EndpointHealth, *, is_used: bool = True, now: datetime
) -> bool:
    """Release a lease, and store the health unless the URL changed. Return False if it was lost.

    Only an answer to a request shows that the endpoint doesn't end its workers. A lease without one
    isn't counted.
    """
    changes = {name: getattr(health, name) for name in _STORED_FIELDS}
    if health.failures != lease.health.failures or not health.is_failing:
        circuit = retry.circuit_open_until(failures=health.failures, now=now)
        open_until = [until for until in (circuit, health.paused_until) if until is not None]
        changes["open_until"] = max(open_until, default=None)
    set_fields = {name: value for name, value in changes.items() if value is not None}
    unset_fields = {name: "" for name, value in changes.items() if value is None}
    change = {"$set": set_fields, "$unset": unset_fields}
    release = lease.claim.release if is_used else lease.claim.give_back
    return release(change, where={"url": lease.url}) or release()


BATCH_SIZE = 20
MAX_CONCURRENT_REQUESTS = 4
MAX_ROUND_SECONDS = 20.0
"""Seconds after which a round starts no request. With its last requests, a round takes 35 s."""
MAX_WAKEUP_DELAY = timedelta(seconds=broker.MAX_COUNTDOWN)
REQUEUE_DELAY = timedelta(seconds=1)
"""Delay before a wake-up returns if this process runs its maximum of rounds."""
_random = random.SystemRandom()
Clock = Callable[[], datetime]
ShutdownCheck = Callable[[], bool]
_Route = tuple[Endpoint, Sequence[str]]


@dataclass(frozen=True, slots=True)
class SweepReport:
    """Clients that one sweep woke, or couldn't wake because the broker accepted no message."""

    woken: int
    unpublished: int


def run_round(
    client_id: ObjectId, *, clock: Clock, is_shutting_down: ShutdownCheck = lambda: False
) -> int:
    """Send a round of a client's messages, and wake a worker for the rest. Return how many."""
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


def run_inline(*, clock: Clock, is_shutting_down: ShutdownCheck = lambda: False) -> int:
    """Send all due messages in this process without a broker. Return the number of requests."""
    total = 0
    for client_id in outbox.waiting_clients():
        while request_count := run_round(client_id, clock=clock, is_shutting_down=is_shutting_down):
            total += request_count
    return total


def sweep(*, now: datetime) -> SweepReport:
    """Wake workers for due messages, and fail messages of disabled or removed endpoints."""
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


def _send_round(lease: EndpointLease, clock: Clock, is_shutting_down: ShutdownCheck) -> int | None:
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
        outbox.give_back([message for message in messages if message.id not in tried_ids])
    finally:
        release_lease(lease, health, is_used=request_count > 0, now=clock())
    reason = health.disable_reason(now=clock())
    if reason is not None:
        _disable(lease, reason, now=clock())
    return request_count


def _send_messages(
    route: _Route, messages: Sequence[ClaimedMessage], clock: Clock, is_shutting_down: ShutdownCheck
) -> Iterator[tuple[ClaimedMessage, datetime, EndpointResponse]]:
    """Send messages in small concurrent batches, and yield their responses.

    Stops when time is over, the endpoint is gone or asks for a pause, or it failed
    FAILURES_TO_OPEN times in a row.
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
            is_paused = any(_pause_of(response, clock()) is not None for response in responses)
            is_over = deadline.is_expired or is_gone or is_paused
            if is_over or failures >= retry.FAILURES_TO_OPEN:
                return


def _pause_of(response: EndpointResponse, now: datetime) -> timedelta | None:
    pause = parse_retry_after(response.headers, now=now, limit=retry.MAX_RETRY_AFTER)
    return retry.endpoint_pause(response.status, pause)


def _post_message(route: _Route, now: datetime, message: ClaimedMessage) -> EndpointResponse:
    (endpoint, secrets), timestamp = route, int(now.timestamp())
    signed = signing.sign_headers(
        message_id=message.id, timestamp=timestamp, body=message.body, secrets=secrets
    )
    return endpoints.post(endpoint, body=message.body, headers=signed)


def _settle(
    message: ClaimedMessage,
    started_at: datetime,
    response: EndpointResponse,
    health: EndpointHealth,
    now: datetime,
) -> EndpointHealth:
    decision = retry.decide_retry(
        status=response.status,
        tries=message.tries + 1,
        pause=parse_retry_after(response.headers, now=now, limit=retry.MAX_RETRY_AFTER),
        now=now,
        jitter=_random.random(),
    )
    if not outbox.settle(message, response, decision, at=started_at):
        log.info("callback_lease_lost", message_id=message.id)
    log.info(
        "callback_attempted",
        message_id=message.id,
        attempt=message.tries + 1,
        status=response.status,
        duration_ms=response.duration_ms,
        outcome=decision.outcome.value,
    )
    if response.error is None:
        return health.after_success(at=now)
    failed = health.after_failure(
        at=now, error=response.error, is_gone=decision.outcome is AttemptOutcome.GONE
    )
    return failed.after_pause(_pause_of(response, now), at=now)


def _build_route(lease: EndpointLease, now: datetime) -> _Route | None:
    try:
        endpoint = endpoints.parse_url(lease.url, allow_loopback=settings.CALLBACK_LOOPBACK)
        secrets = subscriptions.signing_secrets(lease.secrets, client_id=lease.client_id, now=now)
    except (endpoints.InvalidUrlError, DecryptionError) as error:
        log.warning("callback_misconfigured", client_id=str(lease.client_id), reason=str(error))
        return None
    return endpoint, secrets


def _next_wakeup_at(callback: CallbackDocument, now: datetime) -> datetime | None:
    due, is_active = outbox.next_due_at(callback["_id"]), callback["state"] == CallbackState.ACTIVE
    if due is None or not is_active or is_leased(callback, now=now):
        return None
    at = max(due, callback.get("open_until") or due, now)
    return at if at - now <= MAX_WAKEUP_DELAY else None


@cache
def _round_slots(_process_id: int) -> threading.BoundedSemaphore:
    """Return the semaphore that limits rounds in this process to an eighth of its threads."""
    return threading.BoundedSemaphore(max(settings.WORKER_THREADS // 8, 1))
