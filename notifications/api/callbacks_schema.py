"""What an app is told, for the API's description: the one request that we make and it answers."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from callbacks.events import EventType
from domain.states import Channel


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


WEBHOOKS: dict[str, Any] = {
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
