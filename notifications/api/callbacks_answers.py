"""What answers about callbacks look like."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from bson import ObjectId
from msgspec import Meta

from callbacks.events import CallbackState, CallbackStatus, DisabledReason, EventType
from callbacks.subscriptions import OVERLAP

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


class CallbackTryView(msgspec.Struct, kw_only=True, frozen=True):
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
    history: list[CallbackTryView]
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
    shown = {name: document.get(name) for name in CallbackView.__struct_fields__}
    return msgspec.convert({**shown, "secret": secret}, CallbackView)


def secret_view(secret: str, *, now: datetime, overlap: timedelta = OVERLAP) -> CallbackSecretView:
    """Return a new secret as its app is told it."""
    return CallbackSecretView(secret=secret, previous_until=now + overlap)


def delivery_view(document: Mapping[str, Any]) -> CallbackDeliveryView:
    """Return a stored message as its app sees it."""
    shown = {name: document.get(name) for name in CallbackDeliveryView.__struct_fields__}
    about: ObjectId | None = document.get("notification_id")
    shown |= {
        "id": document["_id"],
        "notification_id": str(about) if about else None,
        "body": json.loads(document["body"]),
        "history": document.get("history", []),
    }
    return msgspec.convert(shown, CallbackDeliveryView)
