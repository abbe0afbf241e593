"""Accepting many at once: one look at the database, one insert, an outcome for each of them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bson import ObjectId

from domain.states import Priority
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary

from .. import callback_events, queries, store
from ..catalog import types
from ..content.engine import RenderCache
from ..inbox import wakeups as inbox_wakeups
from ..queueing import backlog, fair_queue
from ..store import NewNotification
from ..validation import FieldProblem, InvalidRequestError
from . import idempotency
from .idempotency import IdempotencyRecord, Refusal
from .preparation import load_recipients, prepare
from .requests import (
    AlreadyNotifiedError,
    Caller,
    NotificationRequest,
    OverloadedError,
    RepeatedItemError,
)

MAX_ITEMS = 1_000
MAX_PROBLEMS = 10
MAX_POINTERS = 4_000
"""Of one item no more problems are told, nor more characters of pointers: they are kept with the
call's key, and a thousand items share one document."""
Request = NotificationRequest | InvalidRequestError
"""An item as it was read: what it asks for, or what is wrong with its form."""
Outcome = ObjectId | Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAcceptance:
    """What became of each item of a call, in their order: an id, or a refusal."""

    outcomes: Sequence[Outcome]
    replayed: bool
    """The call is a repeated one: this is what became of it the first time."""


def accept_bulk(
    requests: Sequence[Request], *, contents: Sequence[bytes], caller: Caller, now: datetime
) -> BulkAcceptance:
    """Check, store and hint at many notifications; a bad one does not stop the others.

    ``contents`` are the items as bytes: those of equal items are equal. Of equal ones the first is
    accepted. While too much waits to be sent, only critical ones are.

    Raises KeyReused, Overloaded if that leaves none; PyMongoError when nothing can be promised.
    """
    fingerprint = _fingerprint(contents)
    promise = idempotency.find(caller=caller, fingerprint=fingerprint)
    if promise is not None:
        return _again(promise, requests, caller=caller, now=now)
    mine, prepared = _assess(requests, contents, caller=caller, now=now)
    promise, is_mine = idempotency.reserve(mine, caller=caller, fingerprint=fingerprint)
    crash_points.reach(Boundary.BULK_PROMISED)
    if not is_mine:
        return _again(promise, requests, caller=caller, now=now)
    kept = _store_accepted(promise, prepared, {}, caller=caller, now=now)
    return BulkAcceptance(outcomes=kept.outcomes(), replayed=False)


def _again(
    promise: IdempotencyRecord, requests: Sequence[Request], *, caller: Caller, now: datetime
) -> BulkAcceptance:
    """Return what became of a call that was made before; do what is left to do of it."""
    if not promise.is_kept:
        prepared, invalid = _prepare_again(promise, requests, caller=caller)
        promise = _store_accepted(promise, prepared, invalid, caller=caller, now=now)
    return BulkAcceptance(outcomes=promise.outcomes(), replayed=True)


def _assess(
    requests: Sequence[Request], contents: Sequence[bytes], *, caller: Caller, now: datetime
) -> tuple[IdempotencyRecord, dict[int, NewNotification]]:
    """Return what can be promised, and the notifications for it by their places."""
    refused = _repeated(contents)
    wanted = {n: one for n, one in enumerate(requests) if n not in refused}
    if backlog.is_overloaded(now=now):
        refused |= _refuse_overload(wanted)
        wanted = {n: one for n, one in wanted.items() if n not in refused}
    prepared, invalid = _prepare(wanted, caller=caller, now=now)
    ids = {n: one.id for n, one in prepared.items()}
    return IdempotencyRecord(ids=ids, refused={**refused, **invalid}, made_at=now), prepared


def _fingerprint(contents: Sequence[bytes]) -> str:
    digest = hashlib.sha256(b"bulk")
    for content in contents:
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


def _repeated(contents: Sequence[bytes]) -> dict[int, Refusal]:
    """Return the items that stand in the call before, each with the place of the first."""
    first: dict[bytes, int] = {}
    found: dict[int, Refusal] = {}
    for place, content in enumerate(contents):
        if (earlier := first.setdefault(content, place)) != place:
            found[place] = RepeatedItemError(earlier)
    return found


def _refuse_overload(wanted: Mapping[int, Request]) -> dict[int, Refusal]:
    """Return the items that have to wait; raises Overloaded if all of them have to."""
    waiting = [n for n, one in wanted.items() if not _is_critical(one)]
    if len(waiting) == len(wanted):
        raise OverloadedError(backlog.RETRY_AFTER)
    return dict.fromkeys(waiting, OverloadedError(backlog.RETRY_AFTER))


def _is_critical(request: Request) -> bool:
    if isinstance(request, InvalidRequestError):
        return False
    try:
        default = types.get_type(request.type).priority
    except types.UnknownTypeError:
        return False
    return (request.priority or default) == Priority.CRITICAL


def _prepare(
    wanted: Mapping[int, Request], *, caller: Caller, now: datetime
) -> tuple[dict[int, NewNotification], dict[int, Refusal]]:
    """Return the notifications asked for, and what is wrong with the others, by their places."""
    requests = {n: one for n, one in wanted.items() if isinstance(one, NotificationRequest)}
    invalid: dict[int, Refusal] = {
        n: _brief(one) for n, one in wanted.items() if isinstance(one, InvalidRequestError)
    }
    known = replace(load_recipients(list(requests.values()), now=now), memory=RenderCache())
    prepared: dict[int, NewNotification] = {}
    for place, request in requests.items():
        try:
            prepared[place] = prepare(
                request, notification_id=ObjectId(), caller=caller, known=known, now=now
            ).notification
        except InvalidRequestError as problem:
            invalid[place] = _brief(problem)
    return prepared, invalid


def _prepare_again(
    promise: IdempotencyRecord, requests: Sequence[Request], *, caller: Caller
) -> tuple[dict[int, NewNotification], dict[int, Refusal]]:
    """Return what was promised and is not stored yet, as it was then: with the ids it was given.

    Whoever promised it may be about to store it: both store the same. What cannot be accepted any
    more, because its type is gone, was promised to nobody yet.
    """
    stored = queries.existing_ids(list(promise.ids.values()))
    missing = {place: one for place, one in promise.ids.items() if one not in stored}
    wanted = {place: requests[place] for place in missing}
    prepared, invalid = _prepare(wanted, caller=caller, now=promise.made_at)
    return {n: replace(one, id=missing[n]) for n, one in prepared.items()}, invalid


def _brief(refusal: InvalidRequestError) -> InvalidRequestError:
    """Return what is wrong with an item, as much of it as is told."""
    told: list[FieldProblem] = []
    length = 0
    for problem in refusal.problems[:MAX_PROBLEMS]:
        length += len(problem.pointer)
        if told and length > MAX_POINTERS:
            break
        told.append(problem)
    return InvalidRequestError(told)


def _store_accepted(
    promise: IdempotencyRecord,
    prepared: Mapping[int, NewNotification],
    invalid: Mapping[int, Refusal],
    *,
    caller: Caller,
    now: datetime,
) -> IdempotencyRecord:
    """Store what was promised and is not stored yet; return what became of the whole promise."""
    results = store.accept(callback_events.mark_for_callbacks(list(prepared.values())), now=now)
    crash_points.reach(Boundary.BULK_STORED)
    refused = dict(invalid)
    for place, result in zip(prepared, results, strict=True):
        if isinstance(result, store.DuplicateEntity):
            is_own = result.client_id == caller.client_id
            refused[place] = AlreadyNotifiedError(result.notification_id if is_own else None)
    accepted = [r.document for r in results if isinstance(r, store.Accepted)]
    fair_queue.enqueue_wakeups(accepted, now=now)
    inbox_wakeups.wake_accepted(accepted)
    callback_events.enqueue_publisher(now=now)
    crash_points.reach(Boundary.BULK_HINTED)
    kept = replace(
        promise,
        ids={place: one for place, one in promise.ids.items() if place not in refused},
        refused={**promise.refused, **refused},
    )
    return idempotency.complete(kept, caller=caller, now=now)
