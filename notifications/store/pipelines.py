"""MongoDB update pipelines that change deliveries and the fields derived from them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.channels import INBOX, PUSH
from domain.errors import FailureCode
from domain.states import OPEN, SUCCEEDED, DeliveryStatus, NotificationStatus
from domain.wait_reasons import Hold

from .claims import ClaimedDelivery
from .search_keys import search_keys

Expression = Any
Pipeline = list[dict[str, Any]]
ERROR_HISTORY_LENGTH = 20
ERROR_LENGTH = 500  # Longer error messages are truncated
HOLD_DETAIL_LENGTH, MAX_HOLDS = 200, 10
INBOX_SECRET_LIFETIME = timedelta(days=1)
"""How long the inbox shows sensitive content, if the notification doesn't expire earlier."""
OPEN_RETENTION = timedelta(days=7)
"""A notification is kept this long after an open delivery is due, whatever its retention. MongoDB
deletes it at ``purge_at``, and a limit or a plan may hold it for months."""
MILLISECOND = timedelta(milliseconds=1)
_HAS_DEVICE_RECEIPT: Expression = {"$gt": ["$$d.delivered_at", None]}
S = DeliveryStatus


@dataclass(frozen=True, slots=True)
class Computed:
    """An expression that MongoDB evaluates. Any other value is stored as is, even with a ``$``."""

    expression: Expression


def update(
    *,
    condition: Expression,
    changes: Mapping[str, Any],
    now: datetime,
    error: Mapping[str, Any] | None = None,
    extra_fields: Mapping[str, Expression] | None = None,
) -> Pipeline:
    """Return a pipeline that merges ``changes`` into each delivery that meets ``condition``.

    A change is a plain value, or :class:`Computed` from the delivery ``$$d``. ``error`` is appended
    to the error history. ``extra_fields`` are further changes of the document.
    """
    merged = {name: _expression(value) for name, value in changes.items()}
    errors = {"$literal": [dict(error)] if error is not None else []}
    pipeline = _pipeline(condition, merged, errors, now)
    return [{"$set": dict(extra_fields)}, *pipeline] if extra_fields else pipeline


def transition(*, condition: Expression, changes: Mapping[str, Any], now: datetime) -> Pipeline:
    """Return a cheaper :func:`update` for changes between open states, which aren't reported."""
    # Computes only ``status`` and ``due_at``, and leaves ``updated_at``. This halves MongoDB's cost
    # of claim and start, which run for every delivery.
    merged = {name: _expression(value) for name, value in changes.items()}
    return [
        {"$set": {"delivery": _each_delivery(condition, merged)}},
        {"$set": {"status": overall_status(now), "due_at": _due_at()}},
    ]


def update_each(
    *,
    condition: Expression,
    changes: Mapping[ObjectId, Mapping[str, Any]],
    errors: Mapping[ObjectId, Mapping[str, Any]],
    now: datetime,
    complete: Callable[[str], Expression] | None = None,
) -> Pipeline:
    """Return a pipeline that merges each document's own ``changes`` and error entry.

    Changes are plain values. ``complete`` maps the path of the changes to an expression that may
    add to them from the delivery ``$$d``. One command for a batch costs a quarter of one command
    per document.
    """
    ids = list(changes)
    rows = [
        {
            "changes": dict(changes[notification_id]),
            "errors": [dict(errors[notification_id])] if notification_id in errors else [],
        }
        for notification_id in ids
    ]
    own = "$__row.changes"
    return [
        {"$set": {"__row": row_of(ids, rows)}},
        *_pipeline(condition, complete(own) if complete else own, "$__row.errors", now),
        {"$unset": "__row"},
    ]


def error_entry(
    channel: str, code: FailureCode, reason: str | None, now: datetime
) -> dict[str, Any]:
    """Return an entry of the error history."""
    return {
        "timestamp": now,
        "channel": str(channel),
        "code": code.value,
        "error": (reason or "")[:ERROR_LENGTH],
    }


def is_cancellable() -> Expression:
    """Return whether a delivery is pending, and not part of a digest that is being sent."""
    is_unselected = {"$eq": [{"$ifNull": ["$$d.digest_epoch", None]}, None]}
    return {"$and": [{"$eq": ["$$d.status", S.PENDING.value]}, is_unselected]}


def cancelled_changes(reason: str, *, now: datetime) -> dict[str, Any]:
    """Return the changes that cancel a delivery. A push that reached a device becomes sent."""
    reached = sent_changes(PUSH, now)
    return {
        "status": _if_reached(reached["status"].expression, S.CANCELLED.value),
        "sent_at": _if_reached(reached["sent_at"].expression, "$$d.sent_at"),
        "claim": None,
        "next_attempt_at": None,
        "failure_code": _if_reached(None, FailureCode.CANCELLED.value),
        "failure_reason": _if_reached(None, {"$literal": reason}),
        "ended_at": _if_reached(None, now),
    }


def _if_reached(reached: Expression, unreached: Expression) -> Computed:
    is_reached = {"$gt": [{"$size": "$$d.accepted_targets"}, 0]}
    return Computed({"$cond": [is_reached, reached, unreached]})


def with_device_receipts(changes: str) -> Expression:
    """Return ``changes`` of a push, a field path, merged with the recorded device receipts."""
    # A device with a receipt counts as accepted. If no device is retried, the receipts decide the
    # state of the push, regardless of the other devices.
    is_over = {"$ne": [f"{changes}.status", S.PENDING.value]}
    reported = {
        "status": status_from_devices(f"{changes}.status"),
        "sent_at": {"$min": [f"{changes}.sent_at", "$$d.delivered_at"]},
        **dict.fromkeys(("next_attempt_at", "failure_code", "failure_reason", "failed_at")),
    }
    targets = {"$ifNull": [f"{changes}.accepted_targets", []]}
    return {
        "$mergeObjects": [
            changes,
            {"accepted_targets": list_union("accepted_targets", targets)},
            {"$cond": [{"$and": [is_over, _HAS_DEVICE_RECEIPT]}, reported, {}]},
        ]
    }


def sent_changes(channel: str, at: datetime) -> dict[str, Any]:
    """Return the changes of a sent delivery. Device receipts may raise the status of a push."""
    if channel != PUSH:
        return {"status": S.SENT.value, "sent_at": at}
    return {
        "status": Computed(status_from_devices(S.SENT.value)),
        "sent_at": Computed({"$min": [at, "$$d.delivered_at"]}),
    }


def list_union(name: str, more: Expression) -> Expression:
    """Return an expression for a delivery's list followed by the new elements of ``more``."""
    new = {"$not": [{"$in": ["$$one", f"$$d.{name}"]}]}
    return {
        "$concatArrays": [f"$$d.{name}", {"$filter": {"input": more, "as": "one", "cond": new}}]
    }


def status_from_devices(otherwise: Expression) -> Expression:
    """Return the status of a push by the receipts of its devices; without any, ``otherwise``."""
    is_read = {"$gt": ["$$d.read_at", None]}
    reported = {"$cond": [is_read, S.READ.value, S.DELIVERED.value]}
    return {"$cond": [_HAS_DEVICE_RECEIPT, reported, otherwise]}


def with_hold(claimed: ClaimedDelivery, hold: Hold) -> dict[str, Any]:
    """Return the change that adds an outage to those that have held a delivery."""
    if hold.is_same(claimed.hold):
        return {}
    stored = [
        {
            "reason": hold.reason.value,
            "provider": hold.provider,
            "since": hold.since,
            "detail": hold.detail[:HOLD_DETAIL_LENGTH],
        }
        for hold in (*claimed.holds, hold)[-MAX_HOLDS:]
    ]
    return {"holds": stored}


def row_of(ids: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> Expression:
    """Return an expression for the row at the document's position in ``ids``."""
    index = {"$indexOfArray": [{"$literal": list(ids)}, "$_id"]}
    return {"$arrayElemAt": [{"$literal": list(rows)}, index]}


def _pipeline(
    condition: Expression, changes: Expression, errors: Expression, now: datetime
) -> Pipeline:
    history = {"$concatArrays": [{"$ifNull": ["$error_history", []]}, errors]}
    return [
        {
            "$set": {
                "delivery": _each_delivery(condition, changes),
                "error_history": {"$slice": [history, -ERROR_HISTORY_LENGTH]},
                "updated_at": now,
            }
        },
        {"$set": derived_fields(now)},
    ]


def _each_delivery(condition: Expression, changes: Expression) -> Expression:
    element = {"$cond": [condition, {"$mergeObjects": ["$$d", changes]}, "$$d"]}
    return {"$map": {"input": "$delivery", "as": "d", "in": element}}


def derived_fields(now: datetime) -> dict[str, Expression]:
    """Return the document's fields that derive from its deliveries and from readers' marks."""
    stays_read = {"$eq": [{"$ifNull": ["$unread_at", None]}, None]}
    was_read = {
        "$or": [{"$in": [S.READ.value, "$delivery.status"]}, {"$gt": ["$marked_read_at", None]}]
    }
    read_times = {"$concatArrays": ["$delivery.read_at", ["$marked_read_at"]]}
    first_read = {"$cond": [stays_read, {"$min": read_times}, None]}
    return {
        **_callback_marks(now),
        "status": overall_status(now),
        "due_at": _due_at(),
        "purge_at": _purge_at(),
        "sent_at": {"$ifNull": [{"$min": "$delivery.sent_at"}, "$$REMOVE"]},
        "failed_at": {"$ifNull": [{"$max": "$delivery.failed_at"}, "$$REMOVE"]},
        "inbox_at": inbox_at(),
        "read_at": {"$ifNull": [first_read, "$$REMOVE"]},
        "is_read": {"$and": [was_read, stays_read]},
        "error": {"$ifNull": [_unresolved_error(), "$$REMOVE"]},
        "search_keys": search_keys(),
        **_secret_fields(now),
    }


def _purge_at() -> Expression:
    """Return the purge date, later than before if a delivery is open for that long."""
    last_due_at = {"$max": "$delivery.next_attempt_at"}
    kept = {"$max": ["$purge_at", {"$add": [last_due_at, OPEN_RETENTION // MILLISECOND]}]}
    return {"$cond": [{"$gt": ["$purge_at", None]}, kept, "$$REMOVE"]}


def _unresolved_error() -> Expression:
    succeeded = {
        "$filter": {
            "input": "$delivery",
            "as": "d",
            "cond": {"$in": ["$$d.status", sorted(s.value for s in SUCCEEDED)]},
        }
    }
    is_unresolved = {"$not": [{"$in": ["$$e.channel", "$$done.channel"]}]}
    unresolved = {"$filter": {"input": "$error_history", "as": "e", "cond": is_unresolved}}
    latest = {"$let": {"vars": {"last": {"$last": unresolved}}, "in": "$$last.error"}}
    return {"$let": {"vars": {"done": succeeded}, "in": latest}}


def _callback_marks(now: datetime) -> dict[str, Expression]:
    """Return the callback fields. A notification is marked unless all is pending or sending."""
    unreported = [S.PENDING.value, S.SENDING.value]
    is_reportable = {"$not": [{"$setIsSubset": ["$delivery.status", unreported]}]}
    marks = {"$and": [{"$gt": ["$callback_revision", None]}, is_reportable]}
    return {
        "callback_revision": {"$ifNull": [{"$add": ["$callback_revision", 1]}, "$$REMOVE"]},
        "callback_due_at": {"$ifNull": ["$callback_due_at", {"$cond": [marks, now, "$$REMOVE"]}]},
    }


def of_channel(channel: str) -> Expression:
    """Return a condition for the delivery of one channel."""
    return {"$eq": ["$$d.channel", str(channel)]}


def claimed_with(channel: str, token: str, status: DeliveryStatus) -> Expression:
    """Return a condition for the delivery that has this channel, claim token, and status."""
    return {"$and": [of_channel(channel), {"$eq": ["$$d.claim.token", token]}, _is(status)]}


def in_statuses(channel: str, statuses: Sequence[DeliveryStatus]) -> Expression:
    """Return a condition for one channel's delivery in any of ``statuses``."""
    return {"$and": [of_channel(channel), {"$in": ["$$d.status", [s.value for s in statuses]]}]}


def overall_status(now: datetime) -> Expression:
    """Return :func:`domain.states.overall_status` as a MongoDB expression."""
    retrying = {"$and": [_is(S.PENDING), {"$gt": ["$$d.attempt_count", 0]}]}
    is_unclaimed = {"$eq": [{"$ifNull": ["$$d.claim", None]}, None]}
    waiting = {"$and": [is_unclaimed, {"$gt": ["$$d.next_attempt_at", now]}]}
    due = {"$and": [_is(S.PENDING), {"$not": [waiting]}]}
    uncounted = [S.CANCELLED.value, S.SUPPRESSED.value, S.MERGED.value]
    counted = {"$setDifference": ["$delivery.status", uncounted]}
    nothing_counts = {"$eq": [counted, []]}
    is_suppressed = _subset("$delivery.status", {S.SUPPRESSED})
    return {
        "$switch": {
            "branches": [
                _branch(any_delivery(retrying), NotificationStatus.RETRYING),
                _branch(_has_status(S.SENDING, S.UNKNOWN), NotificationStatus.PROCESSING),
                _branch(any_delivery(due), NotificationStatus.QUEUED),
                _branch(_has_status(S.PENDING), NotificationStatus.CREATED),
                _branch(
                    {"$and": [nothing_counts, _has_status(S.MERGED)]}, NotificationStatus.MERGED
                ),
                _branch(is_suppressed, NotificationStatus.SUPPRESSED),
                _branch(nothing_counts, NotificationStatus.CANCELLED),
                _branch(_subset(counted, {S.DELIVERED, S.READ}), NotificationStatus.DELIVERED),
                _branch(_subset(counted, SUCCEEDED), NotificationStatus.SENT),
                _branch(_has_status(*SUCCEEDED), NotificationStatus.PARTIALLY_DELIVERED),
                _branch(_has_status(S.FAILED), NotificationStatus.FAILED),
            ],
            "default": NotificationStatus.EXPIRED.value,
        }
    }


def _expression(value: Any) -> Expression:
    return value.expression if isinstance(value, Computed) else {"$literal": value}


def _due_at() -> Expression:
    """Return when an open delivery next needs work. Without an open one, the field is removed."""
    # The time of the next attempt, or the lease's end during a send. A claim doesn't change it,
    # which would cost another update of every index for each send.
    moment = {"$ifNull": ["$$d.next_attempt_at", "$$d.claim.lease_until"]}
    is_open = {"$in": ["$$d.status", sorted(s.value for s in OPEN)]}
    open_deliveries = {"$filter": {"input": "$delivery", "as": "d", "cond": is_open}}
    earliest = {"$min": {"$map": {"input": open_deliveries, "as": "d", "in": moment}}}
    return {"$ifNull": [earliest, "$$REMOVE"]}


def inbox_at() -> Expression:
    """Return since when it is in the inbox. Nothing while it is snoozed or not delivered."""
    arrived = {"$ifNull": [{"$max": [_inbox_since(), "$resurfaced_at"]}, "$$REMOVE"]}
    return {"$cond": [{"$gt": ["$snoozed_until", None]}, "$$REMOVE", arrived]}


def _inbox_since() -> Expression:
    is_there = in_statuses(INBOX, [S.DELIVERED, S.READ])
    since = {"$cond": [is_there, "$$d.delivered_at", None]}
    return {"$min": {"$map": {"input": "$delivery", "as": "d", "in": since}}}


def _secret_fields(now: datetime) -> dict[str, Expression]:
    """Return the encrypted content, kept while a channel is open or the inbox shows it."""
    # Once no channel is open, ``encrypted_until`` is when the inbox stops showing the content.
    since, is_open = _inbox_since(), _has_status(*OPEN)
    last = {"$min": ["$expires_at", {"$add": [since, INBOX_SECRET_LIFETIME // MILLISECOND]}]}
    # Null sorts before all times.
    shown_until = {"$cond": [{"$eq": [since, None]}, None, last]}
    is_shown = {"$gt": [shown_until, now]}
    is_encrypted = {"$ne": [{"$type": "$encrypted_content"}, "missing"]}
    needed = {"$and": [is_encrypted, {"$or": [is_open, is_shown]}]}
    only_shown = {"$and": [is_encrypted, {"$not": [is_open]}, is_shown]}
    return {
        "encrypted_content": {"$cond": [needed, "$encrypted_content", "$$REMOVE"]},
        "encrypted_until": {"$cond": [only_shown, shown_until, "$$REMOVE"]},
    }


def _is(status: DeliveryStatus) -> Expression:
    return {"$eq": ["$$d.status", status.value]}


def any_delivery(condition: Expression) -> Expression:
    """Return whether any delivery, ``$$d``, meets a condition."""
    return {"$anyElementTrue": [{"$map": {"input": "$delivery", "as": "d", "in": condition}}]}


def _has_status(*statuses: DeliveryStatus) -> Expression:
    wanted = sorted(s.value for s in statuses)
    return {"$gt": [{"$size": {"$setIntersection": ["$delivery.status", wanted]}}, 0]}


def _subset(
    statuses: Expression, of: set[DeliveryStatus] | frozenset[DeliveryStatus]
) -> Expression:
    return {"$setIsSubset": [statuses, sorted(s.value for s in of)]}


def _branch(condition: Expression, status: NotificationStatus) -> dict[str, Expression]:
    return {"case": condition, "then": status.value}
