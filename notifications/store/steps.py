"""Later steps of a plan: opened early, held back once the recipient was reached, and "acted"."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument

from domain.channels import INBOX
from domain.plans import ENDED_UNREACHED, FIRST_STEP, Until
from domain.states import DeliveryStatus
from notifications.documents.notification import NotificationDocument

from .collections import notifications
from .inbox import Marked
from .pipelines import Computed, Expression, any_delivery, update

S = DeliveryStatus


def open_next_steps(*, ids: Sequence[ObjectId], now: datetime) -> int:
    """Make a later step due now if no channel before it can reach the recipient any more.

    Return how many notifications changed. Idempotent.
    """
    if not ids:
        return 0
    waiting = {
        "status": S.PENDING.value,
        "attempt_count": 0,
        "step": {"$gt": FIRST_STEP},
        "next_attempt_at": {"$gt": now},
        "digest_id": None,
    }
    is_ready = {
        "$and": [
            {"$gt": ["$$d.step", FIRST_STEP]},
            {"$eq": ["$$d.status", S.PENDING.value]},
            {"$eq": ["$$d.attempt_count", 0]},
            {"$gt": ["$$d.next_attempt_at", now]},
            {"$eq": [{"$ifNull": ["$$d.digest_id", None]}, None]},
            {"$not": [_earlier_may_reach()]},
        ]
    }
    # Not before the attempt whose end opens it: the clock of a test client may be ahead of a
    # receipt's.
    at = Computed({"$max": [now, {"$max": "$delivery.last_attempt_at"}]})
    pipeline = update(
        condition=is_ready, changes={"next_attempt_at": at, "first_due_at": at}, now=now
    )
    wanted = {
        "_id": {"$in": list(ids)},
        "delivery": {"$elemMatch": waiting},
        "$expr": any_delivery(is_ready),
    }
    return notifications().update_many(wanted, pipeline).modified_count


def _earlier_may_reach() -> Expression:
    """Return whether a delivery of a step before that of ``$$d`` may still reach them."""
    ended = sorted(status.value for status in ENDED_UNREACHED)
    is_no_proof = {
        "$and": [
            {"$eq": ["$plan_until", Until.DELIVERED.value]},
            {"$eq": ["$$e.channel", INBOX.value]},
        ]
    }
    holds_back = {
        "$and": [
            {"$lt": [{"$ifNull": ["$$e.step", FIRST_STEP]}, "$$d.step"]},
            {"$not": [{"$in": ["$$e.status", ended]}]},
            {"$not": [is_no_proof]},
        ]
    }
    return {"$anyElementTrue": [{"$map": {"input": "$delivery", "as": "e", "in": holds_back}}]}


def match_unreached() -> dict[str, Any]:
    """Return a query for notifications whose recipient hasn't been reached by their plan.

    :func:`domain.plans.how_reached` has the same rules for a document that was read.
    """
    read = [{"marked_read_at": {"$exists": True}}, {"delivery.status": S.READ.value}]
    delivered = {"channel": {"$ne": INBOX.value}, "status": S.DELIVERED.value}
    return {
        "$nor": [
            {"acted_at": {"$exists": True}},
            {"plan_until": {"$ne": Until.ACTED.value}, "$or": read},
            {"plan_until": Until.DELIVERED.value, "delivery": {"$elemMatch": delivered}},
        ]
    }


def mark_acted(*, client_id: ObjectId, notification_id: ObjectId, now: datetime) -> Marked | None:
    """Record that the recipient acted on a client's notification. Idempotent.

    Return None if the client has no such notification.
    """
    wanted = {"_id": notification_id, "client_id": client_id}
    changed = notifications().find_one_and_update(
        {**wanted, "acted_at": {"$exists": False}},
        {"$set": {"acted_at": now, "updated_at": now}},
        return_document=ReturnDocument.AFTER,
    )
    if changed is not None:
        return Marked(changed, changed=True)
    document: NotificationDocument | None = notifications().find_one(wanted)
    return Marked(document, changed=False) if document is not None else None
