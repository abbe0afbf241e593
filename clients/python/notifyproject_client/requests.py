"""The bodies of requests, and the calls that send them."""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack
from urllib.parse import quote

from .exchange import Call
from .rest.models.accepted_notification_view import AcceptedNotificationView
from .rest.models.broadcast_view import BroadcastView
from .rest.models.bulk_view import BulkView
from .rest.models.content_request import ContentRequest
from .rest.models.inbox_token_view import InboxTokenView
from .rest.models.local_time import LocalTime
from .rest.models.notification_recipient_request import NotificationRecipientRequest
from .rest.models.notification_request import NotificationRequest
from .rest.models.plan_request import PlanRequest

BULK_SIZE = 1_000
"""Notifications in one request of a bulk create."""
Body = NotificationRequest | Mapping[str, Any]


class NotificationFields(TypedDict, total=False):
    """The fields of a request beside its type and data. One that is None is left out."""

    email: str | None
    phone: str | None
    user_id: str | None
    recipient: NotificationRecipientRequest | Mapping[str, Any] | None
    channels: Sequence[str] | None
    plan: PlanRequest | Mapping[str, Any] | None
    content: ContentRequest | Mapping[str, Any] | None
    priority: str | None
    entity_id: str | None
    external_id: str | None
    source: str | None
    scheduled_at: datetime | None
    scheduled_local: LocalTime | Mapping[str, Any] | None
    event_at: datetime | None
    ttl: int | None
    expires_at: datetime | None
    max_retries: int | None
    ignore_limits: bool | None
    brand: str | None


def notification(
    type_slug: str, *, data: Mapping[str, Any] | None, **given: Unpack[NotificationFields]
) -> dict[str, Any]:
    """Return a request for one notification. Fields that are None are left out."""
    fields: dict[str, Any] = {"data": data, **given}
    short = addresses(fields.pop("email", None), fields.pop("phone", None))
    fields["recipient"] = fields.get("recipient") or short
    if isinstance(channels := fields.get("channels"), str):
        fields["channels"] = [channels]
    return {"type": type_slug, **present(fields)}


def addresses(email: str | None, phone: str | None) -> dict[str, str] | None:
    """Return a recipient with these addresses; None if there are none."""
    return present({"email": email, "phone": phone}) or None


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that aren't None, as JSON."""
    return {name: to_json(value) for name, value in fields.items() if value is not None}


def send(request: Body, idempotency_key: str | None) -> Call[AcceptedNotificationView]:
    """Return the call that sends one notification."""
    return Call(
        path="/api/v1/notifications",
        body=to_json(request),
        accepted=202,
        view=AcceptedNotificationView.from_dict,
        idempotency_key=idempotency_key or uuid.uuid4().hex,
    )


def replace(key: str, request: Body) -> Call[AcceptedNotificationView]:
    """Return the call that replaces the notification with a key. Raises ValueError for no key."""
    if key in ("", ".", ".."):
        raise ValueError("The key can't be a part of a path.")
    return Call(
        method="PUT",
        path=f"/api/v1/notifications/by-key/{quote(key, safe='')}",
        body=to_json(request),
        accepted=202,
        view=AcceptedNotificationView.from_dict,
    )


def send_many(
    requests: Sequence[Body], idempotency_key: str | None
) -> Iterator[tuple[int, Call[BulkView]]]:
    """Yield the calls that send any number of notifications, with the index of each one's first."""
    key = idempotency_key or uuid.uuid4().hex
    for start in range(0, len(requests), BULK_SIZE):
        part = requests[start : start + BULK_SIZE]
        yield (
            start,
            Call(
                path="/api/v1/notifications/bulk",
                body={"notifications": to_json(part)},
                accepted=200,
                view=BulkView.from_dict,
                idempotency_key=f"{key}-{start}" if start else key,
            ),
        )


def merged(parts: Sequence[tuple[int, BulkView]]) -> BulkView:
    """Return the results of several calls as one, in the order of the requests."""
    results = []
    for start, part in parts:
        for result in part.results:
            result.index += start
            results.append(result)
    return BulkView(
        accepted=sum(part.accepted for _, part in parts),
        rejected=sum(part.rejected for _, part in parts),
        results=results,
    )


def broadcast(
    type_slug: str, audience: Mapping[str, Any], fields: Mapping[str, Any], key: str | None
) -> Call[BroadcastView]:
    """Return the call that starts a broadcast."""
    return Call(
        path="/api/v1/broadcasts",
        body={"type": type_slug, "audience": to_json(audience), **present(fields)},
        accepted=202,
        view=BroadcastView.from_dict,
        idempotency_key=key or uuid.uuid4().hex,
    )


def inbox_token(user_id: str) -> Call[InboxTokenView]:
    """Return the call that issues an inbox token. Repeated, it issues another one."""
    return Call(
        path="/api/v1/inbox/tokens",
        body={"user_id": user_id},
        accepted=201,
        view=InboxTokenView.from_dict,
    )


def to_json(value: Any) -> Any:
    """Return a value as JSON. The service, not the client, refuses an unknown field of a dict."""
    if isinstance(value, Mapping):
        return {name: to_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value.to_dict() if hasattr(value, "to_dict") else value
