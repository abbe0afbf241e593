"""Sends of a client in test mode go to the sandbox and don't change live data.

In the worst case, as here and in the local stack, the sandbox signs its webhooks with live keys.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import urllib3
from bson import ObjectId

from delivery import circuit_breaker, pipeline
from delivery.runtime import SendingRuntime
from devices import registration
from devices.models import Platform
from devices.registration import Registration
from domain.channels import Channel
from domain.time import utc_now
from notifications import callback_events
from notifications.broadcasts import runner
from notifications.queueing import backlog
from notifications.receipts import processor
from notifyproject.db.collections import collection
from providers.registry import providers_for
from sandbox.assembly import Sandbox
from tests.support.clients.api import App, new_app, when
from tests.support.clients.inbox import InboxUser
from tests.support.clients.live_data import PEOPLE, Untouched, seed
from tests.support.factories import notifications as factories
from tests.support.fakes import socket_server
from tests.support.waiting import until

KEYS = ("bulk-1", "broadcast-1")
WORDS = {"subject": "Spring", "body": "It is spring."}
EVERYWHERE = ["email", "push", "whatsapp", "in_app"]
UNREACHABLE = "http://127.0.0.1:1"
Received = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def client_in_test_mode(db: None, broker: Any) -> App:
    return new_app("client_in_test_mode", is_test=True)


@pytest.fixture
def sandboxed(provider: Sandbox, settings: Any) -> Any:
    """Use the sandbox for tests, and unreachable addresses for everything else."""
    settings.SANDBOX_URL = provider.url
    settings.SANDBOX_FCM_CREDENTIALS = str(provider.service_account)
    settings.SENDGRID_URL = settings.FCM_URL = settings.WHATSAPP_URL = UNREACHABLE
    return settings


def stored() -> Mapping[str, int]:
    """Return the counts of suppressions and soft bounces."""
    names = ("suppressions", "soft_bounces")
    return {name: collection(name).count_documents({}) for name in names}


@pytest.mark.usefixtures("worker", "sandboxed")
@pytest.mark.parametrize(
    ("address", "status"), [("ada@example.com", "delivered"), ("bounce@example.com", "failed")]
)
def test_mail_goes_to_the_sandbox_and_gets_its_receipt(
    client_in_test_mode: App, received: Received, address: str, status: str
) -> None:
    answer = client_in_test_mode.notify(recipient={"email": address})
    notification = when(client_in_test_mode, answer, "delivered", "failed")
    assert notification["status"] == status
    assert notification["delivery"][0]["provider"] == "sandbox-sendgrid"
    assert len(received(address)) == 1
    assert set(stored().values()) == {0}


@pytest.mark.usefixtures("worker", "sandboxed")
def test_push_and_whatsapp_go_to_the_sandbox(client_in_test_mode: App, received: Received) -> None:
    new = Registration(user_id="ada", token="unregistered-1", platform=Platform.ANDROID)
    device = registration.register(new, now=utc_now())["_id"]
    answer = client_in_test_mode.notify(
        type="transactional",
        user_id="ada",
        recipient={"phone": "+447700900026"},
        channels=["push", "whatsapp"],
        content={"subject": "Hello", "body": "Hello Ada"},
        data={},
    )
    notification = when(client_in_test_mode, answer, "failed")
    codes = {delivery["channel"]: delivery["failure_code"] for delivery in notification["delivery"]}
    assert codes == {"push": "invalid_recipient", "whatsapp": "invalid_recipient"}
    assert len(received("unregistered-1")) == 1
    known = collection("devices").find_one({"_id": device})
    assert known is not None
    assert known["is_active"]
    assert set(stored().values()) == {0}


@pytest.mark.usefixtures("sandboxed")
def test_mixed_batch_is_split_by_mode(received: Received, settings: Any) -> None:
    handler = socket_server.KeepAlive(socket_server.response(202, b"", "X-Message-Id: real"))
    with socket_server.serving(handler) as real:
        settings.SENDGRID_URL = real.url
        documents = [
            factories.accepted(created_at=utc_now(), is_test=is_test)
            for is_test in (True, False, True)
        ]
        pipeline.dispatch(
            SendingRuntime(), [document["_id"] for document in documents], channel=Channel.EMAIL
        )
    providers = [
        factories.delivery(factories.read(document["_id"]))["provider"] for document in documents
    ]
    assert providers == ["sandbox-sendgrid", "sendgrid", "sandbox-sendgrid"]
    assert len(handler.requests) == 1
    assert len(received("ada@example.com")) == 2


@pytest.mark.usefixtures("sandboxed", "broker", "db")
def test_unavailable_sandbox_opens_no_live_circuit(settings: Any) -> None:
    settings.SANDBOX_URL = UNREACHABLE
    now = utc_now()
    ids = [factories.accepted(created_at=now, is_test=True)["_id"] for _ in range(25)]
    for notification_id in ids:
        pipeline.dispatch(SendingRuntime(), [notification_id], channel=Channel.EMAIL)
    (test,), (real,) = (providers_for(Channel.EMAIL, test=is_test) for is_test in (True, False))
    permissions = circuit_breaker.request_permissions([test.account, real.account], now=utc_now())
    assert isinstance(permissions[test.account], circuit_breaker.Blocked)
    assert not isinstance(
        permissions[real.account], circuit_breaker.Blocked | circuit_breaker.Probe
    )


@pytest.mark.usefixtures("broker", "db")
@pytest.mark.parametrize("channel", [Channel.EMAIL, Channel.WHATSAPP])
def test_delivery_fails_without_a_sandbox(settings: Any, channel: Channel) -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(handler) as real:
        settings.SANDBOX_URL = ""
        settings.SENDGRID_URL = settings.WHATSAPP_URL = real.url
        settings.WHATSAPP_TOKEN, settings.WHATSAPP_PHONE_NUMBER_ID = "EAAreal", "1" * 15
        document = factories.accepted(created_at=utc_now(), channels=(channel,), is_test=True)
        pipeline.dispatch(SendingRuntime(), [document["_id"]], channel=channel)
    delivery = factories.delivery(factories.read(document["_id"]), channel)
    assert (delivery["status"], delivery["failure_code"]) == ("failed", "channel_unavailable")
    reason = f"Test notification, but no sandbox is configured for {channel}."
    assert delivery["failure_reason"] == reason
    assert handler.requests == []
    assert factories.attempts(document["_id"]) == []


def request_body(user_id: str, type_: str, **fields: Any) -> dict[str, Any]:
    """Return a request for a notification on every channel."""
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
    ids = [document["_id"] for document in sent]
    assert len(ids) >= 4 * len(PEOPLE)
    for channel in Channel:
        pipeline.dispatch(SendingRuntime(), ids, channel=channel)


def await_receipts(provider: Sandbox) -> None:
    """Wait for all webhooks of the sandbox, and apply the early receipts."""
    http = urllib3.PoolManager()

    def is_quiet() -> bool:
        url = f"{provider.url}/_sandbox/messages"
        messages = http.request("GET", url, fields={"limit": "1000"}).json()["results"]
        states = {event["state"] for message in messages for event in message["events"]}
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
    """The same sends with a live key change live data, so the test above can fail."""
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
