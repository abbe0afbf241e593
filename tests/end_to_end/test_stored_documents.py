"""The service reads, claims, sends, and shows documents that version 0.1 wrote.

``data/stored_documents.jsonl`` is a dump of a local stack: examples, notifications in every state,
and due work without a claim. Its first line has the time of the dump and the keys of that stack.
"""

import base64
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import json_util
from django.test import Client

from access.clients import registry
from delivery import pipeline, sweeper, worker
from domain.states import AttemptStatus, BulkStage, Channel, DeliveryStatus
from domain.time import utc_now
from notifications import callback_events, queries, store
from notifications.bulk import runner as bulk_runner
from notifyproject.db.collections import collection
from tests.support.clients.api import App
from tests.support.fakes.provider import ScriptedProvider

DUMP = Path(__file__).parent / "data" / "stored_documents.jsonl"
S = DeliveryStatus
PAGES = (
    *("notifications/notification", "notifications/failednotification"),
    *("notifications/waitingnotification", "notifications/broadcast"),
    *("notifications/bulkoperation", "notifications/deliveryattempt"),
    *("notifications/notificationtype", "notifications/webhooklog"),
    *("recipients/recipient", "recipients/suppression", "devices/device"),
    *("callbacks/callback", "callbacks/callbackmessage", "access/apiclient"),
)


def parsed(line: str) -> Any:
    return json_util.loads(line, json_options=json_util.JSONOptions(tz_aware=True))


@pytest.fixture
def dump(db: None, broker: Any, settings: Any) -> Iterator[Mapping[str, Any]]:
    """Store the dumped documents. Return the first line of the dump."""
    head, *lines = DUMP.read_text().splitlines()
    found: dict[str, list[Any]] = {}
    for line in map(parsed, lines):
        found.setdefault(line["collection"], []).append(line["document"])
    for name, documents in found.items():
        collection(name).delete_many({})
        collection(name).insert_many(documents)
    about = parsed(head)
    key_id, _, key = about["field_encryption_keys"].partition(":")
    settings.FIELD_ENCRYPTION_KEYS = {key_id: base64.b64decode(key)}
    settings.INBOX_SIGNING_KEY = about["inbox_signing_key"]
    return about


@pytest.fixture
def now(dump: Mapping[str, datetime]) -> datetime:
    return dump["at"]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> ScriptedProvider:
    scripted = ScriptedProvider(name="sendgrid")
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (scripted,))
    return scripted


def statuses(channel: Channel | None = None) -> list[str]:
    return [
        delivery["status"]
        for document in collection("notifications").find()
        for delivery in document["delivery"]
        if channel in (None, delivery["channel"])
    ]


@pytest.fixture
def app(dump: Mapping[str, Any]) -> App:
    """Return the dumped client with a new key."""
    (client,) = collection("api_clients").find()
    key = registry.issue_key(client_id=client["_id"], now=utc_now())
    return App(id=client["_id"], key=key.text)


def test_every_notification_is_marked_read_and_unread(app: App) -> None:
    ids = [str(document["_id"]) for document in collection("notifications").find()]
    for notification_id in ids:
        for action, is_read in (("read", True), ("unread", False), ("read", True)):
            marked = app.post(f"/notifications/{notification_id}/{action}").json()
            assert (marked["is_read"], marked["read_at"] is not None) == (is_read, is_read)


def test_every_notification_is_deleted(app: App) -> None:
    for document in collection("notifications").find():
        assert app.delete(f"/notifications/{document['_id']}").status_code == 204
    assert app.get("/notifications").json()["results"] == []
    assert app.get("/notifications", is_active="false").json()["results"]
    assert S.PENDING not in statuses()


def test_api_answers_every_notification_and_its_attempts(app: App) -> None:
    ids = [str(document["_id"]) for document in collection("notifications").find()]
    listed = app.get("/notifications", limit=100).json()["results"]
    assert sorted(item["id"] for item in listed) == sorted(ids)
    for notification_id in ids:
        shown = app.get(f"/notifications/{notification_id}")
        attempts = app.get(f"/notifications/{notification_id}/attempts")
        assert (shown.status_code, attempts.status_code) == (200, 200)


def test_console_shows_every_list_and_every_notification(
    dump: Mapping[str, Any], console: Client
) -> None:
    for page in PAGES:
        assert console.get(f"/admin/{page}/").status_code == 200, page
    for name, page in (("notifications", "notification"), ("operations", "bulkoperation")):
        for document in collection(name).find():
            url = f"/admin/notifications/{page}/{document['_id']}/change/"
            assert console.get(url).status_code == 200


def test_due_deliveries_are_claimed_and_sent(
    dump: Mapping[str, Any], now: datetime, provider: ScriptedProvider
) -> None:
    at = now + timedelta(seconds=30)
    due = [status for status in statuses() if status == S.PENDING]
    sent = worker.run_inline(clock=lambda: at)
    assert 0 < sent <= len(due) + 4, "due deliveries, and a page of a broadcast"
    assert "ada@example.com" in {request.recipient for request in provider.seen}
    left = [status for status in statuses(Channel.EMAIL) if status == S.PENDING]
    scheduled = collection("notifications").count_documents({"due_at": {"$gt": at}})
    assert len(left) <= scheduled


def test_encrypted_code_is_decrypted_when_sent(
    dump: Mapping[str, Any], now: datetime, provider: ScriptedProvider
) -> None:
    pending = {"type": "mfa_code", "delivery.status": "pending"}
    (document,) = collection("notifications").find(pending)
    assert "482913" not in json_util.dumps(document)
    pipeline.dispatch([document["_id"]], channel=Channel.EMAIL, clock=lambda: now)
    (request,) = provider.seen
    assert "482913" in request.message.text
    assert queries.get(notification_id=document["_id"])["delivery"][0]["status"] == S.SENT


def test_attempt_of_a_lost_worker_becomes_unknown(
    dump: Mapping[str, Any], now: datetime, provider: ScriptedProvider
) -> None:
    (document,) = collection("notifications").find({"delivery.status": "sending"})
    sweeper.recover_expired_leases(now=now + timedelta(minutes=5))
    assert queries.get(notification_id=document["_id"])["delivery"][0]["status"] == S.UNKNOWN
    attempts = collection("delivery_attempts").find({"notification_id": document["_id"]})
    assert [one["status"] for one in attempts] == [AttemptStatus.UNKNOWN]


def test_receipt_finds_its_delivery(dump: Mapping[str, Any], now: datetime) -> None:
    document = collection("notifications").find({"delivery.status": "sent"})[0]
    (delivery, *_) = [d for d in document["delivery"] if d["status"] == S.SENT]
    channel = Channel(delivery["channel"])
    reference = store.AttemptReference(document["_id"], channel, delivery["attempt_count"])
    receipt = store.DeliveryReceipt(
        reference=reference, status=S.DELIVERED, at=now, provider=delivery["provider"]
    )
    store.apply_receipt(receipt, now=now)
    stored = queries.get(notification_id=document["_id"])
    assert {d["channel"]: d["status"] for d in stored["delivery"]}[channel] == S.DELIVERED


def test_running_bulk_operation_completes(dump: Mapping[str, Any], now: datetime) -> None:
    (operation,) = collection("operations").find({"stage": "running"})
    at = now
    for _ in range(10):
        at += timedelta(minutes=2)
        bulk_runner.run(operation["_id"], clock=lambda at=at: at)
    (operation,) = collection("operations").find({"_id": operation["_id"]})
    assert operation["stage"] == BulkStage.COMPLETED


def test_changes_are_published_to_the_callback_endpoint(
    dump: Mapping[str, Any], now: datetime, provider: ScriptedProvider
) -> None:
    before = collection("callback_messages").count_documents({})
    worker.run_inline(clock=lambda: now)
    callback_events.publish_events(now=now)
    assert collection("callback_messages").count_documents({}) > before
