"""Erasing what a notification says and whom it was for. What became of it stays, to be counted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bson import ObjectId

from domain.states import Channel, DeliveryStatus

from .collections import attempts, notifications, visits
from .expressions import Expression, Pipeline, update
from .operating import withdrawn
from .reading import Inbox

S = DeliveryStatus
NEWEST_FIRST = (("created_at", -1), ("_id", -1))
REASON = "The person was erased."
TEMPLATE = ("template_id", "template_version")
"""What stays of the content: it is about nobody."""
NOBODY: dict[str, Any] = {"device_ids": []}
"""What stays of the recipient."""
SHOWN = ("created_at", "client_id", "recipient.email", "recipient.phone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasable:
    """A notification that is to be erased, and the addresses in it."""

    id: ObjectId
    created_at: datetime
    client_id: ObjectId
    email: str | None = field(default=None, repr=False)
    phone: str | None = field(default=None, repr=False)


def erasable(*, user_id: str, limit: int, after: Erasable | None = None) -> list[Erasable]:
    """Return notifications for a user that are not erased yet, the newest first, behind ``after``.

    Raises PyMongoError.
    """
    wanted: dict[str, Any] = {"user_id": user_id, "erased_at": None}
    if after is not None:
        wanted["created_at"] = {"$lte": after.created_at}
        wanted["$or"] = [
            {"created_at": {"$lt": after.created_at}},
            {"created_at": after.created_at, "_id": {"$lt": after.id}},
        ]
    found = notifications().find(wanted, SHOWN).sort(NEWEST_FIRST).limit(limit)
    return [_erasable(document) for document in found]


def erasable_at(channel: Channel, address: str, *, limit: int) -> list[Erasable]:
    """Return notifications to an address that name no user. Raises PyMongoError.

    Once they are erased they are at this address no longer.
    """
    path = "recipient.email" if channel is Channel.EMAIL else "recipient.phone"
    found = notifications().find({path: address, "user_id": None}, SHOWN).limit(limit)
    return [_erasable(document) for document in found]


def erase(some: Sequence[Erasable], *, user_id: str, now: datetime) -> int:
    """Erase notifications and what is kept of their attempts; return how many that were.

    What is pending is cancelled in the same write. What a worker is just sending goes; what would
    be tried again after that finds no address. Raises PyMongoError; may be repeated.
    """
    ids = [one.id for one in some]
    if not ids:
        return 0
    erased = notifications().update_many({"_id": {"$in": ids}}, _pipeline(now)).matched_count
    said = {"platform_response": "", "error_message": ""}
    attempts().update_many({"notification_id": {"$in": ids}}, {"$unset": said})
    keys = {Inbox(client_id, user_id).key for client_id in {one.client_id for one in some}}
    visits().delete_many({"_id": {"$in": sorted(keys)}})
    return erased


def _pipeline(now: datetime) -> Pipeline:
    cancelled = update(
        condition={"$eq": ["$$d.status", S.PENDING.value]},
        changes=withdrawn(REASON, now=now),
        now=now,
    )
    kept = {name: {"$ifNull": [f"$content.{name}", "$$REMOVE"]} for name in TEMPLATE}
    return [
        *cancelled,
        {
            "$set": {
                **without_reasons(),
                "recipient": {"$literal": NOBODY},
                "content": {"$mergeObjects": [kept]},
                "data": {"$literal": {}},
                "is_active": False,
                "erased_at": {"$ifNull": ["$erased_at", now]},
            }
        },
        {"$unset": ["error", "sealed", "sealed_until"]},
    ]


def without_reasons() -> dict[str, Expression]:
    """Return deliveries and error history without what providers said: codes and times stay.

    It may quote whom, and what, it was about.
    """
    line = {"timestamp": "$$e.timestamp", "channel": "$$e.channel", "code": "$$e.code", "error": ""}
    history = {"$map": {"input": "$error_history", "as": "e", "in": line}}
    return {
        "delivery": {"$map": {"input": "$delivery", "as": "d", "in": _without_reason()}},
        "error_history": {"$ifNull": [history, []]},
    }


def _without_reason() -> Expression:
    """Return the delivery, of one that a provider may have had a say in without what it said."""
    ours = [S.CANCELLED.value, S.SUPPRESSED.value, S.EXPIRED.value]
    bare = {"$unsetField": {"field": "failure_reason", "input": "$$d"}}
    return {"$cond": [{"$in": ["$$d.status", ours]}, "$$d", bare]}


def _erasable(document: Any) -> Erasable:
    recipient = document.get("recipient") or {}
    return Erasable(
        id=document["_id"],
        created_at=document["created_at"],
        client_id=document["client_id"],
        email=recipient.get("email"),
        phone=recipient.get("phone"),
    )
