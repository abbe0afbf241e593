"""The test outbox: what a test key sent."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from access.models import Scope
from delivery import pipeline
from delivery.runtime import SendingRuntime
from devices import registration
from devices.models import Platform
from devices.registration import Registration
from domain.channels import Channel
from domain.time import utc_now
from notifications.store import removal
from notifyproject.db.collections import collection
from privacy import erasure
from tests.support.clients.api import App, new_app, pages, pointers
from tests.support.factories import notifications as factories
from tests.support.fakes import provider as scripted
from tests.support.fakes.provider import ScriptedProvider

Recorded = list[dict[str, Any]]
MFA = {"type": "mfa_code", "data": {"code": "493817", "expiry_minutes": 10}}


@pytest.fixture
def tester(db: None, broker: Any) -> App:
    return new_app("tester", is_test=True)


def send(*ids: str, channel: str = "email") -> None:
    pipeline.dispatch(SendingRuntime(), [ObjectId(one) for one in ids], channel=Channel(channel))


def outbox(app: App, **filters: Any) -> Recorded:
    results: Recorded = app.get("/test/outbox", **filters).json()["results"]
    return results


@pytest.mark.usefixtures("shipped_types", "fcm")
def test_email_is_there_as_rendered_once_sent(tester: App) -> None:
    sent = tester.notify(user_id="test-ada", channels=["email"]).json()["id"]
    assert outbox(tester) == []
    send(sent)
    [message] = outbox(tester)
    assert (message["notification_id"], message["channel"]) == (sent, "email")
    assert (message["user_id"], message["address"]) == ("test-ada", "ada@example.com")
    assert message["subject"]
    assert "49.90" in message["text"]
    assert "49.90" in message["html"]
    delivery = tester.get(f"/notifications/{sent}").json()["delivery"][0]
    assert message["sent_at"] <= delivery["sent_at"]


@pytest.mark.usefixtures("shipped_types")
def test_failed_send_is_not_there(tester: App, fcm: ScriptedProvider) -> None:
    fcm.always(scripted.refused)
    send(tester.notify(channels=["email"]).json()["id"])
    fcm.always(scripted.timeout)
    send(tester.notify(channels=["email"]).json()["id"])
    assert outbox(tester) == []


@pytest.mark.usefixtures("shipped_types", "fcm")
def test_inbox_message_is_there_at_once_and_once(tester: App) -> None:
    asked = {"type": "payment_confirmed", "user_id": "test-ada", "channels": ["in_app"]}
    asked |= {"data": {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}}
    for _ in range(2):
        tester.post("/notifications", asked, headers={"Idempotency-Key": "one"})
    [message] = outbox(tester)
    assert (message["channel"], message["address"]) == ("in_app", "test-ada")
    assert "49.90" in message["text"]


@pytest.mark.usefixtures("shipped_types", "fcm")
def test_push_names_the_device_and_not_its_token(tester: App) -> None:
    new = Registration(user_id="test-ada", token="a-token-of-adas", platform=Platform.ANDROID)
    device = registration.register(new, now=utc_now())["_id"]
    sent = tester.notify(user_id="test-ada", channels=["push"], recipient=...)
    send(sent.json()["id"], channel="push")
    [message] = outbox(tester)
    assert message["address"] == device
    assert "a-token-of-adas" not in str(message)


@pytest.mark.usefixtures("shipped_types", "fcm")
def test_sensitive_values_are_masked(tester: App) -> None:
    send(tester.notify(**MFA, channels=["email"]).json()["id"])
    [message] = outbox(tester)
    assert "493817" not in str(list(collection("test_outbox").find()))
    assert "•" in message["text"] or "*" in message["text"]


@pytest.mark.usefixtures("shipped_types", "fcm")
def test_own_text_of_a_sensitive_type_is_masked_as_a_whole(tester: App) -> None:
    content = {"subject": "A code", "body": "Use 493817 now"}
    send(tester.notify(**MFA, channels=["email"], content=content).json()["id"])
    [message] = outbox(tester)
    assert "Use" not in message["text"]
    assert message["subject"] != "A code"


@pytest.mark.usefixtures("fcm", "shipped_types")
def test_list_is_filtered_and_paged(tester: App) -> None:
    for user_id in ("test-ada", "test-bob", "test-ada"):
        send(tester.notify(user_id=user_id, channels=["email"]).json()["id"])
    assert len(outbox(tester)) == 3
    assert len(outbox(tester, user_id="test-ada", type="payment_confirmed", channel="email")) == 2
    assert outbox(tester, channel="sms") == []
    assert [len(page) for page in pages(tester.get, "/test/outbox", limit=2)] == [2, 1]
    assert pointers(tester.get("/test/outbox", channel="pigeon")) == {"/channel": "unknown_channel"}


@pytest.mark.usefixtures("fcm", "shipped_types")
def test_outbox_of_a_client_is_its_own(tester: App) -> None:
    other = new_app("other", is_test=True)
    for app in (tester, other):
        send(app.notify(channels=["email"]).json()["id"])
    assert tester.delete("/test/outbox").status_code == 204
    assert outbox(tester) == []
    assert len(outbox(other)) == 1


@pytest.mark.usefixtures("fcm", "shipped_types")
def test_live_message_is_not_kept(app: App) -> None:
    send(app.notify(channels=["email"]).json()["id"])
    assert collection("test_outbox").count_documents({}) == 0
    for answer in (app.get("/test/outbox"), app.delete("/test/outbox")):
        assert (answer.status_code, answer.json()["code"]) == (403, "live_key")


@pytest.mark.usefixtures("fcm", "shipped_types")
def test_address_needs_the_scope_of_recipients(db: None) -> None:
    reader = new_app("reader", Scope.NOTIFICATIONS_READ, Scope.NOTIFICATIONS_WRITE, is_test=True)
    send(reader.notify(channels=["email"]).json()["id"])
    [message] = outbox(reader)
    assert message["address"] is None


def erased(notification_id: ObjectId) -> None:
    erasure.erase("ada", now=utc_now())


def without_content(notification_id: ObjectId) -> None:
    later = utc_now() + timedelta(days=1)
    removal.remove_content(ids=[notification_id], before=later, now=later)


def purged(notification_id: ObjectId) -> None:
    removal.purge(ids=[notification_id], before=utc_now() + timedelta(days=1))


@pytest.mark.usefixtures("fcm", "db")
@pytest.mark.parametrize("remove", [erased, without_content, purged])
def test_message_goes_with_its_notification(remove: Callable[[ObjectId], None]) -> None:
    document = factories.accepted(is_test=True)
    send(str(document["_id"]))
    assert collection("test_outbox").count_documents({}) == 1
    remove(document["_id"])
    assert collection("test_outbox").count_documents({}) == 0
