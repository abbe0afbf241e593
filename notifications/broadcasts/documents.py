"""The values of a broadcast in memory, and their stored form."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

import msgspec
from bson import ObjectId

from domain.states import AudienceKind, BroadcastStatus, Priority
from domain.stored import struct_of
from notifications.documents.broadcasts import BroadcastDocument
from notifyproject.db.leases import Claim

from ..intake.requests import Caller, NotificationRequest
from ..validation import InvalidRequestError

NO_ADDRESS = "no_address"
ALREADY_NOTIFIED = "already_notified"
"""Reason for skipping a recipient who has a notification of this type and entity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """The recipients of a broadcast."""

    kind: AudienceKind
    topic: str | None = None
    user_ids: Sequence[str] | None = None  # Sorted, without duplicates


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastLease:
    """A worker's lease on a broadcast."""

    id: ObjectId
    claim: Claim[BroadcastDocument]
    status: BroadcastStatus
    caller: Caller
    request: NotificationRequest
    audience: Audience
    cursor: str | None
    expires_at: datetime | None


@dataclass(slots=True, kw_only=True)
class PageResult:
    """The result of one page of recipients, with user IDs by reason, in the page's order."""

    accepted: int = 0
    skipped: dict[str, list[str]] = field(default_factory=dict)
    """Recipients that opted out, can't be reached, or are notified. Nothing is stored for them."""
    rejected: dict[str, list[str]] = field(default_factory=dict)
    """Recipients whose notifications failed validation."""

    def skip(self, user_id: str, code: str) -> None:
        """Record a recipient that opted out, can't be reached, or has been notified."""
        self.skipped.setdefault(code, []).append(user_id)

    def reject(self, user_id: str, refusal: InvalidRequestError) -> None:
        """Record a recipient as rejected, or as skipped if only an address is missing."""
        codes = [problem.code for problem in refusal.problems]
        if set(codes) == {NO_ADDRESS}:
            self.skip(user_id, NO_ADDRESS)
        else:
            self.rejected.setdefault(codes[0], []).append(user_id)


def new_document(
    request: NotificationRequest,
    *,
    type_slug: str,
    priority: Priority,
    audience: Audience,
    audience_size: int | None,
    scheduled_at: datetime | None,
    expires_at: datetime | None,
    caller: Caller,
    now: datetime,
) -> BroadcastDocument:
    """Return a new broadcast's document. Fields that are None are left out for sparse indexes."""
    send_at = scheduled_at or now
    is_later = send_at > now
    given = msgspec.to_builtins(request)
    document: BroadcastDocument = {
        "_id": ObjectId(),
        "client_id": caller.client_id,
        "type": type_slug,
        "priority": priority.value,
        # Without defaults.
        "request": {name: value for name, value in given.items() if value not in (None, [], {})},
        "audience": audience.kind.value,
        "status": (BroadcastStatus.SCHEDULED if is_later else BroadcastStatus.RUNNING).value,
        "due_at": send_at,
        "claim_count": 0,
        "is_waiting": False,
        "accepted": 0,
        "skipped": {},
        "rejected": {},
        "withdrawn": 0,
        "created_at": now,
        "updated_at": now,
    }
    if caller.request_id is not None:
        document["request_id"] = caller.request_id
    if caller.is_test:
        document["is_test"] = True
    if audience.topic is not None:
        document["topic"] = audience.topic
    if audience.user_ids is not None:
        document["user_ids"] = list(audience.user_ids)
    if audience_size is not None:
        document["audience_size"] = audience_size
    if scheduled_at is not None:
        document["scheduled_at"] = scheduled_at
    if expires_at is not None:
        document["expires_at"] = expires_at
    return document


def lease_from(claim: Claim[BroadcastDocument]) -> BroadcastLease:
    """Return the lease on a claimed broadcast."""
    document = claim.document
    is_cancelling = document["status"] == BroadcastStatus.CANCELLING
    return BroadcastLease(
        id=claim.id,
        claim=claim,
        status=BroadcastStatus.CANCELLING if is_cancelling else BroadcastStatus.RUNNING,
        caller=Caller(
            client_id=document["client_id"],
            request_id=document.get("request_id"),
            is_test=document.get("is_test", False),
        ),
        request=request_of(document),
        audience=audience_of(document),
        cursor=document.get("cursor"),
        expires_at=document.get("expires_at"),
    )


def audience_of(document: BroadcastDocument) -> Audience:
    """Return the audience of a broadcast."""
    return Audience(
        kind=AudienceKind(document["audience"]),
        topic=document.get("topic"),
        user_ids=document.get("user_ids"),
    )


def request_of(document: BroadcastDocument) -> NotificationRequest:
    """Return the request that a broadcast makes for each recipient."""
    return struct_of(NotificationRequest, document["request"])
