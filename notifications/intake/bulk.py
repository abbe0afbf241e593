"""Accepts up to 1,000 notifications in one call, with one insert and an outcome per item."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog
from bson import ObjectId
from pymongo.errors import PyMongoError

from access.models import Scope
from domain.states import Priority
from domain.time import utc_now
from notifications.documents.records import (
    IDEMPOTENCY_KEYS,
    IdempotencyKeyDocument,
    StoredRefusal,
)
from notifications.store import acceptance
from notifications.store.acceptance import Accepted, DuplicateEntity
from notifications.store.new_notifications import NewNotification
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary

from .. import callback_events, queries
from ..catalog import types
from ..content.engine import RenderCache
from ..queueing import backlog
from ..validation import FieldProblem, InvalidRequestError
from . import idempotency, mismatches
from .acceptance import enqueue_accepted
from .preparation import load_recipients, prepare
from .requests import (
    AlreadyNotifiedError,
    Caller,
    NotificationRequest,
    OverloadedError,
    RepeatedItemError,
    ScopeRequiredError,
)

log = structlog.get_logger(__name__)
MAX_ITEMS = 1_000
MAX_PROBLEMS = 10
MAX_POINTER_CHARACTERS = 4_000
"""Limits on the problems reported for one item, since 1,000 items' share a stored document."""
BulkItem = NotificationRequest | InvalidRequestError
"""A parsed item, or the problems found while parsing it."""
Refusal = (
    InvalidRequestError
    | ScopeRequiredError
    | AlreadyNotifiedError
    | RepeatedItemError
    | OverloadedError
)
"""Why an item was not accepted."""
ItemOutcome = ObjectId | Refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """The idempotency record of a call, with an ID or a refusal for each item by index."""

    ids: Mapping[int, ObjectId]
    refusals: Mapping[int, Refusal]
    created_at: datetime
    is_complete: bool = False  # Every accepted item is stored

    def outcomes(self) -> list[ItemOutcome]:
        """Return the outcome of each item, in the order of the items."""
        outcomes: dict[int, ItemOutcome] = {**self.ids, **self.refusals}
        return [outcomes[index] for index in range(len(outcomes))]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAcceptance:
    """The outcome of each item of a call, in order, which is an ID or a refusal."""

    outcomes: Sequence[ItemOutcome]
    is_replayed: bool  # The call repeats an earlier one, whose outcomes these are


def accept_bulk(
    requests: Sequence[BulkItem], *, contents: Sequence[bytes], caller: Caller, now: datetime
) -> BulkAcceptance:
    """Validate, store, and enqueue many notifications. An invalid item doesn't stop the others.

    ``contents`` are the items as bytes. Of items with equal bytes, only the first is accepted.
    During overload, only critical items are accepted.

    Raises KeyReusedError, or OverloadedError if no item can be accepted. After a PyMongoError,
    nothing was accepted.
    """
    fingerprint = _fingerprint(contents)
    existing = idempotency.find(caller=caller, fingerprint=fingerprint)
    if existing is None:
        record, prepared = _make_record(requests, contents, caller=caller, now=now)
        existing = idempotency.reserve(
            **_dump_record(record), caller=caller, fingerprint=fingerprint, now=now
        )
        crash_points.reach(Boundary.BULK_RESERVED)
        if existing is None:
            completed = _store_accepted(record, prepared, {}, caller=caller, now=now)
            return BulkAcceptance(outcomes=completed.outcomes(), is_replayed=False)
    record = _load_record(existing)
    if not record.is_complete:
        prepared, invalid = _prepare_missing(record, requests, caller=caller)
        record = _store_accepted(record, prepared, invalid, caller=caller, now=now)
    return BulkAcceptance(outcomes=record.outcomes(), is_replayed=True)


def _make_record(
    requests: Sequence[BulkItem], contents: Sequence[bytes], *, caller: Caller, now: datetime
) -> tuple[_Record, dict[int, NewNotification]]:
    """Return a new record, and the notifications to store by index. Raises OverloadedError."""
    refusals: dict[int, Refusal] = {}
    first: dict[bytes, int] = {}
    for index, content in enumerate(contents):
        if (earlier := first.setdefault(content, index)) != index:
            refusals[index] = RepeatedItemError(earlier)
    to_prepare = {n: request for n, request in enumerate(requests) if n not in refusals}
    # The backlog is in real time, of which the clock of a test client may be ahead.
    if backlog.is_overloaded(now=min(now, utc_now())):
        critical = {n: request for n, request in to_prepare.items() if _is_critical(request)}
        overloaded = OverloadedError(backlog.RETRY_AFTER)
        if not critical:
            raise overloaded
        refusals |= dict.fromkeys(to_prepare.keys() - critical.keys(), overloaded)
        to_prepare = critical
    prepared, invalid = _prepare(to_prepare, caller=caller, now=now)
    ids = {n: notification.id for n, notification in prepared.items()}
    return _Record(ids=ids, refusals={**refusals, **invalid}, created_at=now), prepared


def _fingerprint(contents: Sequence[bytes]) -> str:
    digest = hashlib.sha256(b"bulk")
    for content in contents:
        digest.update(b"%d:" % len(content))
        digest.update(content)
    return digest.hexdigest()


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
    requests = [request for request in items.values() if isinstance(request, NotificationRequest)]
    snapshot = load_recipients(requests, now=now)
    render_cache = RenderCache()
    prepared: dict[int, NewNotification] = {}
    invalid: dict[int, Refusal] = {}
    differing: dict[str, list[Sequence[FieldProblem]]] = {}
    for index, request in items.items():
        if isinstance(request, InvalidRequestError):
            invalid[index] = _truncate_problems(request)
            continue
        try:
            one = prepare(
                request,
                notification_id=ObjectId(),
                caller=caller,
                snapshot=snapshot,
                now=now,
                render_cache=render_cache,
            )
            prepared[index] = one.notification
            if one.mismatches:
                slug = request.content.template_id or one.notification.type
                differing.setdefault(slug, []).append(one.mismatches)
        except InvalidRequestError as problem:
            invalid[index] = _truncate_problems(problem)
        except ScopeRequiredError as refusal:
            invalid[index] = refusal
    for slug, found in differing.items():
        mismatches.count(slug, found)
    return prepared, invalid


def _prepare_missing(
    record: _Record, requests: Sequence[BulkItem], *, caller: Caller
) -> tuple[dict[int, NewNotification], dict[int, Refusal]]:
    """Prepare the reserved notifications that aren't stored yet, with their reserved IDs."""
    # The first call may be about to store them, too: both store the same. An item that has become
    # invalid, for example because its type was deleted, was never acknowledged.
    stored = queries.existing_ids(list(record.ids.values()))
    missing = {
        index: notification_id
        for index, notification_id in record.ids.items()
        if notification_id not in stored
    }
    items = {index: requests[index] for index in missing}
    prepared, invalid = _prepare(items, caller=caller, now=record.created_at)
    return {
        n: replace(notification, id=missing[n]) for n, notification in prepared.items()
    }, invalid


def _truncate_problems(refusal: InvalidRequestError) -> InvalidRequestError:
    reported: list[FieldProblem] = []
    length = 0
    for problem in refusal.problems[:MAX_PROBLEMS]:
        length += len(problem.pointer)
        if reported and length > MAX_POINTER_CHARACTERS:
            break
        reported.append(problem)
    return InvalidRequestError(reported)


def _store_accepted(
    record: _Record,
    prepared: Mapping[int, NewNotification],
    invalid: Mapping[int, Refusal],
    *,
    caller: Caller,
    now: datetime,
) -> _Record:
    results = acceptance.accept(
        callback_events.mark_for_callbacks(list(prepared.values())), now=now
    )
    crash_points.reach(Boundary.BULK_STORED)
    refusals = dict(invalid)
    for index, result in zip(prepared, results, strict=True):
        if isinstance(result, DuplicateEntity):
            refusals[index] = AlreadyNotifiedError(result.notification_id)
    enqueue_accepted((r.document for r in results if isinstance(r, Accepted)), now=now)
    crash_points.reach(Boundary.BULK_ENQUEUED)
    completed = replace(
        record,
        ids={
            index: notification_id
            for index, notification_id in record.ids.items()
            if index not in refusals
        },
        refusals={**record.refusals, **refusals},
    )
    return _complete(completed, caller=caller, now=now)


def _complete(record: _Record, *, caller: Caller, now: datetime) -> _Record:
    """Mark a record as complete, or return the record that a concurrent call completed."""
    # Repeated calls are answered from the complete record. If the write fails, they complete it.
    completed = replace(record, is_complete=True)
    try:
        result = IDEMPOTENCY_KEYS().update_one(
            {"_id": idempotency.record_id(caller), "stored_at": None},
            {"$set": {**_dump_record(completed), "stored_at": now}},
        )
        if result.matched_count:
            return completed
        existing = IDEMPOTENCY_KEYS().find_one({"_id": idempotency.record_id(caller)})
    except PyMongoError as error:
        log.warning("idempotency_record_not_completed", reason=type(error).__name__)
        return completed
    return completed if existing is None else _load_record(existing)


def _dump_record(record: _Record) -> dict[str, Any]:
    return {
        "notification_ids": [record.ids[index] for index in sorted(record.ids)],
        "refusals": [
            _dump_refusal(refusal, place=index) for index, refusal in record.refusals.items()
        ],
    }


def _load_record(document: IdempotencyKeyDocument) -> _Record:
    refusals = {refusal["place"]: _load_refusal(refusal) for refusal in document["refusals"]}
    ids: list[ObjectId] = document["notification_ids"]
    accepted = (index for index in range(len(ids) + len(refusals)) if index not in refusals)
    return _Record(
        ids=dict(zip(accepted, ids, strict=True)),
        refusals=refusals,
        created_at=document["created_at"],
        is_complete=document.get("stored_at") is not None,
    )


def _dump_refusal(refusal: Refusal, *, place: int) -> StoredRefusal:
    match refusal:
        case InvalidRequestError():
            problems = [[p.pointer, p.code, p.detail] for p in refusal.problems]
            return {"place": place, "why": "invalid", "problems": problems}
        case AlreadyNotifiedError():
            known = refusal.notification_id
            return {"place": place, "why": "already_notified", "notification_id": known}
        case RepeatedItemError():
            return {"place": place, "why": "repeated", "first": refusal.first_index}
        case ScopeRequiredError():
            return {"place": place, "why": "scope_required", "scope": refusal.scope.value}
        case OverloadedError():
            return {"place": place, "why": "overloaded"}


def _load_refusal(stored: StoredRefusal) -> Refusal:
    match stored["why"]:
        case "invalid":
            return InvalidRequestError([FieldProblem(*problem) for problem in stored["problems"]])
        case "already_notified":
            return AlreadyNotifiedError(stored["notification_id"])
        case "repeated":
            return RepeatedItemError(stored["first"])
        case "scope_required":
            return ScopeRequiredError(Scope(stored["scope"]))
    return OverloadedError(backlog.RETRY_AFTER)
