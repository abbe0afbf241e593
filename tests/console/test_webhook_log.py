"""Provider webhooks in the console, and replaying them."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.receipts import webhook_log
from notifyproject.db.collections import collection
from providers.sendgrid import webhooks
from tests.support.clients.console import listed
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/webhooklog/"
S = DeliveryStatus


def webhook(provider: str = "sendgrid", body: str = "[]", **fields: Any) -> Any:
    counts = {"event_count": 1, "applied_count": 0, "unmatched_count": 0}
    entry = {"provider": provider, "received_at": utc_now(), "body": body, **counts, **fields}
    return collection("webhook_log").insert_one(entry).inserted_id


def bounce(document: Any) -> str:
    event = {
        "event": "bounce",
        "email": "ada@example.com",
        "reason": "550 no such user",
        "timestamp": int((utc_now() - timedelta(seconds=5)).timestamp()),
        "sg_event_id": "event-1",
        "sg_message_id": "sg-1.recvd",
        "reference": f"{document['_id']}.email.1",
    }
    return json.dumps([event])


def replay(client: Client, log_id: Any) -> str:
    return client.post(f"{LIST}{log_id}/replay/", follow=True).content.decode()


def test_unfinished_webhook_is_replayed(console: Client) -> None:
    now = utc_now()
    document = factories.settled(S.SENT, at=now, created_at=now)
    log_id = webhook(body=bounce(document))
    assert "Replayed 1 event: 1 applied." in replay(console, log_id)
    assert factories.delivery(factories.read(document["_id"]))["failure_code"] == "bounced"
    entry = collection("webhook_log").find_one({"_id": log_id})
    assert entry["applied_count"] == 1
    assert entry["processed_at"] is not None
    (line,) = LogEntry.objects.all()
    assert line.change_message == "Replayed: 1 of 1 events applied."


def test_applied_events_are_not_repeated(console: Client) -> None:
    now = utc_now()
    document = factories.settled(S.SENT, at=now, created_at=now)
    body = bounce(document)
    events = webhooks.parse_webhook(body.encode()).receipts
    webhook_log.process_webhook(events, provider="sendgrid", body=body, now=now)
    before = factories.read(document["_id"])
    (entry,) = collection("webhook_log").find()
    assert "Replayed 1 event: 0 applied." in replay(console, entry["_id"])
    assert factories.read(document["_id"]) == before


def test_selected_webhooks_are_replayed(console: Client) -> None:
    ids = [str(webhook()), str(webhook(body="nonsense")), str(webhook(provider="pigeon"))]
    action = {"action": "replay_selected", "_selected_action": ids}
    shown = console.post(LIST, action, follow=True).content.decode()
    assert "The stored webhook can&#x27;t be parsed." in shown
    assert "No parser for webhooks of pigeon." in shown
    assert LogEntry.objects.count() == 1


def test_whatsapp_webhook_is_replayed(console: Client) -> None:
    body = '{"object":"whatsapp_business_account","entry":[]}'
    log_id = webhook(provider="whatsapp", body=body, event_count=0)
    replay(console, log_id)
    assert collection("webhook_log").find_one({"_id": log_id})["processed_at"] is not None


def test_webhooks_are_filtered_by_provider_and_outcome(console: Client) -> None:
    now = utc_now()
    unfinished = webhook()
    unmatched = webhook(unmatched_count=1, processed_at=now)
    applied = webhook(provider="whatsapp", applied_count=1, processed_at=now)
    assert listed(console, f"{LIST}?outcome=unfinished") == [unfinished]
    assert listed(console, f"{LIST}?outcome=unmatched") == [unmatched]
    assert listed(console, f"{LIST}?outcome=applied") == [applied]
    assert listed(console, f"{LIST}?outcome=idle") == [unmatched]
    assert listed(console, f"{LIST}?provider=whatsapp") == [applied]


def test_webhook_is_found_by_its_message_and_address(console: Client) -> None:
    now = utc_now()
    document = factories.settled(S.SENT, at=now, created_at=now, entity_id="order-7")
    known, unknown = bounce(document), json.loads(bounce(document))
    del unknown[0]["reference"]
    unknown[0] |= {"sg_message_id": "lost-1.recvd", "email": "bob@example.com"}
    for body in (known, json.dumps(unknown), "[]"):
        events = webhooks.parse_webhook(body.encode()).receipts
        webhook_log.process_webhook(events, provider="sendgrid", body=body, now=now)
    first, second, _ = [row["_id"] for row in collection("webhook_log").find().sort("_id", 1)]
    for text in (str(document["_id"]), "order-7", "ada@example.com", "Ada@Example.com"):
        assert listed(console, f"{LIST}?q={text}") == [first], text
    for text in ("lost-1", "bob@example.com"):
        assert listed(console, f"{LIST}?q={text}") == [second], text
    assert listed(console, f"{LIST}?q=nothing") == []


def test_unknown_webhook_is_reported(console: Client) -> None:
    assert "Webhook not found" in replay(console, "0" * 24)
    assert "Webhook not found" in replay(console, "nonsense")


def test_replay_is_offered_with_its_permission(console: Client, support: Client) -> None:
    url = f"{LIST}{webhook()}/change/"
    assert "Replay" in console.get(url).content.decode()
    assert "Replay" not in support.get(url).content.decode()


def test_deeply_nested_body_is_shown_as_received(console: Client) -> None:
    log_id = webhook(body="[" * 50_000)
    assert "[" * 1_000 in console.get(f"{LIST}{log_id}/change/").content.decode()
