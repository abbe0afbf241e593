"""What SendGrid reports: signed, in any order, any number of times."""

import base64
import itertools
import json
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client

from api.http.body import MAX_BYTES_BULK
from domain.states import DeliveryStatus
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.fakes.mongo_failpoints import LOST_ANSWER, failing

KEY = ec.generate_private_key(ec.SECP256R1())
PUBLIC_KEY = base64.b64encode(
    KEY.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
).decode()


@pytest.fixture(autouse=True)
def _public_key(settings: Any, db: None) -> None:
    settings.SENDGRID_WEBHOOK_PUBLIC_KEY = PUBLIC_KEY


def call(
    events: Any, *, key: Any = KEY, age: int = 0, headers: dict[str, str] | None = None
) -> Any:
    raw = events if isinstance(events, bytes) else json.dumps(events).encode()
    timestamp = str(int(time.time()) - age)
    signature = base64.b64encode(
        key.sign(timestamp.encode() + raw, ec.ECDSA(hashes.SHA256()))
    ).decode()
    signed = {
        "X-Twilio-Email-Event-Webhook-Signature": signature,
        "X-Twilio-Email-Event-Webhook-Timestamp": timestamp,
    } | (headers or {})
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


def test_a_delivered_event_is_applied(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    answer = call([event("processed", document), event("delivered", document)])
    assert answer.status_code == 200
    assert answer.json() == {"events": 2, "changed": 1}
    assert status_of(document) == "delivered"


def test_a_bounce_fails_the_delivery_and_suppresses_the_address(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    call([event("bounce", document, type="bounce", reason="550 no such user ada@example.com")])
    stored = factories.delivery(factories.read(document["_id"]))
    assert (stored["status"], stored["failure_code"]) == ("failed", "bounced")
    assert "ada@example.com" not in stored["failure_reason"]
    suppression = collection("suppressions").find_one({"address": "ada@example.com"})
    assert suppression is not None
    assert suppression["reason"] == "hard_bounce"


def test_a_block_does_not_suppress_the_address(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    call([event("bounce", document, type="blocked")])
    assert status_of(document) == "failed"
    assert collection("suppressions").count_documents({}) == 0


def test_a_complaint_suppresses_and_leaves_the_delivery(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    call([event("delivered", document), event("spamreport", document)])
    assert status_of(document) == "delivered"
    assert collection("suppressions").count_documents({"reason": "complaint"}) == 1


def test_an_opened_mail_is_not_a_read_one(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    call([event("delivered", document), event("open", document), event("click", document)])
    assert status_of(document) == "delivered"


def test_an_unknown_outcome_is_settled_by_its_receipt(db: None) -> None:
    document = factories.settled(DeliveryStatus.UNKNOWN)
    call([event("delivered", document)])
    assert status_of(document) == "delivered"
    assert "due_at" not in factories.read(document["_id"])


def test_an_early_receipt_wins_over_our_own_write(db: None) -> None:
    one = factories.started()
    call([event("delivered", {"_id": one.notification_id})])
    settlement = factories.settlement(one, DeliveryStatus.SENT)
    assert factories.store.settle([settlement], now=factories.NOON) == 0
    assert status_of({"_id": one.notification_id}) == "delivered"


@pytest.mark.parametrize(
    "order", list(itertools.permutations(["processed", "delivered", "bounce"]))
)
def test_any_order_and_any_number_of_times_ends_the_same(db: None, order: tuple[str, ...]) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    for _ in range(3):
        for kind in order:
            assert call([event(kind, document)] * 2).status_code == 200
    assert status_of(document) == "failed"
    assert len(factories.read(document["_id"])["error_history"]) == 1


def test_an_event_of_nobody_is_logged(db: None) -> None:
    answer = call([event("delivered", {"_id": "f" * 24}) | {"reference": "not-ours"}])
    assert answer.status_code == 200
    log = collection("webhook_log").find_one({})
    assert log is not None
    assert (log["event_count"], log["unmatched_count"]) == (1, 1)


def test_an_event_of_a_kind_nobody_knows_is_passed_over(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    assert call([event("future-kind", document)]).status_code == 200


def test_events_that_no_majority_is_known_to_have_are_asked_for_again(db: None) -> None:
    document = factories.settled(DeliveryStatus.SENT)
    events = [event("processed", document), event("delivered", document)]
    with failing("insert", "provider_events", LOST_ANSWER):
        answer = call(events)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert call(events).status_code == 200
    assert status_of(document) == "delivered"


class TestRefused:
    """Nothing unsigned is applied."""

    def refused(self, answer: Any) -> None:
        assert answer.status_code == 403
        assert answer.json()["code"] == "invalid_signature"
        assert collection("webhook_log").count_documents({}) == 0

    def test_a_signature_by_another_key(self, db: None) -> None:
        document = factories.settled(DeliveryStatus.SENT)
        other = ec.generate_private_key(ec.SECP256R1())
        self.refused(call([event("delivered", document)], key=other))
        assert status_of(document) == "sent"

    @pytest.mark.parametrize("signature", ["", "x", "ü", "AAAA", "A" * 96])
    def test_no_signature_or_nonsense(self, db: None, signature: str) -> None:
        headers = {"X-Twilio-Email-Event-Webhook-Signature": signature}
        self.refused(call([], headers=headers))

    def test_one_that_is_larger_than_any_is(self, db: None) -> None:
        answer = call(b"[" + b" " * MAX_BYTES_BULK + b"]")
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")

    @pytest.mark.parametrize("timestamp", ["", "now", "12345", "\u0660" * 10, "99999999999"])
    def test_no_timestamp_or_nonsense(self, db: None, timestamp: str) -> None:
        headers = {"X-Twilio-Email-Event-Webhook-Timestamp": timestamp}
        self.refused(call([], headers=headers))

    def test_an_old_one(self, db: None) -> None:
        self.refused(call([], age=601))

    def test_without_a_key_of_ours(self, db: None, settings: Any) -> None:
        settings.SENDGRID_WEBHOOK_PUBLIC_KEY = ""
        self.refused(call([]))

    def test_a_body_changed_on_the_way(self, db: None) -> None:
        document = factories.settled(DeliveryStatus.SENT)
        raw = json.dumps([event("delivered", document)]).encode()
        timestamp = str(int(time.time()))
        signature = base64.b64encode(
            KEY.sign(timestamp.encode() + raw, ec.ECDSA(hashes.SHA256()))
        ).decode()
        answer = Client().post(
            "/webhooks/sendgrid",
            raw.replace(b"delivered", b"processed"),
            content_type="application/json",
            headers={
                "X-Twilio-Email-Event-Webhook-Signature": signature,
                "X-Twilio-Email-Event-Webhook-Timestamp": timestamp,
            },
        )
        self.refused(answer)


@pytest.mark.parametrize("raw", [b"", b"{}", b"[1]", b'[{"event": 5}]', b"<xml>", b'["x"]'])
def test_a_signed_body_that_is_no_list_of_events_is_refused(db: None, raw: bytes) -> None:
    assert call(raw).status_code == 400
