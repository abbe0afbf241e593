"""Sends with a test key leave live data unchanged.

The sandbox signs its webhooks with live keys here, as in the local stack, which is the worst case.
"""

import re
from typing import Any

import pytest
import urllib3
from bson import ObjectId

from delivery import dispatcher
from domain.states import Channel
from domain.time import utc_now
from notifications import callback_events
from notifications.broadcasts import runner
from notifications.queueing import backlog
from notifications.receipts import processor
from notifyproject.db.collections import collection
from sandbox.server import Sandbox
from tests.support.clients.api import App, new_app
from tests.support.clients.inbox import InboxUser
from tests.support.clients.live_data import PEOPLE, Untouched, seed
from tests.support.waiting import until

KEYS = ("bulk-1", "broadcast-1")
WORDS = {"subject": "Spring", "body": "It is spring."}
EVERYWHERE = ["email", "push", "whatsapp", "in_app"]


def request_body(user_id: str, type_: str, **fields: Any) -> dict[str, Any]:
    """Return a request on every channel."""
    asked = {"user_id": user_id, "type": type_, "channels": EVERYWHERE, "content": WORDS}
    return {**asked, **fields}


@pytest.fixture
def live(db: None, broker: Any, provider: Sandbox, settings: Any) -> App:
    """Return a live client with recipients, devices, and other data."""
    backlog.clear()
    settings.SANDBOX_URL = provider.url
    settings.SANDBOX_FCM_CREDENTIALS = str(provider.service_account)
    app = new_app("live")
    seed(app)
    callback_events.publish_events(now=utc_now())
    return app


def send_everything(app: App) -> None:
    """Send through every endpoint and deliver all of it."""
    for user_id in PEOPLE:
        for type_ in ("marketing", "transactional"):
            asked = request_body(user_id, type_, entity_id="order-1")
            assert app.post("/notifications", asked).status_code == 202
    many = {"notifications": [request_body(user_id, "alert") for user_id in PEOPLE]}
    answer = app.post("/notifications/bulk", many, headers={"Idempotency-Key": KEYS[0]})
    assert answer.json()["rejected"] == 0
    broadcast = {"type": "marketing", "audience": {"topic": "news"}, "content": WORDS}
    answer = app.post("/broadcasts", broadcast, headers={"Idempotency-Key": KEYS[1]})
    runner.run_page(ObjectId(answer.json()["id"]))
    sent = collection("notifications").find({"client_id": app.id}, {"_id": 1})
    ids = [one["_id"] for one in sent]
    assert len(ids) >= 4 * len(PEOPLE)
    for channel in Channel:
        dispatcher.dispatch(ids, channel=channel)


def await_receipts(provider: Sandbox) -> None:
    """Wait for all webhooks of the sandbox, and apply the early receipts."""
    http = urllib3.PoolManager()

    def is_quiet() -> bool:
        url = f"{provider.url}/_sandbox/messages"
        messages = http.request("GET", url, fields={"limit": "1000"}).json()["results"]
        states = {event["state"] for one in messages for event in one["events"]}
        return bool(states) and states <= {"sent", "failed"}

    until(is_quiet)
    processor.apply_early_receipts(now=utc_now())
    callback_events.publish_events(now=utc_now())


def links(provider: Sandbox) -> list[str]:
    """Return the paths of all unsubscribe links."""
    http = urllib3.PoolManager()
    found = http.request("GET", f"{provider.url}/_sandbox/requests", fields={"limit": "1000"})
    return sorted(set(re.findall(r"/u/[A-Za-z0-9_-]{40,}", found.data.decode())))


def test_test_sends_and_receipts_leave_live_data_unchanged(live: App, provider: Sandbox) -> None:
    tester = new_app("tester", is_test=True)
    untouched = Untouched(tester=tester, keys=KEYS)
    send_everything(tester)
    await_receipts(provider)
    untouched.check()
    outcomes = collection("notifications").distinct("delivery.status", {"client_id": tester.id})
    assert {"failed", "delivered", "read"} & set(outcomes) >= {"failed", "delivered"}
    assert collection("notifications").count_documents({"is_test": {"$ne": True}}) > 0

    pushes = {"client_id": tester.id, "delivery.accepted_targets.0": {"$exists": True}}
    pushed = list(collection("notifications").find(pushes))
    assert pushed
    for document in pushed:
        for delivery in document["delivery"]:
            for device in delivery["accepted_targets"]:
                body = {"notification_id": str(document["_id"]), "event": "opened"}
                assert tester.post(f"/devices/{device}/receipts", body).status_code == 204
    untouched.check()

    for user_id in PEOPLE:
        reader = InboxUser(app=tester, user_id=user_id)
        assert reader.ids()
        reader.post("/read-all")
        assert tester.post(f"/recipients/{user_id}/notifications/read-all").status_code == 200
    untouched.check()

    found = links(provider)
    assert found
    for path in found:
        for step in ("", "/undo"):
            assert live.http.post(f"{path}{step}").status_code == 200
            untouched.check()


def test_live_sends_change_suppressions_and_devices(live: App, provider: Sandbox) -> None:
    """The same sends with a live key do change live data."""
    before = collection("suppressions").count_documents({})
    send_everything(live)
    await_receipts(provider)
    assert collection("suppressions").count_documents({}) > before
    assert collection("devices").count_documents({"is_active": False}) > 0


def test_test_does_not_reserve_entities_and_idempotency_keys(live: App, provider: Sandbox) -> None:
    tester = new_app("tester", is_test=True)
    asked = request_body("ada", "alert", entity_id="order-2")
    for app in (tester, live):
        answer = app.post("/notifications", asked, headers={"Idempotency-Key": "key"})
        assert answer.status_code == 202
        assert "Idempotent-Replayed" not in answer
        assert answer.json()["is_test"] is (app is tester)
