"""Webhooks of SendGrid and Meta: verification, and receipts in any order and number."""

import base64
import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client

from api.http.body import MAX_BYTES_BULK
from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifyproject.db.collections import collection
from providers import registry
from providers.http import Response as HttpResponse
from providers.registry import get_provider
from recipients.service_windows import open_windows
from tests.support.factories import notifications as factories
from tests.support.fakes.mongo_failpoints import LOST_ANSWER, fail_commands
from tests.support.providers import aws, ses
from tests.support.providers.whatsapp import (
    PHONE,
    PHONE_NUMBER_ID,
    SECRET,
    change,
    failed,
    signed,
    status,
    webhook,
    written,
)
from tests.support.tables import each_case

KEY = ec.generate_private_key(ec.SECP256R1())

PUBLIC_KEY = base64.b64encode(
    KEY.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
).decode()


@pytest.fixture(autouse=True)
def _public_key(settings: Any, db: None) -> None:
    settings.SENDGRID_WEBHOOK_PUBLIC_KEY = PUBLIC_KEY


def call(events: Any, *, key: Any = KEY) -> Any:
    raw = events if isinstance(events, bytes) else json.dumps(events).encode()
    timestamp = str(int(time.time()))
    signature = base64.b64encode(
        key.sign(timestamp.encode() + raw, ec.ECDSA(hashes.SHA256()))
    ).decode()
    signed = {
        "X-Twilio-Email-Event-Webhook-Signature": signature,
        "X-Twilio-Email-Event-Webhook-Timestamp": timestamp,
    }
    return Client(raise_request_exception=False).post(
        "/webhooks/sendgrid", raw, content_type="application/json", headers=signed
    )


def event(kind: str, document: Any, *, number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "event": kind,
        "email": "ada@example.com",
        "timestamp": int(time.time()),
        "sg_event_id": f"{kind}-{document['_id']}-{number}",
        "sg_message_id": "sg-1.recvd-1-0",
        "reference": f"{document['_id']}.email.{number}",
        **fields,
    }


def status_of(document: Any) -> str:
    return factories.delivery(factories.read(document["_id"]))["status"]


def test_delivered_event_is_applied(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    answer = call([event("processed", document), event("delivered", document)])
    assert answer.status_code == 200
    assert answer.json() == {"events": 2, "changed": 1}
    assert status_of(document) == "delivered"


def test_bounce_fails_the_delivery_and_suppresses_the_address(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    call([event("bounce", document, type="bounce", reason="550 no such user ada@example.com")])
    stored = factories.delivery(factories.read(document["_id"]))
    assert (stored["status"], stored["failure_code"]) == ("failed", "bounced")
    assert "ada@example.com" not in stored["failure_reason"]
    suppression = collection("suppressions").find_one({"address": "ada@example.com"})
    assert suppression["reason"] == "hard_bounce"


def test_open_and_click_do_not_mark_mail_read(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    call([event("delivered", document), event("open", document), event("click", document)])
    assert status_of(document) == "delivered"


def test_unacknowledged_write_answers_503(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    events = [event("processed", document), event("delivered", document)]
    with fail_commands("insert", "provider_events", LOST_ANSWER):
        answer = call(events)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert call(events).status_code == 200
    assert status_of(document) == "delivered"


def test_sendgrid_signature_of_another_key_and_large_body_are_refused(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    other = ec.generate_private_key(ec.SECP256R1())
    refused(call([event("delivered", document)], key=other))
    assert status_of(document) == "sent"
    refused(call(b"[" + b" " * MAX_BYTES_BULK + b"]"), 413, "too_large")


S = DeliveryStatus
URL = "/webhooks/whatsapp"
NO_DISK = {"errorCode": 14031}
TOKEN = "verify-token"


@pytest.fixture(autouse=True)
def _our_number(settings: Any, db: None) -> None:
    settings.WHATSAPP_TOKEN = "EAAsecret"
    settings.WHATSAPP_PHONE_NUMBER_ID = PHONE_NUMBER_ID
    settings.WHATSAPP_APP_SECRET = SECRET
    settings.WHATSAPP_VERIFY_TOKEN = TOKEN
    settings.WHATSAPP_URL = "http://127.0.0.1:1"


def post(raw: bytes, *, headers: dict[str, str] | None = None) -> Any:
    return Client(raise_request_exception=False).post(
        URL,
        raw,
        content_type="application/json",
        headers=signed(raw) if headers is None else headers,
    )


def call_whatsapp(*statuses: Any, **fields: Any) -> Any:
    return post(webhook(change(*statuses, **fields)))


def sent(state: DeliveryStatus = S.SENT) -> Any:
    return factories.settled(state, channel=Channel.WHATSAPP)


def about(document: Any, kind: str, *, number: int = 1, **fields: Any) -> dict[str, Any]:
    common = {
        "id": f"wamid.{document['_id']}",
        "biz_opaque_callback_data": f"{document['_id']}.whatsapp.{number}",
        "timestamp": str(int(time.time())),
    }
    return failed(**(common | fields)) if kind == "failed" else status(kind, **(common | fields))


def delivery(document: Any) -> Any:
    return factories.delivery(factories.read(document["_id"]), Channel.WHATSAPP)


def now_written(**fields: Any) -> dict[str, Any]:
    return written(timestamp=str(int(time.time())), **fields)


def test_whatsapp_receipt_is_applied() -> None:
    document = sent()
    answer = call_whatsapp(about(document, "sent"), about(document, "delivered"))
    assert answer.status_code == 200
    assert answer.json() == {"events": 2, "changed": 1, "inbound": 0}
    assert delivery(document)["status"] == "delivered"


@each_case("order", list(itertools.permutations(["sent", "failed"])))
def test_failure_after_sent_fails_the_delivery(order: tuple[str, ...]) -> None:
    document = sent()
    for kind in (*order, *order):
        call_whatsapp(about(document, kind))
    stored = delivery(document)
    assert (stored["status"], stored["failure_code"]) == ("failed", "reported_failed")
    assert stored["failure_reason"].startswith("Undeliverable: no WhatsApp on this number")
    assert len(factories.read(document["_id"])["error_history"]) == 1


def test_message_not_delivered_by_whatsapp_is_dropped() -> None:
    document = sent()
    call_whatsapp(about(document, "failed", code=131049))
    assert delivery(document)["failure_code"] == "dropped"


def test_marketing_opt_out_suppresses_marketing() -> None:
    document = sent()
    call_whatsapp(about(document, "failed", code=131050))
    # As we wrote to them: of some countries' numbers WhatsApp reports another spelling.
    written_to = document["recipient"]["phone"]
    suppression = collection("suppressions").find_one({"address": written_to})
    assert (suppression["reason"], suppression["marketing_only"]) == ("unsubscribed", True)


def test_three_soft_bounces_suppress_the_number() -> None:
    for count in (0, 0, 1):
        call_whatsapp(about(sent(), "failed"))
        assert collection("suppressions").count_documents({"reason": "hard_bounce"}) == count


def test_delivery_clears_soft_bounces() -> None:
    for kind in ("failed", "failed", "delivered", "failed"):
        call_whatsapp(about(sent(), kind))
    assert collection("suppressions").count_documents({}) == 0


def test_inbound_message_opens_the_service_window() -> None:
    answer = call_whatsapp(messages=[now_written(), now_written(**{"from": "351912345678"})])
    assert answer.json() == {"events": 0, "changed": 0, "inbound": 2}
    phones = [PHONE, "+351912345678", "+447700900998"]
    assert open_windows(phones, now=utc_now()) == set(phones[:2])


def test_inbound_text_is_not_stored() -> None:
    call_whatsapp(about(sent(), "read"), messages=[now_written(text={"body": "My diagnosis"})])
    (log,) = collection("webhook_log").find({})
    assert "diagnosis" not in log["body"]
    assert (log["provider"], log["event_count"], log["applied_count"]) == ("whatsapp", 2, 1)


def test_log_holds_no_number_and_no_text(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    raw = webhook(change(about(sent(), "failed"), messages=[now_written(text="My diagnosis")]))
    for headers in (signed(raw), {}):
        post(raw, headers=headers)
    assert "receipt_applied" in caplog.text
    assert "webhook_rejected" in caplog.text
    assert PHONE[1:] not in caplog.text
    assert "diagnosis" not in caplog.text


@pytest.mark.parametrize("name", ["webhook_log", "notifications", "service_windows"])
def test_store_failure_answers_503_and_retry_applies(name: str) -> None:
    document = sent()
    raw = webhook(change(about(document, "delivered"), messages=[now_written()]))
    command = "insert" if name == "webhook_log" else "update"
    with fail_commands(command, name, NO_DISK):
        assert post(raw).status_code == 503
    assert post(raw).status_code == 200
    assert delivery(document)["status"] == "delivered"
    assert open_windows([PHONE], now=utc_now()) == {PHONE}


def test_other_webhook_fields_are_ignored() -> None:
    answer = post(webhook({"field": "account_update", "value": {"event": "VERIFIED_ACCOUNT"}}))
    assert answer.json() == {"events": 0, "changed": 0, "inbound": 0}


def refused(answer: Any, status_code: int = 403, code: str = "invalid_signature") -> None:
    assert (answer.status_code, answer.json()["code"]) == (status_code, code)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert collection("webhook_log").count_documents({}) == 0


def test_whatsapp_signature_of_another_secret_is_refused() -> None:
    document = sent()
    raw = webhook(change(about(document, "delivered"), messages=[now_written()]))
    refused(post(raw, headers=signed(raw, secret="another")))
    assert delivery(document)["status"] == "sent"
    assert collection("service_windows").count_documents({}) == 0


@each_case("raw", [b"", b"{}", b"[1]", b"<xml>", b"\xff", b'{"object": "page", "entry": []}'])
def test_signed_body_that_is_no_webhook_is_refused(raw: bytes) -> None:
    refused(post(raw), 400, "bad_request")


def test_whatsapp_large_body_is_refused() -> None:
    refused(post(webhook() + b" " * MAX_BYTES_BULK), 413, "too_large")


def test_whatsapp_other_method_is_refused() -> None:
    assert Client().put(URL).status_code == 405


def handshake(**query: str) -> Any:
    default = {"mode": "subscribe", "verify_token": TOKEN, "challenge": "1158201444"}
    named = {f"hub.{name}": value for name, value in (default | query).items()}
    return Client(raise_request_exception=False).get(URL, named, headers={"Accept": "*/*"})


def test_handshake_returns_the_challenge_as_plain_text() -> None:
    answer = handshake()
    assert (answer.status_code, answer.content) == (200, b"1158201444")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_refused_handshake_repeats_no_value() -> None:
    answer = handshake(challenge="<script>alert(1)</script>")
    refused(answer, code="invalid_verify_token")
    assert "script" not in json.dumps(answer.json())


def test_handshake_without_configured_token_is_refused(settings: Any) -> None:
    settings.WHATSAPP_VERIFY_TOKEN = ""
    refused(handshake(verify_token=""), code="invalid_verify_token")


@each_case("given", ["sha256=\xe9", "\xe9", "sha256=", "", "=" * 5_000])
def test_odd_signature_is_refused(given: str) -> None:
    """https://github.com/mishrasanjeev/grantex/pull/892"""
    refused(post(webhook(), headers={"X-Hub-Signature-256": given}))
    name = "X-Twilio-Email-Event-Webhook-Signature"
    answer = Client().post(
        "/webhooks/sendgrid", b"[]", content_type="application/json", headers={name: given}
    )
    refused(answer)


def notify_by_sns(raw: bytes) -> Any:
    """Post a notification as SNS does."""
    return Client(raise_request_exception=False).post(
        "/webhooks/ses",
        raw,
        content_type="text/plain; charset=UTF-8",
        headers={"x-amz-sns-message-type": "Notification"},
    )


@pytest.fixture
def sns(settings: Any) -> Iterator[aws.FakeSns]:
    """Give SES's provider the certificate of the tests."""
    settings.SES_TOPICS = (aws.TOPIC,)
    sns = aws.FakeSns()
    provider: Any = get_provider("ses")
    object.__setattr__(provider.receiver, "call", sns)
    yield sns
    registry.clear()


def test_bounce_by_sns_fails_the_delivery_and_suppresses_the_address(
    db: None, sns: aws.FakeSns
) -> None:
    document = factories.settled(DeliveryStatus.SENT, provider="ses")
    header = {"name": "X-Notify-Reference", "value": f"{document['_id']}.email.1"}
    bounce = ses.bounce("Permanent", "General", "550 5.1.1 user unknown")
    bounce["mail"]["headers"] = [header]
    raw = aws.envelope(bounce, at=utc_now())
    for _ in range(2):
        answer = notify_by_sns(raw)
        assert (answer.status_code, answer.content) == (200, b"")
    stored = factories.delivery(factories.read(document["_id"]))
    assert (stored["status"], stored["failure_code"]) == ("failed", "bounced")
    assert collection("suppressions").find_one({"address": "ada@example.com"})
    assert [entry["provider"] for entry in collection("webhook_log").find()] == ["ses", "ses"]


def test_notification_that_cannot_be_verified_now_is_asked_for_again(
    db: None, sns: aws.FakeSns
) -> None:
    """SNS repeats a notification after 5xx, and never after 403."""
    document = factories.settled(DeliveryStatus.SENT)
    raw = aws.envelope(ses.event("Delivery"), at=utc_now())
    sns.answer = HttpResponse(status=500, headers={}, body=b"")
    answer = notify_by_sns(raw)
    assert (answer.status_code, answer.json()["code"]) == (503, "unverified_webhook")
    assert status_of(document) == "sent"
    sns.answer = None
    assert notify_by_sns(raw).status_code == 200


def test_notification_of_another_topic_or_key_is_refused(db: None, sns: aws.FakeSns) -> None:
    for fields in ({"TopicArn": f"{aws.TOPIC}-other"}, {"key": "another"}):
        refused(notify_by_sns(aws.envelope(ses.event(), at=utc_now(), **fields)))
