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

from notifyproject.db.collections import collection
from notifyproject.db.leases import unclaimed
from notifyproject.platform import broker
from notifyproject.platform.egress import Deadline
from notifyproject.platform.encryption import DecryptionError

from . import audit, endpoints, outbox, retry, signing, subscriptions
from .endpoints import Endpoint, EndpointResponse
from .events import CallbackState
from .outbox import MESSAGE_LEASE, ClaimedMessage, TryRecord
from .retry import Decision, ReceiverHealth, TryOutcome

Document = Mapping[str, Any]
_KEPT = tuple(one.name for one in fields(ReceiverHealth) if one.name != "is_gone")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiverLease:
    """A callback that this worker, and no other, may call until the lease ends."""

    client_id: ObjectId
    token: str
    url: str
    secrets: tuple[Document, ...]
    """As they are kept."""
    standing: ReceiverHealth


def acquire(client_id: ObjectId, *, now: datetime) -> ReceiverLease | None:
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
    known = {name: before.get(name) for name in _KEPT}
    return ReceiverLease(
        client_id=client_id,
        token=token,
        url=before["url"],
        secrets=tuple(before["secrets"]),
        standing=ReceiverHealth(**{**known, "failures": before.get("failures", 0)}),
    )


def release(hold: ReceiverLease, standing: ReceiverHealth, *, now: datetime) -> bool:
    """Let go of a callback and write how its receiver does; return whether it was still held.

    A receiver that the app has replaced meanwhile is not judged by what the old one did.
    """
    changes = {name: getattr(standing, name) for name in _KEPT}
    if standing.failures != hold.standing.failures or not standing.is_failing:
        changes["open_until"] = retry.open_until(failures=standing.failures, now=now)
    known = {name: value for name, value in changes.items() if value is not None}
    unknown = {name: "" for name, value in changes.items() if value is None}
    mine = {"_id": hold.client_id, "claim.token": hold.token}
    judged = collection("callbacks").update_one(
        {**mine, "url": hold.url}, {"$set": known, "$unset": {**unknown, "claim": ""}}
    )
    if judged.matched_count:
        return True
    freed = collection("callbacks").update_one(mine, {"$unset": {"claim": ""}})
    return freed.matched_count == 1


def is_free(callback: Document, *, now: datetime) -> bool:
    """Return whether a callback is called and no worker has hold of it."""
    claim = callback.get("claim")
    is_held = claim is not None and claim["lease_until"] > now
    return callback["state"] == CallbackState.ACTIVE and not is_held


log = structlog.get_logger(__name__)
BATCH = 20
"""Messages of one round."""
AT_ONCE = 4
"""Requests to one receiver at the same time."""
ROUND = 20.0
"""Seconds after which a round begins no further request: with the last one it takes 35 s."""
SOON = timedelta(seconds=broker.MAX_COUNTDOWN)
NO_ROOM = timedelta(seconds=1)
"""How long an app waits for a thread of this process."""
_random = random.SystemRandom()
Clock = Callable[[], datetime]
Asked = Callable[[], bool]
"""Whether this process is to stop."""


@dataclass(frozen=True, slots=True)
class SweepReport:
    """What one sweep did."""

    hinted: int
    """Apps that workers were told to call."""
    unpublished: int
    """Apps that are to be called and that the broker did not take a hint for."""


@dataclass(frozen=True, slots=True)
class _Route:
    """How a receiver is reached, and what its messages are signed with."""

    target: Endpoint
    secrets: Sequence[str]


def _never() -> bool:
    return False


def run_round(client_id: ObjectId, *, clock: Clock, is_stopping: Asked = _never) -> int:
    """Send an app a round of what is due, and see to it that the rest is looked at.

    Returns how many requests were made. A process that stops begins no further ones.
    """
    places = _places(os.getpid())
    if not places.acquire(blocking=False):
        now = clock()
        outbox.send_wakeup(client_id, at=now + NO_ROOM, now=now)
        return 0
    try:
        hold = acquire(client_id, now=clock())
        if hold is None:
            return 0
        made = _round(hold, clock, is_stopping)
    finally:
        places.release()
    if made is None:
        return 0
    callback = subscriptions.of_clients([client_id]).get(client_id)
    now = clock()
    if callback is not None and (at := _next_look(callback, now)) is not None:
        outbox.send_wakeup(client_id, at=at, now=now)
    return made


def run_inline(*, clock: Clock, is_stopping: Asked = _never) -> int:
    """Call every app that is due in this process, without a broker; return how often."""
    total = 0
    for client_id in outbox.waiting_clients():
        while made := run_round(client_id, clock=clock, is_stopping=is_stopping):
            total += made
    return total


def sweep(*, now: datetime) -> SweepReport:
    """Find what no hint reached, and end what has nowhere to go."""
    waiting = outbox.waiting_clients()
    callbacks = subscriptions.of_clients(waiting)
    hinted = unpublished = 0
    for client_id in waiting:
        callback = callbacks.get(client_id)
        if callback is None:
            outbox.fail_pending(client_id=client_id, reason=outbox.NO_MORE)
        elif callback["state"] != CallbackState.ACTIVE:
            outbox.fail_pending(client_id=client_id, reason=outbox.SWITCHED_OFF)
        elif (at := _next_look(callback, now)) is not None:
            is_published = outbox.send_wakeup(client_id, at=at, now=now)
            hinted += is_published
            unpublished += not is_published
    log.info("callbacks_swept", waiting=len(waiting), hinted=hinted, unpublished=unpublished)
    return SweepReport(hinted, unpublished)


def _round(hold: ReceiverLease, clock: Clock, is_stopping: Asked) -> int | None:
    """Send a round; return how many requests that was, None if the receiver cannot be reached."""
    standing, made = hold.standing, 0
    try:
        way = _route(hold, clock())
        if way is None:
            return None
        limit = 1 if standing.is_failing else BATCH
        held = outbox.claim(client_id=hold.client_id, limit=limit, now=clock())
        tried = set()
        for one, began, answer in _sent(way, held, clock, is_stopping):
            tried.add(one.id)
            standing = _settled(one, began, answer, standing, clock())
            made += 1
        outbox.release([one for one in held if one.id not in tried])
    finally:
        release(hold, standing, now=clock())
    reason = standing.to_be_disabled(now=clock())
    if reason is not None and subscriptions.disable(
        client_id=hold.client_id, reason=reason, now=clock(), url=hold.url
    ):
        log.warning("callback_disabled", client_id=str(hold.client_id), reason=reason.value)
        audit.record_disabled(hold.client_id, reason)
        outbox.fail_pending(client_id=hold.client_id, reason=outbox.SWITCHED_OFF)
    return made


def _sent(
    way: _Route, held: Sequence[ClaimedMessage], clock: Clock, is_stopping: Asked
) -> Iterator[tuple[ClaimedMessage, datetime, EndpointResponse]]:
    """Send messages, a few at once, and give each with what came of it.

    It ends early when the time of a round is over, when this process stops, and when a receiver
    has failed so often in a row that it is better left alone.
    """
    deadline, failures = Deadline.after(ROUND), 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for start in range(0, len(held), AT_ONCE):
            if is_stopping():
                return
            some = held[start : start + AT_ONCE]
            began = clock()
            answers = list(pool.map(partial(_post, way, began), some))
            yield from ((one, began, answer) for one, answer in zip(some, answers, strict=True))
            for answer in answers:
                failures = 0 if answer.error is None else failures + 1
            is_gone = any(answer.status == retry.GONE for answer in answers)
            if deadline.is_expired or is_gone or failures >= retry.FAILURES_TO_OPEN:
                return


def _post(way: _Route, now: datetime, one: ClaimedMessage) -> EndpointResponse:
    signed = signing.headers(
        message_id=one.id,
        timestamp=int(now.timestamp()),
        body=one.body,
        secrets=way.secrets,
    )
    return endpoints.post(way.target, body=one.body, headers=signed)


def _settled(
    one: ClaimedMessage,
    began: datetime,
    answer: EndpointResponse,
    standing: ReceiverHealth,
    now: datetime,
) -> ReceiverHealth:
    """Write what became of a try, and return how the receiver does after it."""
    decision = retry.decide_retry(
        status=answer.status,
        tries=one.tries + 1,
        pause=retry.pause_of(answer.headers, now=now),
        now=now,
        dice=_random.random(),
    )
    tried = TryRecord(
        at=began,
        duration_ms=answer.duration_ms,
        status_code=answer.status,
        error=answer.error,
        excerpt=answer.excerpt,
    )
    if not outbox.settle(one, tried, decision):
        log.info("callback_taken_over", message_id=one.id)
    _log(one, answer, decision)
    if answer.error is None:
        return standing.succeeded(at=now)
    return standing.failed(at=now, error=answer.error, is_gone=decision.verdict is TryOutcome.GONE)


def _log(one: ClaimedMessage, answer: EndpointResponse, decision: Decision) -> None:
    log.info(
        "callback_tried",
        message_id=one.id,
        attempt=one.tries + 1,
        status=answer.status,
        duration_ms=answer.duration_ms,
        verdict=decision.verdict.value,
    )


def _route(hold: ReceiverLease, now: datetime) -> _Route | None:
    """Return how to reach a receiver; None if it cannot be, for a setting of ours."""
    try:
        target = endpoints.parse_url(hold.url, loopback=settings.CALLBACK_LOOPBACK)
        secrets = subscriptions.signing_secrets(hold.secrets, client_id=hold.client_id, now=now)
    except (endpoints.InvalidUrlError, DecryptionError) as error:
        log.warning("callback_not_possible", client_id=str(hold.client_id), reason=str(error))
        return None
    return _Route(target, secrets)


def _next_look(callback: Document, now: datetime) -> datetime | None:
    """Return when a worker is to look at an app, within a minute; None if later, or not at all."""
    due = outbox.next_due(callback["_id"])
    if due is None or not is_free(callback, now=now):
        return None
    at = max(due, callback.get("open_until") or due, now)
    return at if at - now <= SOON else None


@cache
def _places(_process_id: int) -> threading.BoundedSemaphore:
    """Return this process's places for rounds: most of its threads are for notifications."""
    return threading.BoundedSemaphore(max(settings.WORKER_THREADS // 8, 1))
