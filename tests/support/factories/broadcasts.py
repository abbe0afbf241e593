"""Audiences, and broadcasts to them."""

from datetime import datetime
from typing import Any

from bson import ObjectId

from notifications.broadcasts import creation, repository, runner
from notifications.broadcasts.repository import BroadcastLease
from notifications.broadcasts.requests import AudienceRequest, BroadcastRequest
from notifications.intake.requests import Caller, ContentRequest
from notifyproject.db.collections import collection
from recipients import topics
from tests.support.factories.notifications import CLIENT, NOON

EVERYBODY = AudienceRequest(all=True)
CALLER = Caller(client_id=CLIENT, request_id="request-1")
NEWS = ContentRequest(subject="Spring", body="It is spring.")


def name(number: int) -> str:
    return f"user-{number:05d}"


def recipients(count: int, *, first: int = 0, **fields: Any) -> list[str]:
    """Register recipients with email addresses. Return their user IDs. ... leaves a field out."""
    names = [name(n) for n in range(first, first + count)]
    given = [
        {
            "_id": name,
            "email": f"{name}@example.com",
            "attributes": {},
            "preferences": {},
            "is_active": True,
            "created_at": NOON,
            "updated_at": NOON,
            **fields,
        }
        for name in names
    ]
    collection("recipients").insert_many(
        {field: value for field, value in document.items() if value is not ...}
        for document in given
    )
    return names


def topic(of: str, *names: str) -> AudienceRequest:
    for name in names:
        topics.join(topic=of, user_id=name, now=NOON)
    return AudienceRequest(topic=of)


def begun(
    audience: AudienceRequest = EVERYBODY,
    *,
    at: datetime = NOON,
    caller: Caller = CALLER,
    **fields: Any,
) -> ObjectId:
    """Create a broadcast. Return its ID. The value ... leaves a field out."""
    given = {"type": "marketing", "content": NEWS, "audience": audience, **fields}
    request = BroadcastRequest(
        **{field: value for field, value in given.items() if value is not ...}
    )
    document = creation.create(request, caller=caller, now=at).document
    return ObjectId(document["_id"])


def run_page(broadcast_id: ObjectId, *, at: datetime = NOON) -> bool:
    return runner.run_page(broadcast_id, clock=lambda: at)


def leased(broadcast_id: ObjectId, *, at: datetime = NOON) -> BroadcastLease:
    lease = repository.acquire_lease(broadcast_id, worker="worker", now=at)
    assert lease is not None
    return lease


def send_page(lease: BroadcastLease, *, at: datetime = NOON) -> None:
    runner._send_page(lease, lambda: at)


def run_to_completion(broadcast_id: ObjectId, *, at: datetime = NOON) -> int:
    """Run a broadcast's due pages until none is left. Return the number of pages."""
    turns = 0
    while run_page(broadcast_id, at=at):
        turns += 1
    return turns


def read(broadcast_id: ObjectId) -> dict[str, Any]:
    document = collection("broadcasts").find_one({"_id": broadcast_id})
    assert document is not None
    return document


def notified_users(broadcast_id: ObjectId) -> list[str]:
    """Return the user IDs of a broadcast's notifications, with duplicates."""
    found = collection("notifications").find({"broadcast_id": broadcast_id})
    return sorted(document["user_id"] for document in found)
