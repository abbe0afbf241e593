"""Device receipts lead to one result in any order and with any repetition."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from bson import ObjectId

from devices import registration
from devices import status as devices_status
from devices.models import DeactivationReason
from devices.status import Evidence
from devices.tokens import device_id
from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.store import leases
from notifications.store.claims import ClaimedDelivery
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, new_app, pointers
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, settlement
from tests.support.fakes.mongo_failpoints import fail_commands
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

S = DeliveryStatus
NO_DISK = {"errorCode": 14031}
EVENTS = ("delivered", "opened")


def send_receipt(
    app: App, device_id: str, notification_id: Any, event: Any = "delivered"
) -> Answer:
    body = {"notification_id": str(notification_id), "event": event}
    return app.post(f"/devices/{device_id}/receipts", body)


def start_push(app: App, *devices: str, **fields: Any) -> ClaimedDelivery:
    claim = factories.claimed(channel=Channel.PUSH, client_id=app.id, **fields)
    return factories.start(replace(claim, device_ids=devices), provider="fcm")


def settle(
    claim: ClaimedDelivery,
    status: DeliveryStatus = S.SENT,
    *,
    accepted: Sequence[str] | None = None,
) -> None:
    """Settle a push. If sent, all devices accepted it, unless ``accepted`` lists them."""
    targets = claim.device_ids if accepted is None and status is S.SENT else accepted or ()
    answer = {"provider": "fcm", "provider_message_id": None, "response": {"status": 200}}
    outcome = settlement(claim, status, **answer, accepted_targets=tuple(targets))
    leases.settle([outcome], now=NOON)


def sent(app: App, *devices: str, **fields: Any) -> ObjectId:
    begun = start_push(app, *devices, **fields)
    settle(begun)
    return begun.notification_id


def push(notification_id: ObjectId) -> dict[str, Any]:
    return factories.delivery(factories.read(notification_id), Channel.PUSH)


def status_of(notification_id: ObjectId) -> str:
    return str(push(notification_id)["status"])


@pytest.fixture
def phone(db: None) -> str:
    return factories.device("phone")


def test_delivered_receipt_marks_push_delivered(app: App, phone: str) -> None:
    notification_id = sent(app, phone)
    answer = send_receipt(app, phone, notification_id)
    assert (answer.status_code, answer.content) == (204, b"")
    shown = app.get(f"/notifications/{notification_id}").json()
    (delivery,) = shown["delivery"]
    assert (shown["status"], delivery["status"]) == ("delivered", "delivered")
    assert delivery["delivered_at"] > delivery["sent_at"]
    assert (delivery["read_at"], shown["is_read"], delivery["provider"]) == (None, False, "fcm")
    device = app.get(f"/devices/{phone}").json()
    assert device["last_receipt_at"]
    assert device["last_accepted_at"] is None


def test_opened_receipt_marks_push_read(app: App, phone: str) -> None:
    notification_id = sent(app, phone)
    send_receipt(app, phone, notification_id, "opened")
    shown = app.get(f"/notifications/{notification_id}").json()
    (delivery,) = shown["delivery"]
    assert (shown["status"], delivery["status"], shown["is_read"]) == ("delivered", "read", True)
    assert delivery["delivered_at"] == delivery["read_at"] == shown["read_at"]


def test_receipt_has_the_minute_of_its_attempt_counted_again(app: App, phone: str) -> None:
    notification_id = sent(app, phone)
    collection("delivery_attempts").update_many({}, {"$set": {"attempted_at": utc_now()}})
    send_receipt(app, phone, notification_id)
    assert collection("metrics_due").count_documents({}) == 1


def test_old_receipt_does_not_reactivate_a_device(app: App, phone: str) -> None:
    notification_id = sent(app, phone)
    evidence = Evidence(at=NOON, source="fcm")
    reason = DeactivationReason.UNREGISTERED
    devices_status.deactivate(device_ids=[phone], reason=reason, evidence=evidence, now=NOON)
    assert send_receipt(app, phone, notification_id, "opened").status_code == 204
    assert app.get(f"/devices/{phone}").json()["is_active"] is False
    assert status_of(notification_id) == "read"


def test_receipt_of_a_removed_device_counts(app: App, phone: str) -> None:
    notification_id = sent(app, phone)
    registration.remove(device_id=phone)
    assert send_receipt(app, phone, notification_id).status_code == 204
    assert status_of(notification_id) == "delivered"
    assert collection("devices").count_documents({}) == 0


@pytest.mark.parametrize("outcome", [S.SENT, S.UNKNOWN, S.FAILED])
@pytest.mark.parametrize("event", EVENTS)
def test_receipt_before_settlement_is_kept(
    app: App, phone: str, event: str, outcome: DeliveryStatus
) -> None:
    begun = start_push(app, phone)
    assert send_receipt(app, phone, begun.notification_id, event).status_code == 204
    early = push(begun.notification_id)["status"]
    settle(begun, outcome)
    assert early == "sending"
    assert status_of(begun.notification_id) == {"opened": "read"}.get(event, event)


def test_receipt_reads_and_changes_one_attempt_by_an_index(app: App, phone: str) -> None:
    notification_id = sent(app, phone)
    with plans("delivery_attempts") as found:
        send_receipt(app, phone, notification_id)
    read, change = found
    assert (read.is_indexed, read.sorts, read.examined) == (True, False, 1)
    assert (change.is_by_id, change.examined) == (True, 1)


def returned_unsent(app: App, phone: str) -> ObjectId:
    begun = start_push(app, phone)
    leases.return_unsent([begun], now=NOON)
    return begun.notification_id


UNMATCHED: dict[str, Callable[[App, str], Any]] = {
    "unknown": lambda app, phone: ObjectId(),
    "another client's": lambda app, phone: sent(new_app("another"), phone),
    "to another device": lambda app, phone: sent(app, device_id("another")),
    "claimed only": lambda app, phone: (
        factories.claimed(channel=Channel.PUSH, client_id=app.id).notification_id
    ),
    "returned unsent": returned_unsent,
    "not a push": lambda app, phone: factories.started(client_id=app.id).notification_id,
}


@each_case("case", UNMATCHED)
def test_receipt_for_a_push_not_sent_to_the_device_is_not_found(
    app: App, phone: str, case: str
) -> None:
    notification_id = UNMATCHED[case](app, phone)
    stored = collection("notifications").find_one({"_id": notification_id})
    answer = send_receipt(app, phone, notification_id)
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert collection("notifications").find_one({"_id": notification_id}) == stored
    assert "last_receipt_at" not in factories.stored_device(phone)


@each_case("device_id", ["x", "0" * 64, "A" * 64, "0" * 63, "%00"])
def test_receipt_of_an_invalid_device_is_not_found(app: App, phone: str, device_id: str) -> None:
    answer = send_receipt(app, device_id, sent(app, phone))
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@each_case(
    "body, found",
    [
        (
            {"notification_id": "secret", "event": "secret"},
            {"/notification_id": "invalid_id", "/event": "unknown_event"},
        ),
        ({"notification_id": "a" * 24, "event": "clicked"}, {"/event": "unknown_event"}),
        ({"notification_id": "a" * 24, "event": "Opened"}, {"/event": "unknown_event"}),
        ({"notification_id": "a" * 24, "event": "opened", "at": 1}, {"/at": "unknown_field"}),
    ],
)
def test_invalid_receipt_is_refused(
    app: App, phone: str, body: dict[str, Any], found: dict[str, str]
) -> None:
    answer = app.post(f"/devices/{phone}/receipts", body)
    assert (answer.status_code, pointers(answer)) == (422, found)
    assert "secret" not in answer.content.decode()


@pytest.mark.parametrize("name", ["notifications", "devices"])
def test_store_failure_answers_503(app: App, phone: str, name: str) -> None:
    notification_id = sent(app, phone)
    with fail_commands("update", name, NO_DISK):
        answer = send_receipt(app, phone, notification_id)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    send_receipt(app, phone, notification_id)
    assert status_of(notification_id) == "delivered"


def test_log_holds_ids_and_no_addresses(
    app: App, phone: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    notification_id = sent(app, phone, user_id="lovelace")
    send_receipt(app, phone, notification_id)
    assert f"{notification_id}.push'" in caplog.text
    assert phone in caplog.text
    for value in ("lovelace", "ada@", "+351912345678", "Your payment"):
        assert value not in caplog.text
