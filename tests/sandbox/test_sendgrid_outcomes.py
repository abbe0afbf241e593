"""SendGrid's magic recipients: raw responses, and results of the service's provider."""

import json
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from urllib3.exceptions import ReadTimeoutError

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from notifyproject.platform import event_loop
from providers.contract import Message, ReceiptKind, SendRequest
from tests.support.clients.sandbox import QUICK, Box, Receiver, RunSandbox, mail
from tests.support.waiting import LIMIT, SHORT, ending, until

K = ReceiptKind


def outbound(recipient: str) -> SendRequest:
    return SendRequest(
        reference="ref-1",
        recipient=recipient,
        message=Message(subject="Subject", text="Text", html="<p>Text</p>"),
        category="transactional",
    )


@pytest.mark.parametrize(
    ("recipient", "events"),
    [
        ("ada@example.com", ["processed", "delivered"]),
        ("delivered@example.com", ["processed", "delivered"]),
        ("bounce@example.com", ["processed", "bounce"]),
        ("bounce+1@example.com", ["processed", "bounce"]),
        ("BOUNCE@example.com", ["processed", "bounce"]),
        ("blocked@example.com", ["processed", "bounce"]),
        ("soft-bounce@example.com", ["processed", "deferred", "deferred", "deferred", "delivered"]),
        ("dropped@example.com", ["dropped"]),
        ("dropped-quota@example.com", ["dropped"]),
        ("dropped-complaint@example.com", ["dropped"]),
        ("full@example.com", ["processed", "bounce"]),
        ("refused-sender@example.com", ["processed", "bounce"]),
        ("spam@example.com", ["processed", "delivered", "spamreport"]),
        ("unsubscribed@example.com", ["processed", "delivered", "unsubscribe"]),
        ("slow@example.com", ["processed", "delivered"]),
        ("no-id@example.com", ["processed", "delivered"]),
    ],
)
def test_accepted_mail_causes_its_events(
    box: Box, receiver: Receiver, recipient: str, events: list[str]
) -> None:
    assert box.send(mail(recipient)).status == 202
    sent = receiver.wait_for("ref-1", *events)
    assert {event["email"] for event in sent} == {recipient}
    [recorded] = box.requests("?accepted=true")
    assert recorded["recipients"] == [recipient]


def test_mail_to_no_events_causes_none(box: Box, receiver: Receiver) -> None:
    box.send(mail("no-events@example.com", reference="silent"))
    box.send(mail("ada@example.com", reference="other"))
    receiver.wait_for("other", "processed", "delivered")
    assert receiver.kinds("silent") == []


@pytest.mark.parametrize(
    ("recipient", "status", "field"),
    [
        *((recipient, 500, None) for recipient in ("server-error", "servererror", "server_error")),
        ("error", 500, None),
        ("unavailable", 503, None),
        ("invalid", 400, "personalizations.0.to.0.email"),
        ("unverified-sender", 403, "from"),
        ("too-large", 413, None),
        ("ratelimit", 429, None),
    ],
)
def test_refusal_has_its_status_and_error(
    box: Box, recipient: str, status: int, field: str | None
) -> None:
    answer = box.send(mail(f"{recipient}@example.com"))
    [error] = json.loads(answer.data)["errors"]
    assert (answer.status, error["field"]) == (status, field)
    [recorded] = box.requests()
    assert (recorded["status"], recorded["accepted"]) == (status, False)
    assert recorded["reason"].startswith(error["message"])
    assert recorded["references"] == ["ref-1"]


def test_rate_limit_has_the_time_of_its_end(box: Box) -> None:
    before = time.time()
    headers = box.send(mail("ratelimit@example.com")).headers
    after = time.time()
    assert headers["Retry-After"] == str(QUICK.rate_limit)
    assert before + 5 <= int(headers["X-RateLimit-Reset"]) <= after + 6


def test_acceptance_of_no_id_has_no_message_id(box: Box, receiver: Receiver) -> None:
    assert "X-Message-Id" not in box.send(mail("no-id@example.com")).headers
    sent = receiver.wait_for("ref-1", "processed", "delivered")
    assert all(event["sg_message_id"] for event in sent)


def test_flaky_addresses_fail_separately(box: Box) -> None:
    statuses = [box.send(mail("flaky@example.com")).status for _ in range(3)]
    assert statuses == [500, 500, 202]
    assert box.send(mail("flaky+other@example.com")).status == 500


def test_unanswered_mail_causes_events_later(box: Box, receiver: Receiver) -> None:
    with ending(after=QUICK.late):
        with pytest.raises(ReadTimeoutError):
            box.send(mail("timeout@example.com"), timeout=0.2)
        receiver.wait_for("ref-1", "processed", "delivered")


def test_lost_mail_causes_no_events(box: Box, receiver: Receiver) -> None:
    with pytest.raises(ReadTimeoutError):
        box.send(mail("timeout-lost@example.com", reference="lost"), timeout=0.2)
    with pytest.raises(ReadTimeoutError):
        box.send(mail("timeout@example.com", reference="late"), timeout=0.2)
    receiver.wait_for("late", "processed", "delivered")
    assert receiver.kinds("lost") == []


def test_first_special_recipient_determines_the_answer(box: Box, receiver: Receiver) -> None:
    def to(*names: str) -> dict[str, Any]:
        people = [{"email": f"{name}@example.com"} for name in names]
        return {"personalizations": [{"to": people, "custom_args": {"reference": "all"}}]}

    assert box.send(mail(**to("ada", "bounce", "unavailable"))).status == 503
    assert box.send(mail(**to("ada", "bounce", "bob"))).status == 202
    until(lambda: len(receiver.events) == 6)
    last = {event["email"]: event["event"] for event in receiver.events}
    assert last == {
        "ada@example.com": "delivered",
        "bounce@example.com": "bounce",
        "bob@example.com": "delivered",
    }


@pytest.mark.parametrize(
    ("recipient", "error", "expected"),
    [
        ("ratelimit", TransientError, {"code": FailureCode.RATE_LIMITED, "is_ambiguous": False}),
        ("server-error", TransientError, {"is_ambiguous": False}),
        ("unavailable", TransientError, {"is_ambiguous": False}),
        ("bad-gateway", TransientError, {"is_ambiguous": False}),
        ("timeout", TransientError, {"code": FailureCode.TIMEOUT, "is_ambiguous": True}),
        ("reset", TransientError, {"code": FailureCode.CONNECTION_LOST, "is_ambiguous": True}),
        ("truncated", TransientError, {"code": FailureCode.CONNECTION_LOST, "is_ambiguous": True}),
        ("dripping", TransientError, {"code": FailureCode.TIMEOUT, "is_ambiguous": True}),
        ("redirect", ProviderUnavailableError, {"scope": None}),
        ("unverified-sender", ProviderUnavailableError, {"scope": "hello@acme.example"}),
        ("invalid", InvalidRecipientError, {}),
        ("too-large", PermanentError, {"code": FailureCode.TOO_LARGE}),
    ],
)
def test_service_distinguishes_the_failures(
    run: RunSandbox, recipient: str, error: type[ProviderError], expected: dict[str, Any]
) -> None:
    timeout = SHORT if expected.get("code") is FailureCode.TIMEOUT else LIMIT
    request = replace(outbound(f"{recipient}@example.com"), scope="hello@acme.example")
    # Its slow answers are slower than the test waits.
    with run(timings=replace(QUICK, drip=1.0)) as box, pytest.raises(error) as caught:
        event_loop.run(box.account().send(request, timeout=timeout))
    assert {name: getattr(caught.value, name) for name in expected} == expected


def test_service_reads_the_end_of_a_rate_limit(box: Box) -> None:
    now = datetime.now(UTC)
    account = replace(box.account(), clock=lambda: now)
    with pytest.raises(TransientError) as caught:
        event_loop.run(account.send(outbound("ratelimit@example.com"), timeout=LIMIT))
    [request] = box.requests()
    limited = datetime.fromisoformat(request["time"])
    assert caught.value.retry_after is not None
    ends = now + timedelta(seconds=caught.value.retry_after)
    assert 4 <= (ends - limited).total_seconds() <= 6


@pytest.mark.parametrize("recipient", ["ada@example.com", "no-id@example.com"])
def test_service_sends_an_accepted_mail_and_reads_its_receipts(
    box: Box, receiver: Receiver, recipient: str
) -> None:
    result = event_loop.run(box.account().send(outbound(recipient), timeout=LIMIT))
    until(lambda: len(receiver.events) == 2)
    receipts = [receipt for post in receiver.posts for receipt in box.receipts(post)]
    assert [receipt.kind for receipt in receipts] == [K.QUEUED, K.DELIVERED]
    assert {receipt.reference for receipt in receipts} == {"ref-1"}
    assert {receipt.address for receipt in receipts} == {recipient}
    if recipient == "ada@example.com":
        assert {receipt.provider_id for receipt in receipts} == {result.provider_id}
    else:
        assert result.provider_id is None
