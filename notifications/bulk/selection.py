"""Which notifications an operation is about: chosen once, then gone through by key.

The filter is frozen when it is chosen. So is its end in time: what is created, or fails, later is
not swept in, and what was acted on and fails again is not met twice.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pymongo.errors import ExecutionTimeout

from domain.states import BulkAction, Channel, DeliveryStatus
from notifyproject.db import paging
from notifyproject.db.collections import collection

from ..models.notification import HAS_FAILED
from ..store import Document
from .operation import CREATED_AT, FAILED_AT, Operation, Position, Selection

PAGE = 200
READ_MILLISECONDS = 20_000
"""How long finding a page may take: well within a lease."""
S = DeliveryStatus
UNTOUCHED = frozenset({S.PENDING, S.SUPPRESSED, S.CANCELLED})
"""Where a delivery may stand of which nothing has left."""


class SelectionTimeoutError(Exception):
    """Finding a page took too long: no index serves the filter in this order."""


def failures(*, channel: Channel | None, code: str | None, since: datetime | None) -> Selection:
    """Return the cohort of failures of a channel and cause since an instant; None is any."""
    wanted: dict[str, Any] = {"status": S.FAILED.value}
    described = ["Failed deliveries"]
    if channel is not None:
        wanted["channel"] = channel.value
        described.append(f"Channel: {channel.value}")
    if code is not None:
        wanted["failure_code"] = code
        described.append(f"Cause: {code}")
    match: dict[str, Any] = {**HAS_FAILED, "delivery": {"$elemMatch": wanted}}
    if since is not None:
        match = {"$and": [match, {FAILED_AT: {"$gte": since}}]}
        described.append(f"Failed: from {since:%Y-%m-%d %H:%M} UTC")
    return Selection(
        match=match,
        order=FAILED_AT,
        described=tuple(described),
        channels=(channel,) if channel is not None else tuple(Channel),
        only={"failure_code": code} if code is not None else {},
    )


def next_page(operation: Operation) -> list[Position]:
    """Return the next places of an operation's cohort, the oldest first.

    Raises TooSlow, PyMongoError.
    """
    order = operation.cohort.order
    oldest_first = ((order, 1), ("_id", 1))
    wanted = [dict(operation.cohort.match), {order: {"$lte": operation.frozen_at}}]
    if (after := operation.after) is not None:
        wanted.append(paging.match_beyond(paging.Cursor((after.at, after.id)), oldest_first))
    found = collection("notifications").find({"$and": wanted}, {order: 1})
    some = found.sort(oldest_first).limit(PAGE).max_time_ms(READ_MILLISECONDS)
    try:
        places = [Position(document[order], document["_id"]) for document in some]
    except ExecutionTimeout as error:
        raise SelectionTimeoutError from error
    return places


def matching_deliveries(operation: Operation, document: Document) -> list[Mapping[str, Any]]:
    """Return the deliveries of a notification that the operation has something to do to."""
    if operation.action is BulkAction.RESCHEDULE and not _is_untouched(document):
        return []
    return [d for d in document["delivery"] if _is_meant(operation, d) and _is_open(operation, d)]


def _is_meant(operation: Operation, delivery: Mapping[str, Any]) -> bool:
    only = operation.cohort.only.items()
    return delivery["channel"] in operation.cohort.channels and all(
        delivery.get(name) == value for name, value in only
    )


def _is_open(operation: Operation, delivery: Mapping[str, Any]) -> bool:
    """Return whether a delivery stands where the operation can act on it."""
    status = delivery["status"]
    if operation.action is BulkAction.RETRY or (
        operation.action is BulkAction.RESEND and operation.cohort.order == FAILED_AT
    ):
        failed_at = delivery.get("failed_at")
        # What was tried again and failed anew has failed after the preview.
        return status == S.FAILED and failed_at is not None and failed_at <= operation.frozen_at
    if operation.action is BulkAction.RUN_NOW:
        return status == S.PENDING and delivery["next_attempt_at"] > operation.frozen_at
    return operation.action is BulkAction.RESEND or status == S.PENDING


def _is_untouched(document: Document) -> bool:
    return all(d["status"] in UNTOUCHED and not d["attempt_count"] for d in document["delivery"])


def order_of(ordering: str) -> str:
    """Return the time a cohort is gone through by, given how its list is ordered."""
    return FAILED_AT if ordering.lstrip("-") == FAILED_AT else CREATED_AT
