"""Finds the notifications of an operation, page by page in a fixed order.

The preview freezes the filter and its end time. A notification that fails later isn't included.
"""

from datetime import datetime
from typing import Any

from pymongo.errors import ExecutionTimeout

from domain.channels import Channel
from domain.states import BulkAction, DeliveryStatus
from notifications.documents.notification import (
    NOTIFICATIONS,
    DeliveryDocument,
    NotificationDocument,
)
from notifyproject.db import paging

from ..models.notification import HAS_FAILED
from .operation import CREATED_AT, FAILED_AT, Operation, Position, Selection

PAGE_SIZE = 200
MAX_READ_MILLISECONDS = 20_000  # Time limit for finding a page: well below a lease
S = DeliveryStatus
UNSENT_STATUSES = frozenset({S.PENDING, S.SUPPRESSED, S.CANCELLED})
"""Statuses in which a delivery can be without anything having been sent."""


class SelectionTimeoutError(Exception):
    """Finding a page took too long, since no index supports the filter in this order."""


def select_failures(
    *, channel: Channel | None, code: str | None, since: datetime | None
) -> Selection:
    """Return the selection of failures by channel, failure code, and time. None matches any."""
    delivery_query: dict[str, Any] = {"failed_at": {"$ne": None}}
    description = ["Failed deliveries"]
    if channel is not None:
        delivery_query["channel"] = channel.value
        description.append(f"Channel: {channel.value}")
    if code is not None:
        delivery_query["failure_code"] = code
        description.append(f"Cause: {code}")
    match: dict[str, Any] = {**HAS_FAILED, "delivery": {"$elemMatch": delivery_query}}
    if since is not None:
        match = {"$and": [match, {FAILED_AT: {"$gte": since}}]}
        description.append(f"Failed: from {since:%Y-%m-%d %H:%M} UTC")
    return Selection(
        match=match,
        order=FAILED_AT,
        description=tuple(description),
        channels=(channel,) if channel is not None else tuple(Channel),
        delivery_filter={"failure_code": code} if code is not None else {},
    )


def next_page(operation: Operation) -> list[Position]:
    """Return the next page, oldest first. Raises SelectionTimeoutError or PyMongoError."""
    order = operation.selection.order
    oldest_first = ((order, 1), ("_id", 1))
    conditions = [dict(operation.selection.match), {order: {"$lte": operation.frozen_at}}]
    if (after := operation.position) is not None:
        conditions.append(paging.match_beyond(paging.Cursor((after.at, after.id)), oldest_first))
    found = NOTIFICATIONS().find({"$and": conditions}, {order: 1})
    documents = found.sort(oldest_first).limit(PAGE_SIZE).max_time_ms(MAX_READ_MILLISECONDS)
    try:
        positions = [
            Position(
                document["failed_at"] if order == FAILED_AT else document["created_at"],
                document["_id"],
            )
            for document in documents
        ]
    except ExecutionTimeout as error:
        raise SelectionTimeoutError from error
    return positions


def matching_deliveries(
    operation: Operation, document: NotificationDocument
) -> list[DeliveryDocument]:
    """Return the deliveries of a notification that the operation can act on."""
    if operation.action is BulkAction.RESCHEDULE and any(
        d["status"] not in UNSENT_STATUSES or d["attempt_count"] for d in document["delivery"]
    ):
        return []
    channels, delivery_filter = operation.selection.channels, operation.selection.delivery_filter
    return [
        d
        for d in document["delivery"]
        if d["channel"] in channels
        and all(d.get(name) == value for name, value in delivery_filter.items())
        and _is_actionable(operation, d)
    ]


def _is_actionable(operation: Operation, delivery: DeliveryDocument) -> bool:
    status = delivery["status"]
    if operation.action is BulkAction.RETRY or (
        operation.action is BulkAction.RESEND and operation.selection.order == FAILED_AT
    ):
        failed_at = delivery.get("failed_at")
        # A delivery that was retried and failed again has failed after the preview. One that
        # expired while an outage held it can be resent, but not retried.
        is_wanted = status == S.FAILED or operation.action is BulkAction.RESEND
        return is_wanted and failed_at is not None and failed_at <= operation.frozen_at
    if operation.action is BulkAction.RUN_NOW:
        due_at = delivery.get("next_attempt_at")
        return status == S.PENDING and due_at is not None and due_at > operation.frozen_at
    return operation.action is BulkAction.RESEND or status == S.PENDING


def order_field(ordering: str) -> str:
    """Return the field that orders a selection, given the order of the list it comes from."""
    return FAILED_AT if ordering.lstrip("-") == FAILED_AT else CREATED_AT
