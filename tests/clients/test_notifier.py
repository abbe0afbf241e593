"""The Python client against a failing service and network."""

import inspect
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest
from drf_spectacular.generators import SchemaGenerator
from notifyproject_client import (
    ContentRequest,
    NotificationError,
    NotificationRecipientRequest,
    NotificationRejectedError,
    NotificationRequest,
    Notifier,
    RetryPolicy,
    ServiceUnavailableError,
)
from notifyproject_client.retry import parse_retry_after

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


@pytest.fixture(scope="module")
def accepted() -> Callable[[], httpx.Response]:
    schema = SchemaGenerator().get_schema(request=None, public=True)
    content = schema["paths"]["/api/v1/notifications"]["post"]["responses"]["202"]["content"]
    example = content["application/json"]["examples"]["answer"]["value"]
    return lambda: httpx.Response(202, json=example)


@pytest.mark.parametrize("channels", ["all", ["all"]])
def test_all_channels_are_sent_as_one_name(
    accepted: Callable[[], httpx.Response], channels: Any
) -> None:
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


def test_request_has_the_key_and_the_answer_is_typed(accepted: Any) -> None:
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


def test_every_request_field_is_a_keyword(accepted: Any) -> None:
    taken = set(inspect.signature(Notifier.notify).parameters)
    fields = {field.name for field in NotificationRequest.__attrs_attrs__}
    assert taken - {"self", "type_slug", "email", "phone", "idempotency_key"} == fields - {"type_"}
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


def test_objects_can_be_dicts(accepted: Any) -> None:
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


def test_unknown_field_of_a_dict_is_sent_for_the_service_to_refuse(accepted: Any) -> None:
    service = Service(accepted())
    service.notifier().notify("mfa_code", user_id="ada", content={"titel": "Paid"})
    assert json.loads(service.requests[0].content)["content"] == {"titel": "Paid"}


def test_text_of_a_refusal_names_the_fields() -> None:
    service = Service(problem(422, "validation_failed"))
    with pytest.raises(NotificationRejectedError) as caught:
        service.notifier().notify("mfa_code", email="nonsense")
    assert str(caught.value) == ("422 validation_failed: It is not so. /recipient/email: No.")


def test_retries_have_the_same_key_and_body(accepted: Any) -> None:
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


def test_each_notification_has_its_own_idempotency_key(accepted: Any) -> None:
    service = Service(accepted(), accepted(), accepted())
    notifier = service.notifier()
    notifier.notify("mfa_code", user_id="ada")
    notifier.notify("mfa_code", user_id="ada")
    notifier.send(NotificationRequest(type_="mfa_code"), idempotency_key="mine")
    assert len(set(service.keys)) == 3
    assert service.keys[2] == "mine"


def test_retry_after_is_respected(accepted: Any) -> None:
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


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413, 422])
def test_refusal_is_not_retried_and_has_a_reason(status: int) -> None:
    service = Service(problem(status, "validation_failed"))
    with pytest.raises(
        NotificationRejectedError, match="validation_failed: It is not so"
    ) as caught:
        service.notifier().notify("mfa_code", email="nonsense")
    error = caught.value
    assert (error.status, error.code, len(service.requests)) == (status, "validation_failed", 1)
    assert [one.pointer for one in error.problem.errors] == ["/recipient/email"]


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("answer", [{"text": "<html>"}, {"json": {"id": "1"}}, {"json": [1]}])
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


def _waits() -> Iterator[tuple[str, float | None]]:
    yield "17", 17.0
    yield "", None
    yield "soon", None
    yield "-1", None
    yield format_datetime(NOW + timedelta(seconds=90), usegmt=True), 90.0
    yield format_datetime(NOW - timedelta(days=1), usegmt=True), 0.0


@pytest.mark.parametrize(("text", "seconds"), list(_waits()))
def test_retry_after_is_a_number_or_a_date(text: str, seconds: float | None) -> None:
    assert parse_retry_after({"Retry-After": text}, now=NOW) == seconds
