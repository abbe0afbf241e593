"""The Python client against a failing service and network."""

import asyncio
import base64
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
    InvalidCallbackError,
    NotificationError,
    NotificationFields,
    NotificationRecipientRequest,
    NotificationRejectedError,
    NotificationRequest,
    Notifier,
    RetryPolicy,
    ServiceUnavailableError,
    verify_callback,
)
from notifyproject_client.rest.api.callbacks import get_callback
from notifyproject_client.rest.api.digests import list_digests
from notifyproject_client.rest.api.inbox import issue_inbox_token
from notifyproject_client.rest.api.notifications import list_attempts
from notifyproject_client.rest.api.recipients import get_recipient, put_recipient
from notifyproject_client.rest.models.inbox_token_request import InboxTokenRequest
from notifyproject_client.rest.models.recipient_request import RecipientRequest
from notifyproject_client.retry import parse_retry_after

from domain import signing
from tests.support.openapi import api_operations
from tests.support.tables import each_case

KEY = "ntf_abc_secret"
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


class Service:
    """A fake service and clock: returns scripted answers, and records requests and waits."""

    def __init__(self, *answers: Any) -> None:
        self.answers = iter(answers)
        self.requests: list[httpx.Request] = []
        self.waits: list[float] = []
        self.now = 0.0

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, httpx.Response)
        return answer

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    def notifier(self, **options: Any) -> Notifier:
        return Notifier(
            "https://notify.example.com/",
            key=KEY,
            retry=RetryPolicy(**options),
            transport=httpx.MockTransport(self),
            sleep=self.sleep,
            clock=lambda: self.now,
        )

    @property
    def keys(self) -> list[str]:
        return [request.headers["Idempotency-Key"] for request in self.requests]


def accepted(operation: str = "createNotification") -> httpx.Response:
    content = api_operations()[operation]["responses"]["202"]["content"]
    return httpx.Response(202, json=content["application/json"]["examples"]["answer"]["value"])


@each_case("channels", ["all", ["all"]])
def test_all_channels_are_sent_as_one_name(channels: Any) -> None:
    service = Service(accepted())
    service.notifier().notify("payment_confirmed", email="ada@example.com", channels=channels)
    assert json.loads(service.requests[0].content)["channels"] == ["all"]


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    body = {
        "type": f"urn:notifications:problem:{code}",
        "title": "No",
        "status": status,
        "detail": "It is not so.",
        "instance": "/api/v1/notifications",
        "code": code,
        "request_id": "r-1",
        "errors": [{"pointer": "/recipient/email", "code": "invalid_email", "detail": "No."}],
    }
    headers = {"Content-Type": "application/problem+json", **headers}
    return httpx.Response(status, json=body, headers=headers)


def test_request_has_the_key_and_the_answer_is_typed() -> None:
    service = Service(accepted())
    with service.notifier() as notifier:
        sent = notifier.notify("payment_confirmed", email="ada@example.com", data={"order_id": 1})
    assert sent.recipient.email == "ada@example.com"
    assert sent.created_at == NOW
    (request,) = service.requests
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert str(request.url) == "https://notify.example.com/api/v1/notifications"
    assert json.loads(request.content) == {
        "type": "payment_confirmed",
        "recipient": {"email": "ada@example.com"},
        "data": {"order_id": 1},
    }


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


def test_objects_can_be_dicts() -> None:
    service = Service(accepted(), accepted())
    body: dict[str, Any] = {
        "recipient": {"email": "ada@example.com", "device_ids": []},
        "content": {"subject": "Paid", "attachments": [{"url": "https://a.example/b"}]},
        "scheduled_local": {"at": "2026-12-01T09:00"},
        "data": {"orders": [{"id": 1}], "at": "now"},
    }
    service.notifier().notify("payment_confirmed", **body)
    service.notifier().send({"type": "payment_confirmed", **body, "expires_at": NOW})
    sent = [json.loads(request.content) for request in service.requests]
    assert sent[0] == {"type": "payment_confirmed", **body}
    assert sent[1] == {**sent[0], "expires_at": "2026-12-01T09:00:00+00:00"}


def test_unknown_field_of_a_dict_is_sent_for_the_service_to_refuse() -> None:
    service = Service(accepted())
    service.notifier().notify("mfa_code", user_id="ada", content={"titel": "Paid"})
    assert json.loads(service.requests[0].content)["content"] == {"titel": "Paid"}


def test_text_of_a_refusal_names_the_fields() -> None:
    service = Service(problem(422, "validation_failed"))
    with pytest.raises(NotificationRejectedError) as caught:
        service.notifier().notify("mfa_code", email="nonsense")
    assert str(caught.value) == ("422 validation_failed: It is not so. /recipient/email: No.")


def test_retries_have_the_same_key_and_body() -> None:
    service = Service(
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("late"),
        problem(503, "store_unavailable"),
        httpx.Response(502, text="<html>"),
        accepted(),
    )
    assert service.notifier().notify("mfa_code", user_id="ada").id
    assert len(service.keys) == 5
    assert len(set(service.keys)) == 1
    assert len({request.content for request in service.requests}) == 1
    assert service.waits == sorted(service.waits), "ever longer"
    assert 0.5 <= service.waits[0] <= 0.75


def test_each_notification_has_its_own_idempotency_key() -> None:
    service = Service(accepted(), accepted(), accepted())
    notifier = service.notifier()
    notifier.notify("mfa_code", user_id="ada")
    notifier.notify("mfa_code", user_id="ada")
    notifier.send(NotificationRequest(type_="mfa_code"), idempotency_key="mine")
    assert len(set(service.keys)) == 3
    assert service.keys[2] == "mine"


def test_retry_after_is_respected() -> None:
    service = Service(problem(429, "rate_limited", **{"Retry-After": "17"}), accepted())
    service.notifier().notify("mfa_code", user_id="ada")
    assert service.waits == [17.0]


def test_retry_after_beyond_the_time_limit_is_an_error() -> None:
    service = Service(problem(429, "rate_limited", **{"Retry-After": "3600"}))
    with pytest.raises(ServiceUnavailableError) as caught:
        service.notifier().notify("mfa_code", user_id="ada")
    assert (caught.value.code, caught.value.status, service.waits) == ("rate_limited", 429, [])


def test_error_after_the_last_retry_has_the_idempotency_key() -> None:
    service = Service(*[httpx.ConnectError("refused")] * 3)
    with pytest.raises(
        ServiceUnavailableError, match="Couldn't reach the service: ConnectError"
    ) as caught:
        service.notifier(max_attempts=3).notify("mfa_code", user_id="ada", idempotency_key="mine")
    assert caught.value.idempotency_key == "mine"
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert len(service.requests) == 3


@each_case("status", [400, 401, 403, 404, 409, 413, 422])
def test_refusal_is_not_retried_and_has_a_reason(status: int) -> None:
    service = Service(problem(status, "validation_failed"))
    with pytest.raises(
        NotificationRejectedError, match="validation_failed: It is not so"
    ) as caught:
        service.notifier().notify("mfa_code", email="nonsense")
    error = caught.value
    assert (error.status, error.code, len(service.requests)) == (status, "validation_failed", 1)
    assert [error.pointer for error in error.problem.errors] == ["/recipient/email"]


@each_case(
    "answer",
    [
        httpx.Response(302, headers={"Location": "https://elsewhere.example.com/"}),
        httpx.Response(404, text="<html>not here</html>"),
        httpx.Response(403, json=["no problem"]),
        httpx.Response(403, json={"code": "half a problem"}),
    ],
)
def test_foreign_answer_is_not_retried(answer: Any) -> None:
    service = Service(answer)
    with pytest.raises(NotificationRejectedError) as caught:
        service.notifier().notify("mfa_code", user_id="ada")
    assert (caught.value.problem, caught.value.code, len(service.requests)) == (None, None, 1)


@each_case("answer", [{"text": "<html>"}, {"json": {"id": "1"}}, {"json": [1]}])
def test_unreadable_acceptance_is_not_success(answer: Any) -> None:
    service = Service(httpx.Response(202, **answer))
    with pytest.raises(ServiceUnavailableError, match="from another program"):
        service.notifier().notify("mfa_code", user_id="ada")


def test_error_contains_neither_key_nor_content() -> None:
    service = Service(httpx.ConnectError("refused"), problem(422, "validation_failed"))
    notifier = service.notifier(max_attempts=1)
    for _ in range(2):
        with pytest.raises(NotificationError) as caught:
            notifier.notify("mfa_code", email="ada@example.com", data={"code": "123456"})
        for secret in (KEY, "123456", "ada@example.com"):
            assert secret not in f"{caught.value} {caught.value!r}"


def test_unsupported_service_url_raises() -> None:
    service = Service(httpx.UnsupportedProtocol("no http"))
    with pytest.raises(httpx.UnsupportedProtocol):
        service.notifier().notify("mfa_code", user_id="ada")


def test_warnings_of_the_answer_are_objects() -> None:
    answer = accepted().json() | {
        "warnings": [{"channel": "push", "code": "no_address", "detail": "No device registered."}]
    }
    sent = Service(httpx.Response(202, json=answer)).notifier().notify("mfa_code", user_id="ada")
    assert [(warning.channel, warning.code) for warning in sent.warnings] == [
        ("push", "no_address")
    ]
    assert (sent.phase, sent.retry_count) == ("sent", 0)


TOKEN = {
    "token": "t",
    "jti": "j",
    "user_id": "ada",
    "expires_at": "2026-12-01T09:15:00Z",
    "stream_url": "https://notify.example.com/api/v1/inbox/stream",
}
RESULTS = {"accepted": 1, "rejected": 0, "results": [{"index": 0, "id": "a" * 24, "error": None}]}


def test_token_of_an_inbox_is_one_call_and_is_repeated_after_a_failure() -> None:
    service = Service(problem(503, "store_unavailable"), httpx.Response(201, json=TOKEN))
    assert service.notifier().inbox_token("ada").token == "t"
    assert [request.url.path for request in service.requests] == ["/api/v1/inbox/tokens"] * 2
    assert "Idempotency-Key" not in service.requests[0].headers


def test_wrong_key_of_a_token_endpoint_is_an_error() -> None:
    service = Service(problem(401, "unauthenticated"))
    with pytest.raises(NotificationRejectedError, match="unauthenticated") as caught:
        service.notifier().inbox_token("ada")
    assert (caught.value.status, caught.value.idempotency_key) == (401, None)


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
    service = Service(problem(401, "unauthenticated"))

    async def ask() -> None:
        async with async_notifier(service) as notifier:
            await issue_inbox_token.asyncio(
                client=notifier.rest, body=InboxTokenRequest(user_id="ada")
            )

    with pytest.raises(NotificationRejectedError, match="unauthenticated"):
        asyncio.run(ask())


def async_notifier(service: Service) -> AsyncNotifier:
    async def sleep(seconds: float) -> None:
        service.sleep(seconds)

    return AsyncNotifier(
        "https://notify.example.com",
        key=KEY,
        transport=httpx.MockTransport(service),
        sleep=sleep,
        clock=lambda: service.now,
    )


def test_asynchronous_notifier_retries_with_one_key() -> None:
    service = Service(httpx.ConnectError("refused"), problem(429, "rate_limited"), accepted())

    async def send() -> str:
        async with async_notifier(service) as notifier:
            sent = await notifier.notify("mfa_code", email="ada@example.com", channels="all")
            return sent.id

    assert asyncio.run(send())
    assert len(set(service.keys)) == 1
    assert len(service.waits) == 2
    sent = json.loads(service.requests[0].content)
    assert (sent["recipient"], sent["channels"]) == ({"email": "ada@example.com"}, ["all"])


def test_many_are_sent_a_thousand_at_a_time_with_one_result_for_each() -> None:
    service = Service(*[httpx.Response(200, json=RESULTS)] * 3)
    notifications = [{"type": "mfa_code", "user_id": str(number)} for number in range(2_001)]
    found = service.notifier().send_many(notifications, idempotency_key="mine")
    assert service.keys == ["mine", "mine-1000", "mine-2000"]
    sizes = [len(json.loads(request.content)["notifications"]) for request in service.requests]
    assert sizes == [1_000, 1_000, 1]
    assert (found.accepted, [result.index for result in found.results]) == (3, [0, 1_000, 2_000])


def test_failed_part_of_many_is_repeated_with_its_own_key() -> None:
    service = Service(
        httpx.Response(200, json=RESULTS),
        httpx.ReadTimeout("late"),
        httpx.Response(200, json=RESULTS),
    )
    service.notifier().send_many([{"type": "mfa_code"}] * 1_001, idempotency_key="mine")
    assert service.keys == ["mine", "mine-1000", "mine-1000"]


def test_broadcast_has_a_key_although_none_is_given() -> None:
    service = Service(problem(503, "overloaded"), accepted("createBroadcast"))
    started = service.notifier().broadcast(
        "marketing", {"topic": "news"}, content={"subject": "Spring"}, expires_at=NOW
    )
    assert started.status
    assert len(set(service.keys)) == 1
    assert json.loads(service.requests[0].content) == {
        "type": "marketing",
        "audience": {"topic": "news"},
        "content": {"subject": "Spring"},
        "expires_at": "2026-12-01T09:00:00+00:00",
    }


SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
EVENT = b'{"type":"delivery.failed","data":{"channel":"email"}}'


def signed(body: bytes = EVENT, *, secret: str = SECRET, at: datetime = NOW) -> dict[str, str]:
    """Return the headers of a callback, as the service signs it."""
    found = signing.sign_headers(
        message_id="evt_1", timestamp=int(at.timestamp()), body=body, secrets=[secret]
    )
    return {name.title(): value for name, value in found.items()}


def test_callback_of_the_specifications_example_is_genuine() -> None:
    """github.com/standard-webhooks/standard-webhooks, the example of its libraries' tests."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    event = verify_callback(headers, body, secret=secret, now=1_614_265_330)
    assert event == {"test": 2432232314}


def test_callback_is_verified_with_any_secret_and_any_signature() -> None:
    now = NOW.timestamp() + 299
    event = verify_callback(signed(), EVENT, secret=SECRET, now=now)
    assert event == {"type": "delivery.failed", "data": {"channel": "email"}}
    other = "whsec_" + base64.b64encode(b"o" * 32).decode()
    assert verify_callback(signed(), EVENT, secret=[other, SECRET], now=now)
    rotated = signed() | {"Webhook-Signature": f"v1,AAAA {signed()['Webhook-Signature']}"}
    assert verify_callback(rotated, EVENT, secret=SECRET, now=now)


@each_case(
    "headers, body, seconds",
    [
        (signed(), EVENT + b" ", 0),
        (signed(secret="whsec_" + base64.b64encode(b"o" * 32).decode()), EVENT, 0),
        (signed(), EVENT, 301),
        (signed(), EVENT, -301),
        ({**signed(), "Webhook-Id": "evt_2"}, EVENT, 0),
        ({**signed(), "Webhook-Timestamp": "soon"}, EVENT, 0),
        ({**signed(), "Webhook-Timestamp": "²"}, EVENT, 0),
        ({**signed(), "Webhook-Signature": ""}, EVENT, 0),
        ({**signed(), "Webhook-Signature": "v1,é"}, EVENT, 0),
        ({}, EVENT, 0),
    ],
)
def test_callback_of_another_sender_is_refused(
    headers: dict[str, str], body: bytes, seconds: float
) -> None:
    with pytest.raises(InvalidCallbackError):
        verify_callback(headers, body, secret=SECRET, now=NOW.timestamp() + seconds)


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
