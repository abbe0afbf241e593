"""Ends the expired leases of lost workers, resolves unknown outcomes, and gives up what is old."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from bson import ObjectId
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from domain.channels import INBOX, Channel
from domain.content import Look
from domain.errors import FailureCode
from domain.retry import UNKNOWN_WAIT, AwaitReceipt, GiveUp, RetryAt, RetryState
from domain.states import OPEN, AttemptStatus, DeliveryStatus, Priority
from notifications.documents.notification import (
    DeliveryDocument,
    NotificationDocument,
)
from notifications.documents.records import DeliveryAttemptDocument
from notifyproject.db.collections import is_duplicate
from notifyproject.db.documents import ClaimDocument
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary

from .collections import attempts, notifications
from .pipelines import (
    Computed,
    claimed_with,
    error_entry,
    in_statuses,
    list_union,
    sent_changes,
    update,
)
from .reading import content_of, held_for
from .references import AttemptReference

S = DeliveryStatus
FIELDS = ("delivery", "type", "priority", "expires_at", "purge_at", "content.look", "is_test")
LOST_REASON = "Worker stopped while sending; the provider may have accepted the message."
UNKNOWN_REASON = "Outcome unknown; policy forbids a retry."
RESTORED_REASON = "Restored from a backup; it may have been sent after the backup was made."
GIVE_UP_BATCH = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownOutcome:
    """A delivery with an unknown outcome whose wait for a receipt is over."""

    notification_id: ObjectId
    channel: Channel
    type: str
    attempt_count: int
    """With the attempts before a retry by staff, which ``retry_state`` leaves out."""
    retry_state: RetryState
    provider: str
    look: Look | None = None
    is_test: bool = False
    attempted_at: datetime
    is_reached: bool  # Another device of the recipient has it: no retry is needed
    accepted_records: Sequence[DeliveryAttemptDocument] = field(default=(), hash=False)
    """Records of an unsettled acceptance."""


def expire_leases(*, now: datetime, client_id: ObjectId | None = None, limit: int = 500) -> int:
    """End sends whose lease has expired, as unknown or by their records. Return how many.

    ``client_id``: only those of one client.
    """
    expired = {"claim.lease_until": {"$lte": now}}
    found = _find_in_status(S.SENDING, expired, limit, client_id)
    abandoned = [
        (document, delivery, claim)
        for document in found
        for delivery in document["delivery"]
        if delivery["status"] == S.SENDING and (claim := delivery.get("claim")) is not None
        if claim["lease_until"] <= now
    ]
    if not abandoned:
        return 0
    records = _records([document["_id"] for document, _, _ in abandoned])
    lost, ends = [], []
    for document, delivery, claim in abandoned:
        reference = _reference(document, delivery)
        own = records.get(reference, [])
        keys = [record["_id"] for record in own] or [reference]
        lost += [_lost_attempt(key, document, delivery, claim, now) for key in keys]
        ends.append(_end_lost_attempt(document, delivery, claim, own, now))
    try:
        attempts().bulk_write(lost, ordered=False)
    except BulkWriteError as error:
        # A concurrent sweeper has recorded some of them.
        if not is_duplicate(error):
            raise
    crash_points.reach(Boundary.EXPIRY_LOGGED)
    return notifications().bulk_write(ends, ordered=False).matched_count


def unknown_outcomes(
    *, now: datetime, client_id: ObjectId | None = None, limit: int = 500
) -> list[UnknownOutcome]:
    """Return deliveries with an unknown outcome and no receipt by the deadline.

    ``client_id``: only those of one client.
    """
    found = _find_in_status(S.UNKNOWN, {"next_attempt_at": {"$lte": now}}, limit, client_id)
    records = _records([document["_id"] for document in found]) if found else {}
    return [
        UnknownOutcome(
            notification_id=document["_id"],
            channel=Channel(delivery["channel"]),
            type=document["type"],
            attempt_count=delivery["attempt_count"],
            retry_state=RetryState(
                priority=Priority(document["priority"]),
                attempt_count=delivery["attempt_count"] - (delivery.get("earlier_attempts") or 0),
                uncounted_attempts=delivery["uncounted_attempts"],
                max_attempts=delivery["max_attempts"] - (delivery.get("earlier_attempts") or 0),
                held_for=held_for(delivery),
                expires_at=document.get("expires_at"),
            ),
            provider=delivery.get("ambiguous_provider") or "",
            look=content_of(document).look,
            is_test=document.get("is_test", False),
            attempted_at=delivery.get("last_attempt_at") or now,
            is_reached=bool(delivery["accepted_targets"]),
            accepted_records=_accepted_records(records.get(_reference(document, delivery), [])),
        )
        for document in found
        for delivery in document["delivery"]
        if delivery["status"] == S.UNKNOWN and (delivery.get("next_attempt_at") or now) <= now
    ]


def resolve_unknown(
    decisions: Sequence[tuple[UnknownOutcome, RetryAt | AwaitReceipt | GiveUp]], *, now: datetime
) -> int:
    """Retry or fail deliveries with an unknown outcome and no receipt, or let them wait on.

    Return how many.
    """
    if not decisions:
        return 0
    operations = [_resolution(outcome, decision, now) for outcome, decision in decisions]
    return notifications().bulk_write(operations, ordered=False).matched_count


def count_due_before(before: datetime) -> int:
    """Count the notifications that :func:`give_up_due_before` would change, at most."""
    return sum(len(ids) for ids in _due_before(before))


def give_up_due_before(before: datetime, *, now: datetime) -> int:
    """Fail deliveries that were due before a time, as unknown; return of how many notifications.

    After a restored backup, the installation that made the backup may have sent them. An in-app
    message stays open, because the restored inbox doesn't have it.
    """
    is_old = {
        "$or": [
            {"$lte": [{"$ifNull": ["$$d.next_attempt_at", "$$d.claim.lease_until"]}, before]},
            # Waits for a receipt since before, and would be sent again by its type's policy.
            {
                "$and": [
                    {"$eq": ["$$d.status", S.UNKNOWN.value]},
                    {"$lte": ["$$d.last_attempt_at", before]},
                ]
            },
        ]
    }
    pipeline = update(
        condition={
            "$and": [
                {"$in": ["$$d.status", sorted(status.value for status in OPEN)]},
                {"$ne": ["$$d.channel", INBOX.value]},
                is_old,
            ]
        },
        changes={
            "status": S.FAILED.value,
            "claim": None,
            "next_attempt_at": None,
            "failed_at": now,
            "failure_code": FailureCode.OUTCOME_UNKNOWN.value,
            "failure_reason": RESTORED_REASON,
        },
        now=now,
    )
    return sum(
        notifications().update_many({"_id": {"$in": ids}}, pipeline).modified_count
        for ids in _due_before(before)
    )


def _due_before(before: datetime) -> Iterator[list[ObjectId]]:
    """Yield batches of IDs of notifications with an open delivery.

    It was due by ``before``, or its outcome was unknown then.
    """
    channels = [channel.value for channel in Channel if not channel.is_inbox]
    priorities = [priority.value for priority in Priority]
    unknown = {
        "channel": {"$in": channels},
        "status": S.UNKNOWN.value,
        "last_attempt_at": {"$lte": before},
        "next_attempt_at": {"$gt": before},
    }
    queries = (
        (
            {
                "priority": {"$in": priorities},
                "due_at": {"$lte": before},
                "delivery.channel": {"$in": channels},
            },
            "ntf_due",
        ),
        ({"delivery": {"$elemMatch": unknown}}, "ntf_delivery_status"),
    )
    for query, index in queries:
        found = notifications().find(query, {"_id": 1}).hint(index)
        while ids := [document["_id"] for document in islice(found, GIVE_UP_BATCH)]:
            yield ids


def _find_in_status(
    status: DeliveryStatus,
    due: Mapping[str, object],
    limit: int,
    client_id: ObjectId | None,
) -> list[NotificationDocument]:
    wanted = {"channel": {"$in": [c.value for c in Channel]}, "status": status.value, **due}
    owned = {} if client_id is None else {"client_id": client_id}
    found = notifications().find({"delivery": {"$elemMatch": wanted}, **owned}, FIELDS)
    return list(found.hint("ntf_delivery_status").limit(limit))


def _records(ids: Sequence[ObjectId]) -> dict[str, list[DeliveryAttemptDocument]]:
    """Return the attempts' records by reference. A push attempt has one for each device."""
    found: dict[str, list[DeliveryAttemptDocument]] = {}
    for record in attempts().find({"notification_id": {"$in": list(ids)}}):
        channel, number = Channel(record["channel"]), record["attempt_number"]
        key = str(AttemptReference(record["notification_id"], channel, number))
        found.setdefault(key, []).append(record)
    return found


def _reference(document: NotificationDocument, delivery: DeliveryDocument) -> str:
    channel = Channel(delivery["channel"])
    return str(AttemptReference(document["_id"], channel, delivery["attempt_count"]))


def _end_lost_attempt(
    document: NotificationDocument,
    delivery: DeliveryDocument,
    claim: ClaimDocument,
    records: Sequence[DeliveryAttemptDocument],
    now: datetime,
) -> UpdateOne:
    """Return the write that ends a lost attempt: as sent if its records say so, else unknown."""
    # A worker writes the records first, so they always say which devices accepted.
    channel, token = delivery["channel"], claim["token"]
    error: dict[str, Any] | None = None
    if accepted := _accepted_records(records):
        changes = _accepted_changes(channel, accepted[-1])
    else:
        changes = {
            "status": S.UNKNOWN.value,
            "ambiguous_provider": delivery.get("provider"),
            "next_attempt_at": now + UNKNOWN_WAIT[Priority(document["priority"])],
            "failure_code": FailureCode.WORKER_LOST.value,
            "failure_reason": LOST_REASON,
        }
        error = error_entry(channel, FailureCode.WORKER_LOST, LOST_REASON, now)
    guard = {"claim.token": token, "status": S.SENDING.value, "claim.lease_until": {"$lte": now}}
    pipeline = update(
        condition=claimed_with(channel, token, S.SENDING),
        changes={**changes, "claim": None, "accepted_targets": _accepted_targets(records)},
        now=now,
        error=error,
    )
    return UpdateOne({"_id": document["_id"], "delivery": {"$elemMatch": guard}}, pipeline)


def _accepted_records(
    records: Sequence[DeliveryAttemptDocument],
) -> Sequence[DeliveryAttemptDocument]:
    """Return the records of an attempt if the provider accepted all of its requests, else none."""
    is_sent = all(record["status"] == AttemptStatus.SENT for record in records)
    return records if is_sent else ()


def _accepted_targets(records: Sequence[DeliveryAttemptDocument]) -> Computed:
    devices = [
        record["device_id"]
        for record in records
        if record["status"] == AttemptStatus.SENT and "device_id" in record
    ]
    return Computed(list_union("accepted_targets", devices))


def _accepted_changes(channel: str, record: DeliveryAttemptDocument) -> dict[str, Any]:
    at = record["finished_at"]
    changes = {
        **sent_changes(channel, at),
        "next_attempt_at": None,
        "provider_message_id": record.get("provider_message_id"),
    }
    if channel == INBOX:
        changes |= {"status": S.DELIVERED.value, "delivered_at": at}
    return changes


def _lost_attempt(
    key: str,
    document: NotificationDocument,
    delivery: DeliveryDocument,
    claim: ClaimDocument,
    now: datetime,
) -> UpdateOne:
    # A record that isn't ``started`` any more stays: the worker had a response but didn't settle.
    channel = Channel(delivery["channel"])
    lost = {
        "status": AttemptStatus.UNKNOWN.value,
        "error_code": FailureCode.WORKER_LOST.value,
        "error_message": LOST_REASON,
        "finished_at": now,
    }
    first = {
        "notification_id": document["_id"],
        "channel": channel.value,
        "attempt_number": delivery["attempt_count"],
        "provider": delivery.get("provider"),
        "worker": claim["worker"],
        "attempted_at": delivery["last_attempt_at"],
        "purge_at": document.get("purge_at"),
    }
    started = {"$in": [{"$ifNull": ["$status", "missing"]}, ["missing", "started"]]}
    fields = {
        **{
            name: {"$cond": [started, {"$literal": value}, f"${name}"]}
            for name, value in lost.items()
        },
        **{name: {"$ifNull": [f"${name}", {"$literal": value}]} for name, value in first.items()},
    }
    # The filter includes the shard key, which an upsert must name.
    wanted = {"_id": key, "notification_id": document["_id"]}
    return UpdateOne(wanted, [{"$set": fields}], upsert=True)


def _resolution(
    outcome: UnknownOutcome, decision: RetryAt | AwaitReceipt | GiveUp, now: datetime
) -> UpdateOne:
    changes: dict[str, Any]
    error: dict[str, Any] | None = None
    if outcome.accepted_records:
        changes = {
            **_accepted_changes(outcome.channel.value, outcome.accepted_records[-1]),
            "accepted_targets": _accepted_targets(outcome.accepted_records),
            "failure_code": None,
            "failure_reason": None,
        }
    elif isinstance(decision, AwaitReceipt):
        changes = {"next_attempt_at": decision.until}
    elif isinstance(decision, RetryAt):
        changes = {"status": S.PENDING.value, "next_attempt_at": decision.at}
    elif outcome.is_reached:
        changes = {
            **sent_changes(outcome.channel, now),
            "next_attempt_at": None,
            "failure_code": None,
            "failure_reason": None,
        }
    else:
        changes = {
            "status": S.FAILED.value,
            "next_attempt_at": None,
            "failed_at": now,
            "failure_code": decision.code.value,
            "failure_reason": UNKNOWN_REASON,
        }
        error = error_entry(outcome.channel, decision.code, UNKNOWN_REASON, now)
    guard = {
        "channel": outcome.channel.value,
        "status": S.UNKNOWN.value,
        # A delivery that was attempted again and is unknown again needs another decision.
        "attempt_count": outcome.attempt_count,
    }
    pipeline = update(
        condition=in_statuses(outcome.channel, [S.UNKNOWN]), changes=changes, now=now, error=error
    )
    return UpdateOne({"_id": outcome.notification_id, "delivery": {"$elemMatch": guard}}, pipeline)
