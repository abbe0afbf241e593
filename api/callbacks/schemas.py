"""Callbacks in the API, and the event that an app receives."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from bson import ObjectId
from django.conf import settings
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta

from callbacks import endpoints
from callbacks.events import SUBSCRIBABLE, CallbackState, CallbackStatus, DisabledReason, EventType
from callbacks.models import URL_LENGTH
from callbacks.subscriptions import SECRET_OVERLAP
from domain.states import Channel
from notifications.validation import ProblemCollector

from ..http import paging
from ..http.paging import PageRequest

_EXAMPLE = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAAAAAAAAAAA="


class CallbackView(msgspec.Struct, kw_only=True, frozen=True):
    """Where the app is called back, what for, and how its receiver has been doing."""

    url: Annotated[str, Meta(examples=["https://shop.example.com/hooks/notifications"])]
    events: Annotated[
        list[EventType], Meta(examples=[["delivery.failed", "notification.completed"]])
    ]
    secret: (
        Annotated[
            str,
            Meta(description="In the answer that makes it, and never again.", examples=[_EXAMPLE]),
        ]
        | None
    ) = None
    state: CallbackState
    """disabled: nothing is sent until it is put again, or an operator switches it on."""
    disabled_at: datetime | None = None
    disabled_reason: DisabledReason | None = None
    failing_since: datetime | None = None
    """Nothing has come through since; after five days it is switched off."""
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    last_error: Annotated[str, Meta(examples=["It answered 503."])] | None = None
    created_at: datetime
    updated_at: datetime


class CallbackSecretView(msgspec.Struct, kw_only=True, frozen=True):
    """A new secret. It is told this once."""

    secret: Annotated[str, Meta(examples=[_EXAMPLE])]
    previous_until: datetime
    """Until then the secrets before it sign, too."""


class CallbackAttemptView(msgspec.Struct, kw_only=True, frozen=True):
    """One request to the receiver."""

    at: datetime
    duration_ms: int
    status_code: int | None = None
    """null: there was no answer."""
    error: str | None = None
    excerpt: str | None = None
    """The beginning of what it answered."""


class CallbackDeliveryView(msgspec.Struct, kw_only=True, frozen=True):
    """One event, and how telling the app of it went."""

    id: Annotated[str, Meta(examples=["evt_65f1c0ffee0123456789abcd_email_failed_1760000000000"])]
    """The header webhook-id of every try."""
    type: EventType
    notification_id: str | None = None
    status: CallbackStatus
    tries: int
    """Since it was made, or sent again."""
    next_try_at: datetime | None = None
    error: str | None = None
    body: Any
    """What is sent."""
    history: list[CallbackAttemptView]
    """The last ten tries."""
    created_at: datetime
    replayed_at: datetime | None = None
    delivered_at: datetime | None = None


class CallbackDeliveryList(msgspec.Struct, kw_only=True, frozen=True):
    """Part of a list. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[CallbackDeliveryView]
    next: str | None = None
    previous: str | None = None


def callback_view(document: Mapping[str, Any], *, secret: str | None = None) -> CallbackView:
    """Return a stored callback as its app sees it."""
    fields = {name: document.get(name) for name in CallbackView.__struct_fields__}
    return msgspec.convert({**fields, "secret": secret}, CallbackView)


def secret_view(
    secret: str, *, now: datetime, overlap: timedelta = SECRET_OVERLAP
) -> CallbackSecretView:
    """Return a new secret as its app is told it."""
    return CallbackSecretView(secret=secret, previous_until=now + overlap)


def delivery_view(document: Mapping[str, Any]) -> CallbackDeliveryView:
    """Return a stored message as its app sees it."""
    fields = {name: document.get(name) for name in CallbackDeliveryView.__struct_fields__}
    notification_id: ObjectId | None = document.get("notification_id")
    fields |= {
        "id": document["_id"],
        "notification_id": str(notification_id) if notification_id else None,
        "body": json.loads(document["body"]),
        "history": document.get("history", []),
    }
    return msgspec.convert(fields, CallbackDeliveryView)


LIST = "callback-deliveries"
EVENTS = sorted(event.value for event in SUBSCRIBABLE)
STATUSES = sorted(status.value for status in CallbackStatus)
PARAMETERS = (OpenApiParameter("status", str, enum=STATUSES), *paging.PARAMETERS)


class CallbackRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to call back, and what for."""

    url: Annotated[
        str,
        Meta(
            max_length=URL_LENGTH,
            description="https, on port 443 or one above 1024, at a public address.",
            examples=["https://shop.example.com/hooks/notifications"],
        ),
    ]
    events: Annotated[
        list[Annotated[str, Meta(extra_json_schema={"enum": EVENTS})]],
        Meta(min_length=1, max_length=20, examples=[["delivery.failed", "notification.completed"]]),
    ]


@dataclass(frozen=True, slots=True)
class ListRequest:
    """What part of which deliveries is asked for."""

    page: PageRequest
    status: CallbackStatus | None


def validated_events(body: CallbackRequest) -> list[EventType]:
    """Return the events a callback is to be for, each once; raises InvalidRequestError.

    What is wrong with the URL is found at the same time.
    """
    problems = ProblemCollector()
    try:
        endpoints.parse_url(body.url, allow_loopback=settings.CALLBACK_LOOPBACK)
    except endpoints.InvalidUrlError as problem:
        problems.add("/url", problem.code, str(problem))
    for index, name in enumerate(body.events):
        if name not in EVENTS:
            problems.add(f"/events/{index}", "unknown_event", _expected(EVENTS))
    problems.raise_if_any()
    return [EventType(name) for name in dict.fromkeys(body.events)]


def parse_list_request(query: QueryDict) -> ListRequest:
    """Return a checked list request; raises ApiError 400 or InvalidRequestError."""
    problems = ProblemCollector()
    page_request = paging.parse_page_request(
        query, list_name=LIST, problems=problems, extra_parameters=("status",)
    )
    status = query.get("status")
    if status is not None and status not in STATUSES:
        problems.add("/status", "unknown_status", _expected(STATUSES))
    problems.raise_if_any()
    return ListRequest(page_request, CallbackStatus(status) if status else None)


def _expected(choices: list[str]) -> str:
    return f"Expected one of {', '.join(choices)}."


class CallbackOutcome(msgspec.Struct, kw_only=True, frozen=True):
    """How a channel ended."""

    channel: Channel
    status: str
    failure_code: str | None = None


class CallbackEventData(msgspec.Struct, kw_only=True, frozen=True):
    """What an event is about. No address, no text and no variable is in it."""

    notification_id: str
    external_id: str | None = None
    entity_id: str | None = None
    notification_type: str
    is_test: bool
    status: Annotated[str, Meta(description="Of the channel; of notification.completed, overall.")]
    channel: Channel | None = None
    attempt_count: int | None = None
    failure_code: Annotated[str, Meta(examples=["bounced"])] | None = None
    deliveries: (
        Annotated[list[CallbackOutcome], Meta(description="Of notification.completed.")] | None
    ) = None


class CallbackEvent(msgspec.Struct, kw_only=True, frozen=True):
    """The body of a callback; of one of the type test, the data hold a message alone."""

    type: EventType
    timestamp: Annotated[datetime, Meta(description="When it happened.")]
    data: CallbackEventData


def _header(name: str, description: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": description,
        "schema": {"type": "string"},
    }


EVENT_WEBHOOK: dict[str, Any] = {
    "callback": {
        "post": {
            "operationId": "callback",
            "tags": ["callbacks"],
            "summary": "What your app is told, in the form of Standard Webhooks.",
            "parameters": [
                _header("webhook-id", "The same for the same event: it may come twice."),
                _header("webhook-timestamp", "When it is sent, in seconds since 1970."),
                _header("webhook-signature", "v1 and HMAC-SHA256; two while a secret is replaced."),
            ],
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {
                        "schema": {"$ref": f"#/components/schemas/{CallbackEvent.__name__}"}
                    }
                },
            },
            "responses": {"2XX": {"description": "Heard. Anything else is tried again."}},
        }
    }
}
