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
MAX_POINTER_CHARACTERS = 4_000
"""Of one item no more problems are told, nor more characters of pointers: they are kept with the
call's key, and a thousand items share one document."""
BulkItem = NotificationRequest | InvalidRequestError
"""An item as it was read: what it asks for, or what is wrong with its form."""
ItemOutcome = ObjectId | Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAcceptance:
    """What became of each item of a call, in their order: an id, or a refusal."""

    outcomes: Sequence[ItemOutcome]
    is_replayed: bool
    """The call is a repeated one: this is what became of it the first time."""


def accept_bulk(
    requests: Sequence[BulkItem], *, contents: Sequence[bytes], caller: Caller, now: datetime
) -> BulkAcceptance:
    """Check, store and hint at many notifications; a bad one does not stop the others.

    ``contents`` are the items as bytes: those of equal items are equal. Of equal ones the first is
    accepted. While too much waits to be sent, only critical ones are.

    Raises KeyReusedError, OverloadedError if that leaves none; PyMongoError when nothing can be promised.
    """
    fingerprint = _fingerprint(contents)
    record = idempotency.find(caller=caller, fingerprint=fingerprint)
    if record is not None:
        return _replay(record, requests, caller=caller, now=now)
    new_record, prepared = _make_record(requests, contents, caller=caller, now=now)
    record, is_new = idempotency.reserve(new_record, caller=caller, fingerprint=fingerprint)
    crash_points.reach(Boundary.BULK_RESERVED)
    if not is_new:
        return _replay(record, requests, caller=caller, now=now)
    completed = _store_accepted(record, prepared, {}, caller=caller, now=now)
    return BulkAcceptance(outcomes=completed.outcomes(), is_replayed=False)


def _replay(
    record: IdempotencyRecord, requests: Sequence[BulkItem], *, caller: Caller, now: datetime
) -> BulkAcceptance:
    """Return what became of a call that was made before; do what is left to do of it."""
    if not record.is_complete:
        prepared, invalid = _prepare_missing(record, requests, caller=caller)
        record = _store_accepted(record, prepared, invalid, caller=caller, now=now)
    return BulkAcceptance(outcomes=record.outcomes(), is_replayed=True)


def _make_record(
    requests: Sequence[BulkItem], contents: Sequence[bytes], *, caller: Caller, now: datetime
) -> tuple[IdempotencyRecord, dict[int, NewNotification]]:
    """Return what can be promised, and the notifications for it by their places."""
    refusals = _find_duplicates(contents)
    to_prepare = {n: one for n, one in enumerate(requests) if n not in refusals}
    if backlog.is_overloaded(now=now):
        refusals |= _refuse_overload(to_prepare)
        to_prepare = {n: one for n, one in to_prepare.items() if n not in refusals}
    prepared, invalid = _prepare(to_prepare, caller=caller, now=now)
    ids = {n: one.id for n, one in prepared.items()}
    return IdempotencyRecord(ids=ids, refusals={**refusals, **invalid}, created_at=now), prepared


def _fingerprint(contents: Sequence[bytes]) -> str:
    digest = hashlib.sha256(b"bulk")
    for content in contents:
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


def _find_duplicates(contents: Sequence[bytes]) -> dict[int, Refusal]:
    """Return the items that stand in the call before, each with the place of the first."""
    first: dict[bytes, int] = {}
    duplicates: dict[int, Refusal] = {}
    for index, content in enumerate(contents):
        if (earlier := first.setdefault(content, index)) != index:
            duplicates[index] = RepeatedItemError(earlier)
    return duplicates


def _refuse_overload(requests: Mapping[int, BulkItem]) -> dict[int, Refusal]:
    """Return the items that have to wait; raises OverloadedError if all of them have to."""
    deferred = [n for n, one in requests.items() if not _is_critical(one)]
    if len(deferred) == len(requests):
        raise OverloadedError(backlog.RETRY_AFTER)
    return dict.fromkeys(deferred, OverloadedError(backlog.RETRY_AFTER))


def _is_critical(request: BulkItem) -> bool:
    if isinstance(request, InvalidRequestError):
        return False
    try:
        default = types.get_type(request.type).priority
    except types.UnknownTypeError:
        return False
    return (request.priority or default) == Priority.CRITICAL


def _prepare(
    items: Mapping[int, BulkItem], *, caller: Caller, now: datetime
) -> tuple[dict[int, NewNotification], dict[int, Refusal]]:
    """Return the notifications asked for, and what is wrong with the others, by their places."""
    requests = {n: one for n, one in items.items() if isinstance(one, NotificationRequest)}
    invalid: dict[int, Refusal] = {
        n: _truncate_problems(one)
        for n, one in items.items()
        if isinstance(one, InvalidRequestError)
    }
    snapshot = load_recipients(list(requests.values()), now=now)
    render_cache = RenderCache()
    prepared: dict[int, NewNotification] = {}
    for index, request in requests.items():
        try:
            prepared[index] = prepare(
                request,
                notification_id=ObjectId(),
                caller=caller,
                snapshot=snapshot,
                now=now,
                render_cache=render_cache,
            ).notification
        except InvalidRequestError as problem:
            invalid[index] = _truncate_problems(problem)
    return prepared, invalid


def _prepare_missing(
    record: IdempotencyRecord, requests: Sequence[BulkItem], *, caller: Caller
) -> tuple[dict[int, NewNotification], dict[int, Refusal]]:
    """Return what was promised and is not stored yet, as it was then: with the ids it was given.

    Whoever promised it may be about to store it: both store the same. What cannot be accepted any
    more, because its type is gone, was promised to nobody yet.
    """
    stored = queries.existing_ids(list(record.ids.values()))
    missing = {index: one for index, one in record.ids.items() if one not in stored}
    items = {index: requests[index] for index in missing}
    prepared, invalid = _prepare(items, caller=caller, now=record.created_at)
    return {n: replace(one, id=missing[n]) for n, one in prepared.items()}, invalid


def _truncate_problems(refusal: InvalidRequestError) -> InvalidRequestError:
    """Return what is wrong with an item, as much of it as is told."""
    reported: list[FieldProblem] = []
    length = 0
    for problem in refusal.problems[:MAX_PROBLEMS]:
        length += len(problem.pointer)
        if reported and length > MAX_POINTER_CHARACTERS:
            break
        reported.append(problem)
    return InvalidRequestError(reported)


def _store_accepted(
    record: IdempotencyRecord,
    prepared: Mapping[int, NewNotification],
    invalid: Mapping[int, Refusal],
    *,
    caller: Caller,
    now: datetime,
) -> IdempotencyRecord:
    """Store what was promised and is not stored yet; return what became of the whole promise."""
    results = store.accept(callback_events.mark_for_callbacks(list(prepared.values())), now=now)
    crash_points.reach(Boundary.BULK_STORED)
    refusals = dict(invalid)
    for index, result in zip(prepared, results, strict=True):
        if isinstance(result, store.DuplicateEntity):
            is_own = result.client_id == caller.client_id
            refusals[index] = AlreadyNotifiedError(result.notification_id if is_own else None)
    accepted = [r.document for r in results if isinstance(r, store.Accepted)]
    fair_queue.enqueue_wakeups(accepted, now=now)
    inbox_wakeups.wake_accepted(accepted)
    callback_events.enqueue_publisher(now=now)
    crash_points.reach(Boundary.BULK_ENQUEUED)
    completed = replace(
        record,
        ids={index: one for index, one in record.ids.items() if index not in refusals},
        refusals={**record.refusals, **refusals},
    )
    return idempotency.complete(completed, caller=caller, now=now)
