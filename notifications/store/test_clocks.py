"""The clocks of test clients: where they stand, who moves them, and what is due by them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.states import DeliveryStatus, Priority
from notifications.documents.notification import DeliveryDocument, NotificationDocument
from notifications.documents.policies import DigestDocument
from notifications.documents.records import TestClockDocument
from notifyproject.db.leases import Claim, Leases
from notifyproject.db.trips import find_few

from . import leases
from .collections import digests, notifications, test_clocks

LEASES = Leases(collection=test_clocks, length=timedelta(seconds=90), max_claims=3)
"""In real time. Whoever moves a clock renews it before each batch."""
KEPT = timedelta(days=1)
"""How long a clock is kept after real time has caught up with it."""
LONGEST_LEASE = leases.LEASE + timedelta(seconds=5)
"""How far from now a worker's lease of a delivery ends at most, with the skew of its clock."""
S = DeliveryStatus
_FIELDS = ("client_id", "user_id", "type", "priority", "due_at", "delivery")
_ANY_PRIORITY = {"$in": [priority.value for priority in Priority]}


def now_of(client_id: ObjectId, *, now: datetime) -> datetime:
    """Return the time of a test client at the real time ``now``. Raises PyMongoError."""
    found = find_few(test_clocks, {"_id": client_id}, limit=1)
    return max(found[0]["stands_at"], now) if found else now


def find(client_id: ObjectId) -> TestClockDocument | None:
    """Return the clock of a client that has moved it. Raises PyMongoError."""
    return test_clocks().find_one({"_id": client_id})


def ahead(*, now: datetime) -> list[TestClockDocument]:
    """Return the clocks that are ahead of the real time ``now``, or still to be moved."""
    wanted = {"$or": [{"stands_at": {"$gt": now}}, {"target": {"$gt": now}}]}
    return list(test_clocks().find(wanted))


def acquire(
    client_id: ObjectId, *, worker: str, now: datetime, is_new: bool
) -> Claim[TestClockDocument] | None:
    """Lease a client's clock at the real time ``now``; ``is_new``: also if it never moved it.

    Return None if another process moves it. Raises PyMongoError.
    """
    if is_new:
        fields = {"stands_at": now, "claim_count": 0, "purge_at": now + KEPT}
        test_clocks().update_one({"_id": client_id}, {"$setOnInsert": fields}, upsert=True)
    return LEASES.claim_one({"_id": client_id}, worker=worker, now=now)


def standing(stands_at: datetime, *, target: datetime | None) -> dict[str, Any]:
    """Return the update that moves a clock; without a ``target``, it stays there."""
    fields = {"stands_at": stands_at, "purge_at": (target or stands_at) + KEPT}
    if target is None:
        return {"$set": fields, "$unset": {"target": ""}}
    return {"$set": {**fields, "target": target}}


def remove(client_id: ObjectId) -> None:
    """Make a client's time real time again. Whoever moves its clock stops. Idempotent."""
    test_clocks().delete_one({"_id": client_id})


def due_notifications(
    client_id: ObjectId, *, until: datetime, limit: int
) -> list[NotificationDocument]:
    """Return a client's notifications with work due by ``until``, the earliest first."""
    wanted = {"priority": _ANY_PRIORITY, "client_id": client_id, "due_at": {"$lte": until}}
    found = notifications().find(wanted, _FIELDS).hint("ntf_fair_queue")
    return list(found.sort([("due_at", 1), ("_id", 1)]).limit(limit))


def read(ids: Sequence[ObjectId]) -> Mapping[ObjectId, NotificationDocument]:
    """Return notifications by ID, with the fields of :func:`due_notifications`."""
    found = notifications().find({"_id": {"$in": list(ids)}}, _FIELDS)
    return {document["_id"]: document for document in found}


def due_digests(client_id: ObjectId, *, until: datetime, limit: int) -> list[DigestDocument]:
    """Return a client's digests to be closed by ``until``, the earliest first."""
    found = digests().find({"client_id": client_id, "due_at": {"$lte": until}}).hint("dig_due")
    return list(found.sort([("due_at", 1), ("_id", 1)]).limit(limit))


def due_snoozes(client_id: ObjectId, *, until: datetime, limit: int) -> list[NotificationDocument]:
    """Return a client's notifications whose snooze is over by ``until``, the earliest first."""
    wanted = {"client_id": client_id, "snoozed_until": {"$lte": until}}
    found = notifications().find(wanted, (*_FIELDS, "snoozed_until")).hint("ntf_snooze_due")
    return list(found.sort("snoozed_until", 1).limit(limit))


def due_time(delivery: DeliveryDocument) -> datetime | None:
    """Return when an open delivery can be worked on: when it is due, and no lease holds it."""
    claim = delivery.get("claim")
    due_at, leased_until = delivery.get("next_attempt_at"), claim and claim["lease_until"]
    return max((at for at in (due_at, leased_until) if at is not None), default=None)


def is_worked_on(documents: Sequence[NotificationDocument], *, now: datetime) -> bool:
    """Return whether a worker may hold one of these deliveries at the real time ``now``.

    A lease that ends later than a worker's can was taken by the clock, whose holder is lost.
    """
    latest = now + LONGEST_LEASE
    return any(
        now < claim["lease_until"] <= latest
        for document in documents
        for delivery in document["delivery"]
        if (claim := delivery.get("claim")) is not None
    )
