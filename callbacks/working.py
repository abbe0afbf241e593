"""Calling back: a round of messages to one receiver, and the sweep that finds what is due.

One worker at a time calls a receiver, with a few requests at once and for a short while; then it
goes to the end of the queue. A receiver that is slow or gone so holds up nobody but itself.
"""

import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Any

import structlog
from bson import ObjectId
from django.conf import settings

from notifyproject import publishing
from notifyproject.outside.deadlines import Deadline
from notifyproject.sealing import SealBroken

from . import audit, hints, holding, keys, messages, registry, retry, sending, signing, targets
from .holding import Hold
from .messages import Held, Tried
from .retry import Decision, Verdict
from .sending import Answer
from .standing import Standing
from .states import CallbackState
from .targets import Target

log = structlog.get_logger(__name__)

BATCH = 20
"""Messages of one round."""
AT_ONCE = 4
"""Requests to one receiver at the same time."""
ROUND = 20.0
"""Seconds after which a round begins no further request: with the last one it takes 35 s."""
SOON = timedelta(seconds=publishing.SOON)
NO_ROOM = timedelta(seconds=1)
"""How long an app waits for a thread of this process."""

_dice = random.SystemRandom()
Document = Mapping[str, Any]
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
class _Way:
    """How a receiver is reached, and what its messages are signed with."""

    target: Target
    secrets: Sequence[str]


def _never() -> bool:
    return False


def call(client_id: ObjectId, *, clock: Clock, is_stopping: Asked = _never) -> int:
    """Send an app a round of what is due, and see to it that the rest is looked at.

    Returns how many requests were made. A process that stops begins no further ones.
    """
    places = _places(os.getpid())
    if not places.acquire(blocking=False):
        now = clock()
        hints.publish(client_id, at=now + NO_ROOM, now=now)
        return 0
    try:
        hold = holding.take(client_id, now=clock())
        if hold is None:
            return 0
        made = _round(hold, clock, is_stopping)
    finally:
        places.release()
    if made is None:
        return 0
    callback = registry.of_clients([client_id]).get(client_id)
    now = clock()
    if callback is not None and (at := _next_look(callback, now)) is not None:
        hints.publish(client_id, at=at, now=now)
    return made


def call_here(*, clock: Clock, is_stopping: Asked = _never) -> int:
    """Call every app that is due in this process, without a broker; return how often."""
    total = 0
    for client_id in messages.waiting_clients():
        while made := call(client_id, clock=clock, is_stopping=is_stopping):
            total += made
    return total


def sweep(*, now: datetime) -> SweepReport:
    """Find what no hint reached, and end what has nowhere to go."""
    waiting = messages.waiting_clients()
    callbacks = registry.of_clients(waiting)
    hinted = unpublished = 0
    for client_id in waiting:
        callback = callbacks.get(client_id)
        if callback is None:
            messages.fail_pending(client_id=client_id, reason=messages.NO_MORE)
        elif callback["state"] != CallbackState.ACTIVE:
            messages.fail_pending(client_id=client_id, reason=messages.SWITCHED_OFF)
        elif (at := _next_look(callback, now)) is not None:
            is_published = hints.publish(client_id, at=at, now=now)
            hinted += is_published
            unpublished += not is_published
    log.info("callbacks_swept", waiting=len(waiting), hinted=hinted, unpublished=unpublished)
    return SweepReport(hinted, unpublished)


def _round(hold: Hold, clock: Clock, is_stopping: Asked) -> int | None:
    """Send a round; return how many requests that was, None if the receiver cannot be reached."""
    standing, made = hold.standing, 0
    try:
        way = _way(hold, clock())
        if way is None:
            return None
        limit = 1 if standing.is_failing else BATCH
        held = messages.claim(client_id=hold.client_id, limit=limit, now=clock())
        tried = set()
        for one, began, answer in _sent(way, held, clock, is_stopping):
            tried.add(one.id)
            standing = _settled(one, began, answer, standing, clock())
            made += 1
        messages.release([one for one in held if one.id not in tried])
    finally:
        holding.give_back(hold, standing, now=clock())
    reason = standing.to_be_disabled(now=clock())
    if reason is not None and registry.disable(
        client_id=hold.client_id, reason=reason, now=clock(), url=hold.url
    ):
        log.warning("callback_disabled", client_id=str(hold.client_id), reason=reason.value)
        audit.record_disabled(hold.client_id, reason)
        messages.fail_pending(client_id=hold.client_id, reason=messages.SWITCHED_OFF)
    return made


def _sent(
    way: _Way, held: Sequence[Held], clock: Clock, is_stopping: Asked
) -> Iterator[tuple[Held, datetime, Answer]]:
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
            if deadline.is_over or is_gone or failures >= retry.FAILURES_TO_OPEN:
                return


def _post(way: _Way, now: datetime, one: Held) -> Answer:
    signed = signing.headers(
        message_id=one.id,
        timestamp=int(now.timestamp()),
        body=one.body,
        secrets=way.secrets,
    )
    return sending.post(way.target, body=one.body, headers=signed)


def _settled(
    one: Held, began: datetime, answer: Answer, standing: Standing, now: datetime
) -> Standing:
    """Write what became of a try, and return how the receiver does after it."""
    decision = retry.decide(
        status=answer.status,
        tries=one.tries + 1,
        pause=retry.pause_of(answer.headers, now=now),
        now=now,
        dice=_dice.random(),
    )
    tried = Tried(
        at=began,
        duration_ms=answer.duration_ms,
        status_code=answer.status,
        error=answer.error,
        excerpt=answer.excerpt,
    )
    if not messages.settle(one, tried, decision):
        log.info("callback_taken_over", message_id=one.id)
    _log(one, answer, decision)
    if answer.error is None:
        return standing.succeeded(at=now)
    return standing.failed(at=now, error=answer.error, is_gone=decision.verdict is Verdict.GONE)


def _log(one: Held, answer: Answer, decision: Decision) -> None:
    log.info(
        "callback_tried",
        message_id=one.id,
        attempt=one.tries + 1,
        status=answer.status,
        duration_ms=answer.duration_ms,
        verdict=decision.verdict.value,
    )


def _way(hold: Hold, now: datetime) -> _Way | None:
    """Return how to reach a receiver; None if it cannot be, for a setting of ours."""
    try:
        target = targets.parse(hold.url, loopback=settings.CALLBACK_LOOPBACK)
        secrets = keys.valid(hold.secrets, client_id=hold.client_id, now=now)
    except (targets.BadTarget, SealBroken) as error:
        log.warning("callback_not_possible", client_id=str(hold.client_id), reason=str(error))
        return None
    return _Way(target, secrets)


def _next_look(callback: Document, now: datetime) -> datetime | None:
    """Return when a worker is to look at an app, within a minute; None if later, or not at all."""
    due = messages.next_due(callback["_id"])
    if due is None or not holding.is_free(callback, now=now):
        return None
    at = max(due, callback.get("open_until") or due, now)
    return at if at - now <= SOON else None


@cache
def _places(_process_id: int) -> threading.BoundedSemaphore:
    """Return this process's places for rounds: most of its threads are for notifications."""
    return threading.BoundedSemaphore(max(settings.WORKER_THREADS // 8, 1))
