"""What is peculiar to the Python client. ``test_conformance.py`` has what every client does."""

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from notifyproject_client import (
    AsyncNotifier,
    ContentRequest,
    NotificationFields,
    NotificationRecipientRequest,
    NotificationRejectedError,
    NotificationRequest,
    Notifier,
    ServiceUnavailableError,
)
from notifyproject_client.rest.api.callbacks import get_callback
from notifyproject_client.rest.api.digests import list_digests
from notifyproject_client.rest.api.inbox import issue_inbox_token
from notifyproject_client.rest.api.notifications import list_attempts
from notifyproject_client.rest.api.recipients import get_recipient, put_recipient
from notifyproject_client.rest.models.inbox_token_request import InboxTokenRequest
from notifyproject_client.rest.models.recipient_request import RecipientRequest
from notifyproject_client.retry import parse_retry_after

from tests.support.openapi import api_operations
from tests.support.tables import each_case

KEY = "ntf_abc_secret"
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


class Service:
    """A fake service: returns scripted answers, and records requests."""

    def __init__(self, *answers: httpx.Response) -> None:
        self.answers = iter(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return next(self.answers)

    def notifier(self) -> Notifier:
        return Notifier("https://notify.example.com", key=KEY, transport=httpx.MockTransport(self))


def accepted(operation: str = "createNotification") -> httpx.Response:
    content = api_operations()[operation]["responses"]["202"]["content"]
    return httpx.Response(202, json=content["application/json"]["examples"]["answer"]["value"])


def problem(status: int, code: str) -> httpx.Response:
    body = {
        "type": f"urn:notifications:problem:{code}",
        "title": "No",
        "status": status,
        "detail": "It is not so.",
        "instance": "/api/v1/notifications",
        "code": code,
        "request_id": "r-1",
        "errors": [],
    }
    return httpx.Response(status, json=body)


def test_every_request_field_is_a_keyword() -> None:
    taken = NotificationFields.__annotations__.keys() - {"email", "phone"}
    fields = {field.name for field in NotificationRequest.__attrs_attrs__}
    assert taken == fields - {"type_", "data"}
    service = Service(accepted())
    service.notifier().notify(
        "payment_confirmed",
        recipient=NotificationRecipientRequest(email="ada@example.com", locale="pt"),
        content=ContentRequest(subject="Paid"),
        scheduled_at=NOW,
        channels=("email",),
        ttl=60,
    )
    assert json.loads(service.requests[0].content) == {
        "type": "payment_confirmed",
        "recipient": {"email": "ada@example.com", "locale": "pt"},
        "content": {"subject": "Paid"},
        "scheduled_at": "2026-12-01T09:00:00+00:00",
        "channels": ["email"],
        "ttl": 60,
    }


def test_dates_of_a_dict_are_sent_as_texts() -> None:
    service = Service(accepted(), accepted("createBroadcast"))
    with service.notifier() as notifier:
        sent = notifier.send({"type": "payment_confirmed", "user_id": "ada", "expires_at": NOW})
        notifier.broadcast("marketing", {"topic": "news"}, expires_at=NOW)
    assert sent.created_at == NOW
    texts = [json.loads(request.content)["expires_at"] for request in service.requests]
    assert texts == ["2026-12-01T09:00:00+00:00"] * 2


GENERATED: tuple[Any, ...] = (
    (issue_inbox_token, {"body": InboxTokenRequest(user_id="ada")}),
    (list_attempts, {"notification_id": "a" * 24}),
    (get_callback, {}),
    (get_recipient, {"user_id": "ada"}),
    (put_recipient, {"user_id": "ada", "body": RecipientRequest()}),
    (list_digests, {}),
)


@each_case("function, arguments", GENERATED)
def test_generated_function_raises_the_problem(function: Any, arguments: Any) -> None:
    service = Service(problem(403, "insufficient_scope"), problem(503, "store_unavailable"))
    notifier = service.notifier()
    with pytest.raises(NotificationRejectedError, match="insufficient_scope"):
        function.sync(client=notifier.rest, **arguments)
    with pytest.raises(ServiceUnavailableError, match="store_unavailable"):
        function.sync_detailed(client=notifier.rest, **arguments)
    assert service.requests[0].headers["Authorization"] == f"Bearer {KEY}"


def test_generated_asynchronous_function_raises_too() -> None:
    transport = httpx.MockTransport(Service(problem(401, "unauthenticated")))

    async def ask() -> None:
        async with AsyncNotifier(
            "https://notify.example.com", key=KEY, transport=transport
        ) as notifier:
            await issue_inbox_token.asyncio(
                client=notifier.rest, body=InboxTokenRequest(user_id="ada")
            )

    with pytest.raises(NotificationRejectedError, match="unauthenticated"):
        asyncio.run(ask())


def _waits() -> Iterator[tuple[str, float | None]]:
    yield "17", 17.0
    yield "", None
    yield "soon", None
    yield "-1", None
    yield format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0
    yield format_datetime(NOW - timedelta(days=1), usegmt=True), 0.0


@each_case("text, seconds", list(_waits()))
def test_retry_after_is_a_number_or_a_date(text: str, seconds: float | None) -> None:
    assert parse_retry_after({"Retry-After": text}, now=NOW) == seconds
