"""Changes by clients and operators: cancel, reopen, reschedule, make due now."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument

from domain.channels import Channel
from domain.errors import UNREACHED
from domain.states import DeliveryStatus
from notifications.documents.notification import NotificationDocument

from .collections import notifications
from .pipelines import Computed, Expression, cancelled_changes, is_cancellable, update

S = DeliveryStatus
MIN_RETENTION_AFTER_REOPEN = timedelta(days=14)
"""Minimum retention of a reopened notification: longer than its retries can take."""
MATCH_CANCELLABLE: Mapping[str, Any] = {"status": S.PENDING.value, "digest_epoch": None}
UNSENT_STATUSES = [S.PENDING.value, S.SUPPRESSED.value, S.CANCELLED.value]
"""Statuses in which a delivery can be without anything having been sent."""
_TOUCHED: Mapping[str, Any] = {
    "$or": [
        {"status": {"$nin": UNSENT_STATUSES}},
        {"attempt_count": {"$gt": 0}},
        {"digest_epoch": {"$gt": 0}},
    ]
}
MATCH_UNSENT: Mapping[str, Any] = {
    "delivery.status": S.PENDING.value,
    "delivery": {"$not": {"$elemMatch": _TOUCHED}},
}
"""Matches what :func:`is_unsent` is true of. A claim alone changes nothing: a worker that has only
claimed a delivery can't start it once the claim is gone."""


def is_unsent(document: NotificationDocument) -> bool:
    """Return whether a notification will be sent, and nothing of it has been."""
    statuses = [delivery["status"] for delivery in document["delivery"]]
    has_begun = any(
        delivery["attempt_count"] or delivery.get("digest_epoch")
        for delivery in document["delivery"]
    )
    return S.PENDING.value in statuses and not has_begun and set(statuses) <= set(UNSENT_STATUSES)


def cancel(
    *, notification_id: ObjectId, channels: Sequence[Channel], reason: str, now: datetime
) -> NotificationDocument | None:
    """Cancel pending deliveries on these channels. Return the notification, or None without any."""
    # A push that reached a device becomes sent instead. A worker that has only claimed a delivery
    # loses the claim. A delivery that a worker has started is no longer pending.
    names = [channel.value for channel in channels]
    pending = {"channel": {"$in": names}, **MATCH_CANCELLABLE}
    return _change(
        {"_id": notification_id, "delivery": {"$elemMatch": pending}},
        [{"$in": ["$$d.channel", names]}, is_cancellable()],
        cancelled_changes(reason, now=now),
        now=now,
    )


def cancel_pending(*, ids: Sequence[ObjectId], reason: str, now: datetime) -> int:
    """Cancel the pending deliveries of many notifications. Return how many of these changed."""
    pipeline = update(
        condition=is_cancellable(), changes=cancelled_changes(reason, now=now), now=now
    )
    wanted = {"_id": {"$in": list(ids)}, "delivery": {"$elemMatch": MATCH_CANCELLABLE}}
    return notifications().update_many(wanted, pipeline).modified_count


def reopen(
    *,
    notification_id: ObjectId,
    channels: Sequence[Channel],
    addresses: Mapping[Channel, str] | None = None,
    failed_until: datetime | None = None,
    now: datetime,
) -> NotificationDocument | None:
    """Make failed and suppressed deliveries on these channels due now.

    ``addresses`` are those of channels for which the notification has none. Return the
    notification, or None without such a delivery.
    """
    # Each delivery gets all its retries again, with delays from the start. Earlier attempts keep
    # their numbers. With ``failed_until``, only what failed up to that time is reopened.
    names = [channel.value for channel in channels]
    reopened: dict[str, Any] = {"status": S.FAILED.value}
    condition: Expression = {"$eq": ["$$d.status", S.FAILED.value]}
    if failed_until is not None:
        reopened["failed_at"] = {"$lte": failed_until}
        condition = {"$and": [condition, {"$lte": ["$$d.failed_at", failed_until]}]}
    else:
        codes = sorted(code.value for code in UNREACHED)
        withheld = {"status": S.SUPPRESSED.value, "failure_code": {"$in": codes}}
        reopened = {"$or": [reopened, withheld]}
        is_unreached = {"$and": [_is_suppressed(), {"$in": ["$$d.failure_code", codes]}]}
        condition = {"$or": [condition, is_unreached]}
    given = {
        f"recipient.{field}": {"$ifNull": [f"$recipient.{field}", {"$literal": address}]}
        for channel, address in (addresses or {}).items()
        for field in (channel.address_kind.field,)
    }
    granted = {"$subtract": ["$$d.max_attempts", {"$ifNull": ["$$d.earlier_attempts", 0]}]}
    return _change(
        {
            "_id": notification_id,
            "is_active": True,
            "delivery": {"$elemMatch": {"channel": {"$in": names}, **reopened}},
            "$and": [
                {"$or": [{"expires_at": None}, {"expires_at": {"$gt": now}}]},
                # The sensitive data was destroyed: only masked content would be sent.
                {
                    "$or": [
                        {"content.is_masked": {"$ne": True}},
                        {"encrypted_content": {"$exists": True}},
                    ]
                },
                # The content was removed by retention.
                {"content_removed_at": None},
            ],
        },
        [{"$in": ["$$d.channel", names]}, condition],
        {
            "status": S.PENDING.value,
            "claim": None,
            "claim_count": 0,
            "first_due_at": now,
            "next_attempt_at": now,
            "max_attempts": Computed({"$add": ["$$d.attempt_count", granted]}),
            "earlier_attempts": Computed("$$d.attempt_count"),
            "uncounted_attempts": 0,
            "held_ms": None,
            "failed_at": None,
            # The reason of a failure stays until the next attempt. That of a suppression is over.
            "failure_code": _unless_suppressed("$$d.failure_code"),
            "failure_reason": _unless_suppressed("$$d.failure_reason"),
            # Ambiguous devices and providers are forgotten: the attempts start over.
            "ambiguous_targets": [],
            "ambiguous_provider": None,
            "failed_over_from": None,
            "digest_id": None,
            "digest_epoch": None,
        },
        now=now,
        extra_fields={
            **given,
            "purge_at": {"$max": ["$purge_at", now + MIN_RETENTION_AFTER_REOPEN]},
        },
    )


def _is_suppressed() -> Expression:
    return {"$eq": ["$$d.status", S.SUPPRESSED.value]}


def _unless_suppressed(value: Expression) -> Computed:
    return Computed({"$cond": [_is_suppressed(), None, {"$ifNull": [value, None]}]})


def make_due_now(
    *, notification_id: ObjectId, retries_of: Sequence[Channel] | None = None, now: datetime
) -> NotificationDocument | None:
    """Make waiting deliveries due now. Return the notification, or None if none waits."""
    # Claimed deliveries and those that await a receipt stay unchanged. Earlier attempts of a retry
    # still count. ``retries_of`` selects only retries on these channels.
    # A delivery leaves its digest, and is sent by itself.
    conditions: list[Expression] = [
        is_cancellable(),
        {"$eq": [{"$ifNull": ["$$d.claim", None]}, None]},
        # A delivery due by ``updated_at`` was made due by a concurrent call with a later ``now``.
        {"$gt": ["$$d.next_attempt_at", {"$max": [now, "$updated_at"]}]},
    ]
    is_new = {"$eq": ["$$d.attempt_count", 0]}
    if retries_of is not None:
        names = [channel.value for channel in retries_of]
        conditions += [{"$in": ["$$d.channel", names]}, {"$gt": ["$$d.attempt_count", 0]}]
    is_waiting = {"$map": {"input": "$delivery", "as": "d", "in": {"$and": conditions}}}
    return _change(
        {"_id": notification_id, "$expr": {"$anyElementTrue": [is_waiting]}},
        conditions,
        {
            "next_attempt_at": now,
            "first_due_at": Computed({"$cond": [is_new, now, "$$d.first_due_at"]}),
            "held_ms": Computed({"$cond": [is_new, None, "$$d.held_ms"]}),
            "digest_id": None,
            "skips_digest": Computed(
                {"$or": ["$$d.skips_digest", {"$gt": ["$$d.digest_id", None]}]}
            ),
        },
        now=now,
    )


def link_resend(*, original_id: ObjectId, resend_id: ObjectId, now: datetime) -> None:
    """Record on a notification that another one resends it."""
    notifications().update_one(
        {"_id": original_id}, {"$addToSet": {"resent_as": resend_id}, "$set": {"updated_at": now}}
    )


def _change(
    wanted: Mapping[str, Any],
    conditions: Sequence[Expression],
    changes: Mapping[str, Any],
    *,
    now: datetime,
    extra_fields: Mapping[str, Expression] | None = None,
) -> NotificationDocument | None:
    pipeline = update(
        condition={"$and": conditions}, changes=changes, now=now, extra_fields=extra_fields
    )
    return notifications().find_one_and_update(
        wanted, pipeline, return_document=ReturnDocument.AFTER
    )


def reschedule(
    *, notification_id: ObjectId, send_at: datetime, now: datetime, is_same_local_time: bool = False
) -> NotificationDocument | None:
    """Move the send time of a notification to ``send_at``. Return None if that is too late.

    It is too late after an attempt on any channel, a delivery, or the expiry. A worker that has
    claimed a delivery without starting it loses the claim. Later steps keep their delay. An
    expiry relative to the send time moves with it; an absolute one must lie after ``send_at``. With
    ``is_same_local_time``, the notification keeps following the recipient's time zone.
    """
    due_at = Computed({"$add": [send_at, {"$subtract": ["$$d.first_due_at", _first_due_at()]}]})
    until = {"$add": [send_at, {"$multiply": ["$ttl_seconds", 1000]}]}
    moved = {"$subtract": [send_at, {"$ifNull": ["$scheduled_at", "$created_at"]}]}
    return _change(
        {
            "_id": notification_id,
            **MATCH_UNSENT,
            "$or": [
                {"ttl_seconds": {"$exists": True}},
                {"expires_at": None},
                {"expires_at": {"$gt": send_at}},
            ],
        },
        [{"$eq": ["$$d.status", S.PENDING.value]}],
        {
            "claim": None,
            "claim_count": 0,
            "first_due_at": due_at,
            "next_attempt_at": due_at,
            "held_ms": None,
            "digest_id": None,
        },
        now=now,
        extra_fields={
            "scheduled_at": send_at,
            "scheduled_local": "$scheduled_local" if is_same_local_time else "$$REMOVE",
            # Without ttl_seconds the sum is null.
            "expires_at": {"$ifNull": [until, "$expires_at", "$$REMOVE"]},
            "purge_at": {"$ifNull": [{"$add": ["$purge_at", moved]}, "$$REMOVE"]},
        },
    )


def _first_due_at() -> Expression:
    is_pending = {"$eq": ["$$one.status", S.PENDING.value]}
    pending = {"$filter": {"input": "$delivery", "as": "one", "cond": is_pending}}
    return {"$min": {"$map": {"input": pending, "as": "one", "in": "$$one.first_due_at"}}}
