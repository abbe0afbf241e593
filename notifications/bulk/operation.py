"""A bulk operation's values, throttle, and resend IDs."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId, json_util
from bson.json_util import JSONMode, JSONOptions

from domain.channels import Channel
from domain.states import FINAL_BULK_OUTCOMES, BulkAction, BulkOutcome, BulkStage
from notifications.documents.bulk import BulkOperationDocument

from ..actions.actions import Staff
from ..actions.risk import RiskKind

FAILED_AT, CREATED_AT = "failed_at", "created_at"
_JSON = JSONOptions(json_mode=JSONMode.CANONICAL, tz_aware=True, tzinfo=UTC)


UNKNOWN_STAFF = Staff(id=ObjectId("0" * 24), username="the command line")
"""Author of a preview that the command line starts without naming an operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which notifications a bulk operation acts on, and which of their deliveries."""

    match: Mapping[str, Any]
    order: str
    """The field by which pages are ordered: FAILED_AT for failures, else CREATED_AT."""
    description: tuple[str, ...]
    channels: tuple[Channel, ...] = tuple(Channel)
    delivery_filter: Mapping[str, str | None] = field(default_factory=dict)
    """Required values of ``failure_code``, ``provider``, and ``status``."""


def units_key(kind: RiskKind, country: str) -> str:
    """Return the name by which a preview counts the parts of texts to a country."""
    return f"{kind.value}/{country}"


@dataclass(frozen=True, slots=True)
class Position:
    """A notification's place in the order of a selection."""

    at: datetime
    id: ObjectId


@dataclass(frozen=True, slots=True)
class ActedOn:
    """A delivery that an operation has acted on."""

    id: ObjectId
    channel: Channel

    def __str__(self) -> str:
        return f"{self.id}:{self.channel.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One action by staff on all notifications of a selection, with its progress."""

    id: ObjectId
    action: BulkAction
    stage: BulkStage
    selection: Selection
    send_at: datetime | None
    frozen_at: datetime
    position: Position | None
    preview_counts: Mapping[str, int]
    found_count: int
    is_capped: bool
    included_risks: frozenset[RiskKind]
    per_second: int
    reason: str | None
    duplicate_reason: str | None
    counts: Mapping[BulkOutcome, int]
    reasons: Mapping[str, int]
    problem: str | None
    created_by: Staff
    started_by: Staff | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime
    recent: tuple[ActedOn, ...] = ()
    """The last deliveries that it changed since it was started or resumed, oldest first."""
    acted_at: datetime | None = None
    """When it last changed one."""
    is_proven: bool = False
    """Its trial is over: the first deliveries didn't all fail."""

    @property
    def delivery_count(self) -> int:
        """Number of deliveries that the preview found."""
        return sum(self.preview_counts.get(kind, 0) for kind in RiskKind)

    def units(self, kind: RiskKind) -> Mapping[str, int]:
        """Return the parts by country of the texts that the preview found with a resend risk."""
        prefix = units_key(kind, "")
        return {
            key.removeprefix(prefix): count
            for key, count in self.preview_counts.items()
            if key.startswith(prefix)
        }

    @property
    def settled_count(self) -> int:
        """Number of deliveries with a final outcome."""
        return sum(self.counts.get(outcome, 0) for outcome in FINAL_BULK_OUTCOMES)


def operation_of(document: BulkOperationDocument) -> Operation:
    """Return the operation in a stored document."""
    after_at = document.get("after_at")
    started_by = document.get("started_by")
    return Operation(
        id=document["_id"],
        action=BulkAction(document["action"]),
        stage=BulkStage(document["stage"]),
        selection=Selection(
            match=json_util.loads(document["match"], json_options=_JSON),
            order=document["order"],
            description=tuple(document["described"]),
            channels=tuple(Channel(channel) for channel in document["channels"]),
            delivery_filter=document["only"],
        ),
        send_at=document.get("send_at"),
        frozen_at=document["frozen_at"],
        position=Position(after_at, document["after_id"]) if after_at else None,
        preview_counts=document["found"],
        found_count=document["found_count"],
        is_capped=document["is_capped"],
        included_risks=frozenset(RiskKind(risk) for risk in document["includes"]),
        per_second=document["per_second"],
        reason=document.get("reason"),
        duplicate_reason=document.get("duplicate_reason"),
        counts={BulkOutcome(name): count for name, count in document["counts"].items()},
        reasons=document["reasons"],
        problem=document.get("problem"),
        created_by=Staff(id=document["created_by"], username=document["created_by_name"]),
        started_by=Staff(id=started_by, username=document["started_by_name"])
        if started_by
        else None,
        created_at=document["created_at"],
        started_at=document.get("started_at"),
        finished_at=document.get("finished_at"),
        updated_at=document["updated_at"],
        recent=tuple(_acted_on(stored) for stored in document.get("recent") or ()),
        acted_at=document.get("acted_at"),
        is_proven=bool(document.get("is_proven")),
    )


def _acted_on(text: str) -> ActedOn:
    notification_id, _, channel = text.partition(":")
    return ActedOn(ObjectId(notification_id), Channel(channel))


def dump_filter(match: Mapping[str, Any]) -> str:
    """Return a query as text for storage, since MongoDB forbids operators as field names."""
    return json_util.dumps(match, json_options=_JSON)


MIN_PER_SECOND, MAX_PER_SECOND = 1, 500
DEFAULT_PER_SECOND = 20
MAX_BATCH = 200  # Most notifications before the next pause, at any throttle


def batch_limit(per_second: int) -> int:
    """Return how many notifications may be acted on before the next pause."""
    return max(1, min(per_second, MAX_BATCH))


def next_run_at(*, started_at: datetime, acted_count: int, per_second: int) -> datetime:
    """Return when the throttle allows the next notification after ``acted_count`` were acted on."""
    return started_at + timedelta(seconds=acted_count / per_second)


def resend_id(operation: Operation, notification_id: ObjectId) -> ObjectId:
    """Return the ID of an operation's resend of a notification, which is the same at each call."""
    # The ID begins with a time, as any ObjectId does: lists and searches are ordered by ID.
    digest = hashlib.sha256(f"{operation.id}:{notification_id}".encode()).digest()
    seconds = ObjectId.from_datetime(operation.frozen_at).binary[:4]
    return ObjectId(seconds + digest[:8])
