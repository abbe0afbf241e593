"""Structures of the callback operations, and of the event that a client receives."""

import json
from datetime import datetime
from typing import Annotated, Any

import msgspec
from bson import ObjectId
from django.conf import settings
from msgspec import Meta

from callbacks.documents import CallbackDocument, CallbackMessageDocument
from callbacks.events import SUBSCRIBABLE, CallbackState, CallbackStatus, DisabledReason, EventType
from callbacks.models import URL_LENGTH
from domain.channels import Channel
from domain.states import DeliveryStatus, NotificationStatus
from notifications.validation import ProblemCollector, enum_of
from notifyproject.platform import endpoints

from ..http import paging
from ..http.fields import EXAMPLE_ID, EXAMPLE_TIME, view_of
from ..http.query import one_of
from ..openapi.operations import register, webhooks

_EXAMPLE_KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAAAAA="
_EXAMPLE_URL = "https://shop.example.com/hooks/notifications"
_EXAMPLE_EVENTS = ["delivery.failed", "notification.completed"]
EXAMPLE_DELIVERY_ID = f"evt_{EXAMPLE_ID}_email_delivered_1796115601250"
_EXAMPLE_BODY = {
    "type": "delivery.delivered",
    "timestamp": EXAMPLE_TIME,
    "data": {"notification_id": EXAMPLE_ID, "channel": "email", "status": "delivered"},
}
EVENTS = sorted(event.value for event in SUBSCRIBABLE)


class CallbackView(msgspec.Struct, kw_only=True, frozen=True):
    """A client's callback endpoint and its state."""

    url: Annotated[str, Meta(examples=[_EXAMPLE_URL])]
    events: Annotated[list[EventType], Meta(examples=[_EXAMPLE_EVENTS])]
    secret: Annotated[
        str | None,
        Meta(description="Only in the response that creates it.", examples=[_EXAMPLE_KEY]),
    ] = None
    state: Annotated[CallbackState, Meta(examples=["active"])]
    """disabled: nothing is sent until the client puts the endpoint again or staff enable it."""
    disabled_at: datetime | None = None
    disabled_reason: DisabledReason | None = None
    failing_since: datetime | None = None
    """The first failure since the last success. After 5 days, the endpoint is disabled."""
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    last_error: str | None = None
    created_at: datetime
    updated_at: datetime


class CallbackSecretView(msgspec.Struct, kw_only=True, frozen=True):
    """A new signing secret, which is shown once."""

    secret: Annotated[str, Meta(examples=[_EXAMPLE_KEY])]
    previous_until: datetime  # Until then, previous secrets sign, too


class CallbackAttemptView(msgspec.Struct, kw_only=True, frozen=True):
    """One request to the callback endpoint."""

    at: datetime
    duration_ms: Annotated[int, Meta(examples=[84])]
    status_code: Annotated[int | None, Meta(examples=[204])] = None  # null: no response
    error: str | None = None
    excerpt: str | None = None


class CallbackDeliveryView(msgspec.Struct, kw_only=True, frozen=True):
    """The delivery of one event to the callback endpoint."""

    id: Annotated[str, Meta(examples=[EXAMPLE_DELIVERY_ID])]
    """The header webhook-id of each attempt."""
    type: Annotated[EventType, Meta(examples=["delivery.delivered"])]
    notification_id: Annotated[str | None, Meta(examples=[EXAMPLE_ID])] = None
    status: Annotated[CallbackStatus, Meta(examples=["delivered"])]
    tries: Annotated[int, Meta(examples=[1])]
    """Attempts since the delivery was created or replayed."""
    next_try_at: datetime | None = None
    error: str | None = None
    body: Annotated[Any, Meta(examples=[_EXAMPLE_BODY])]
    history: list[CallbackAttemptView]
    """The last 10 attempts."""
    created_at: datetime
    replayed_at: datetime | None = None
    delivered_at: Annotated[datetime | None, Meta(examples=[EXAMPLE_TIME])] = None


class CallbackDeliveryList(msgspec.Struct, kw_only=True, frozen=True):
    """A page of deliveries. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[CallbackDeliveryView]
    next: paging.NextCursor = None
    previous: str | None = None


def callback_view(document: CallbackDocument, *, secret: str | None = None) -> CallbackView:
    """Return a stored callback endpoint as the API shows it."""
    return view_of(CallbackView, document, secret=secret)


def delivery_view(document: CallbackMessageDocument) -> CallbackDeliveryView:
    """Return a stored callback message as the API shows it."""
    notification_id: ObjectId | None = document.get("notification_id")
    return view_of(
        CallbackDeliveryView,
        document,
        id=document["_id"],
        notification_id=str(notification_id) if notification_id else None,
        body=json.loads(document["body"]),
        history=document.get("history", []),
    )


class CallbackRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A callback endpoint: its URL and its events."""

    url: Annotated[
        str,
        Meta(
            max_length=URL_LENGTH,
            description="https, on port 443 or above 1024, at a public address.",
            examples=[_EXAMPLE_URL],
        ),
    ]
    events: Annotated[
        list[Annotated[str, enum_of(EVENTS)]],
        Meta(min_length=1, max_length=20, examples=[_EXAMPLE_EVENTS]),
    ]


def validated_events(body: CallbackRequest) -> list[EventType]:
    """Check the URL; return the requested events without duplicates. Raises InvalidRequestError."""
    problems = ProblemCollector()
    try:
        endpoints.parse_url(body.url, allow_loopback=settings.CALLBACK_LOOPBACK)
    except endpoints.InvalidUrlError as problem:
        problems.add("/url", problem.code, str(problem))
    for index, name in enumerate(body.events):
        if name not in EVENTS:
            problems.add(f"/events/{index}", "unknown_event", one_of(EVENTS))
    problems.raise_if_any()
    return [EventType(name) for name in dict.fromkeys(body.events)]


class CallbackOutcome(msgspec.Struct, kw_only=True, frozen=True):
    """The outcome of a notification's delivery on one channel."""

    channel: Channel
    status: DeliveryStatus
    failure_code: str | None = None


class CallbackEventData(msgspec.Struct, kw_only=True, frozen=True):
    """The event's data, without addresses, content or variables."""

    notification_id: str
    external_id: str | None = None
    entity_id: str | None = None
    notification_type: str
    is_test: bool
    status: Annotated[
        str,
        enum_of(dict.fromkeys([*DeliveryStatus, *NotificationStatus])),
        Meta(description="Of the channel; overall for the events of a notification."),
    ]
    channel: Channel | None = None
    attempt_count: int | None = None
    failure_code: Annotated[str, Meta(examples=["bounced"])] | None = None
    deliveries: (
        Annotated[list[CallbackOutcome], Meta(description="For notification.completed.")] | None
    ) = None
    action: Annotated[str, Meta(description="For notification.acted.")] | None = None


@register
class CallbackEvent(msgspec.Struct, kw_only=True, frozen=True):
    """The body of a callback. For the type test, ``data`` holds only a message."""

    type: EventType
    timestamp: Annotated[datetime, Meta(description="Time of the event.")]
    data: CallbackEventData


def _header(name: str, description: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": {"type": "string"},
    }


webhooks["callback"] = {
    "post": {
        "operationId": "callback",
        "tags": ["callbacks"],
        "summary": "Receive an event, in the format of Standard Webhooks",
        "parameters": [
            _header("webhook-id", "The event's id: an event can arrive more than once."),
            _header("webhook-timestamp", "Time of sending, in Unix seconds."),
            _header("webhook-signature", "v1 and HMAC-SHA256; several while a secret is rotated."),
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"$ref": f"#/components/schemas/{CallbackEvent.__name__}"}
                }
            },
        },
        "responses": {"2XX": {"description": "Acknowledged. Any other response is retried."}},
    }
}
