"""Push from the request to the device's receipts, and email as its fallback channel."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from delivery import circuit_breaker
from domain.time import utc_now
from notifications.catalog import types
from notifyproject.db.collections import collection
from tests.support.clients.api import App, when
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("worker")
Received = Callable[[str], list[dict[str, Any]]]
USER = "ada"


def register(app: App, token: str, *, platform: str = "android") -> str:
    answer = app.put("/devices", {"user_id": USER, "device_token": token, "platform": platform})
    assert answer.status_code in (200, 201)
    return str(answer.json()["id"])


def notify(app: App, **fields: Any) -> Any:
    default: dict[str, Any] = {
        "type": "order_shipped",
        "user_id": USER,
        "recipient": ...,
        "channels": ["push"],
        "data": {"order": "1001"},
    }
    return app.notify(**(default | fields))


def report_receipt(app: App, device_id: str, message: dict[str, Any], event: str) -> None:
    body = {"notification_id": message["data"]["notification_id"], "event": event}
    assert app.post(f"/devices/{device_id}/receipts", body).status_code == 204


def device(app: App, device_id: str) -> dict[str, Any]:
    found: dict[str, Any] = app.get(f"/devices/{device_id}").json()
    return found


def attempts(app: App, answer: Any) -> list[dict[str, Any]]:
    found = app.get(f"/notifications/{answer.json()['id']}/attempts").json()["results"]
    return sorted(found, key=lambda item: (item["attempt_number"], item["device_id"]))


def has_open_circuit() -> bool:
    return "open" in {state.state for state in circuit_breaker.circuit_states(now=utc_now()) or ()}


def test_push_is_sent_delivered_and_opened(app: App, received: Received) -> None:
    phone = register(app, "adas-phone")
    answer = notify(app, content={"deep_link": "app://orders/1001"})
    assert answer.status_code == 202
    (delivery,) = when(app, answer, "sent")["delivery"]
    assert (delivery["status"], delivery["provider"]) == ("sent", "fcm")
    assert delivery["provider_message_id"].startswith("projects/")
    (request,) = received("adas-phone")
    message = request["body"]["message"]
    assert message["notification"]["title"] == "Your order 1001 is on its way"
    assert message["data"]["deep_link"] == "app://orders/1001"
    assert message["data"]["reference"] == f"{answer.json()['id']}.push.1.{phone}"

    report_receipt(app, phone, message, "delivered")
    assert when(app, answer, "delivered")["is_read"] is False
    report_receipt(app, phone, message, "opened")
    notification = app.get(f"/notifications/{answer.json()['id']}").json()
    (delivery,) = notification["delivery"]
    assert (delivery["status"], notification["is_read"]) == ("read", True)
    names = ("sent_at", "delivered_at", "read_at")
    times = [datetime.fromisoformat(delivery[name]) for name in names]
    assert times == sorted(times)
    assert len(received("adas-phone")) == 1
    until(lambda: device(app, phone)["last_accepted_at"])
    assert device(app, phone)["last_receipt_at"]


def test_unregistered_device_is_deactivated_and_the_others_get_the_push(
    app: App, received: Received
) -> None:
    phone, tablet = register(app, "adas-phone"), register(app, "adas-tablet", platform="ios")
    dead = register(app, "unregistered-adas-old-phone")
    answer = notify(app)
    (delivery,) = when(app, answer, "sent")["delivery"]
    assert (delivery["attempt_count"], delivery["failure_code"]) == (1, None)
    results = {
        attempt["device_id"]: (attempt["status"], attempt["error_code"])
        for attempt in attempts(app, answer)
    }
    assert results == {
        phone: ("sent", None),
        tablet: ("sent", None),
        dead: ("failed", "invalid_recipient"),
    }

    until(lambda: not device(app, dead)["is_active"])
    assert device(app, dead)["deactivation_reason"] == "unregistered"
    assert device(app, phone)["is_active"]
    assert device(app, tablet)["is_active"]
    when(app, notify(app), "sent")
    sent = [len(received(f"adas-{name}")) for name in ("phone", "tablet")]
    assert (sent, len(received("unregistered-adas-old-phone"))) == ([2, 2], 1)


def test_push_fails_with_a_reason_per_device(app: App) -> None:
    register(app, "adas-phone")
    when(app, notify(app), "sent")
    gone = register(app, "unregistered-adas-old-phone"), register(app, "wrong-sender-adas-tablet")
    answer = notify(app, recipient={"device_ids": gone})
    (delivery,) = when(app, answer, "failed")["delivery"]
    assert delivery["failure_code"] == "invalid_recipient"
    assert set(delivery["failure_reason"].split("; ")) == {
        "Device token invalid (1 device)",
        "Device token belongs to another Firebase project (1 device)",
    }


@pytest.mark.usefixtures("quick_silence")
def test_unanswered_push_is_unknown_until_the_devices_receipt(app: App, received: Received) -> None:
    tablet = register(app, "adas-tablet")
    when(app, notify(app, recipient={"device_ids": [tablet]}), "sent")  # with a token of its own
    phone = register(app, "timeout-adas-phone")
    answer = notify(app, priority="low", recipient={"device_ids": [phone]})
    until(lambda: [attempt["status"] for attempt in attempts(app, answer)] == ["unknown"])
    (request,) = received("timeout-adas-phone")
    report_receipt(app, phone, request["body"]["message"], "delivered")
    (delivery,) = when(app, answer, "delivered")["delivery"]
    assert delivery["attempt_count"] == 1
    assert len(received("timeout-adas-phone")) == 1


@pytest.mark.usefixtures("quick_retries")
def test_missing_permission_opens_the_circuit_and_keeps_the_device(
    app: App, received: Received, script: Callable[..., None]
) -> None:
    phone = register(app, "adas-phone")
    script("adas-phone", "no-permission")
    (delivery,) = when(app, notify(app, max_retries=0), "retrying")["delivery"]
    assert delivery["failure_code"] == "channel_unavailable"
    assert device(app, phone)["is_active"]
    until(has_open_circuit)
    second = notify(app, max_retries=0).json()["id"]

    def held() -> Any:
        (delivery,) = app.get(f"/notifications/{second}").json()["delivery"]
        return delivery["failure_code"] and delivery

    assert until(held)["attempt_count"] == 0
    assert len(received("adas-phone")) == 1


@pytest.mark.parametrize("outcome", ["wrong-project", "wrong-sender"])
def test_answer_that_may_concern_one_device_holds_no_other(
    app: App, received: Received, script: Callable[..., None], outcome: str
) -> None:
    tablet = register(app, "adas-tablet")
    script("adas-tablet", outcome)
    (delivery,) = when(app, notify(app, max_retries=0), "retrying")["delivery"]
    assert delivery["failure_code"] == "channel_unavailable"
    assert device(app, tablet)["is_active"]
    assert not has_open_circuit()
    phone = register(app, "adas-phone")
    when(app, notify(app, recipient={"device_ids": [phone]}), "sent")
    assert len(received("adas-phone")) == 1


@pytest.fixture
def _email_as_fallback(app: App) -> Iterator[None]:
    fallback = {"fallback_channel": "email", "fallback_after_seconds": 2}
    collection("notification_types").update_one({"_id": "order_shipped"}, {"$set": fallback})
    types.invalidate_types()
    yield
    types.invalidate_types()


def deliveries_with_a_fallback(app: App, token: str, *statuses: str) -> dict[str, Any]:
    """Push to this token, with email as fallback. Return each channel's status and attempts."""
    register(app, token)
    answer = app.notify(type="order_shipped", user_id=USER, data={"order": "12345"})
    found = when(app, answer, *statuses)["delivery"]
    return {d["channel"]: (d["status"], d["attempt_count"]) for d in found}


@pytest.mark.usefixtures("quick_retries", "_email_as_fallback")
def test_fallback_is_sent_at_once_after_a_failed_push(app: App) -> None:
    found = deliveries_with_a_fallback(app, "unregistered-ada", "partially_delivered")
    assert found["push"] == ("failed", 1)
    assert found["email"][0] in ("sent", "delivered")


@pytest.mark.usefixtures("quick_retries", "_email_as_fallback")
def test_fallback_waits_for_the_first_channel(app: App) -> None:
    found = deliveries_with_a_fallback(app, "ada-phone", "sent", "delivered")
    assert found["push"] == ("sent", 1)
    assert found["email"][1] == 1
