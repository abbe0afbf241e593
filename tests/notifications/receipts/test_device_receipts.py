"""Device receipts for a push that is still pending on other devices."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.errors import FailureCode
from domain.retry import GiveUp, RetryAt
from notifications import queries
from notifications.receipts import device_receipts
from notifications.receipts.device_receipts import AppliedReceipt, DeviceEvent
from notifications.store import device_attempts, leases, recovery
from notifications.store.leases import LEASE
from notifications.store.new_notifications import NewDelivery
from notifyproject.db.collections import collection
from providers.contract import SendRequest
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, device
from tests.support.factories.push import RETRY, deliver, delivery_status, push, state, tokens
from tests.support.fakes.provider import (
    Outcome,
    ScriptedProvider,
    by_recipient,
    invalid_token,
    provider_error,
    refused,
    timeout,
)
from tests.support.fakes.provider import accepted as taken
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db", "broker")

PUSH, EMAIL = Channel.PUSH, Channel.EMAIL
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
EVENTS = {DeviceEvent.DELIVERED: "delivered", DeviceEvent.OPENED: "read"}
"""Device events and the status each leads to."""


def send_receipt(
    notification_id: ObjectId,
    device_id: str,
    event: DeviceEvent = DeviceEvent.DELIVERED,
    *,
    at: datetime = NOON + SECOND,
) -> bool:
    return apply(notification_id, device_id, event, at=at).is_delivery_changed


def apply(
    notification_id: ObjectId, device_id: str, event: DeviceEvent, *, at: datetime
) -> AppliedReceipt:
    return device_receipts.apply_device_receipt(
        device_id=device_id, notification_id=notification_id, client_id=CLIENT, event=event, now=at
    )


def half_sent(fcm: ScriptedProvider, **fields: Any) -> tuple[ObjectId, str]:
    """Return a push that is accepted on a phone and pending on a tablet, and the phone's ID."""
    phone = device("phone")
    device("tablet")
    fcm.behave = by_recipient({"tablet": provider_error})
    notification_id = push(**fields)
    deliver(notification_id)
    fcm.always(taken)
    tokens(fcm)
    return notification_id, phone


def times(notification_id: ObjectId) -> list[datetime | None]:
    delivery = state(notification_id)
    return [delivery.get(name) for name in ("sent_at", "delivered_at", "read_at")]


@pytest.mark.parametrize(("event", "status"), EVENTS.items())
def test_other_devices_are_still_sent_to_and_the_receipt_is_kept(
    fcm: ScriptedProvider, event: DeviceEvent, status: str
) -> None:
    notification_id, phone = half_sent(fcm)
    before = state(notification_id)
    assert send_receipt(notification_id, phone, event)
    waiting = state(notification_id)
    assert (waiting["status"], waiting["next_attempt_at"]) == ("pending", before["next_attempt_at"])
    assert waiting["delivered_at"] == NOON + SECOND
    assert factories.read(notification_id)["due_at"] == before["next_attempt_at"]
    deliver(notification_id, at=RETRY)
    assert tokens(fcm) == ["tablet"]
    read_at = NOON + SECOND if status == "read" else None
    assert delivery_status(notification_id) == (status, None)
    assert times(notification_id) == [NOON + SECOND, NOON + SECOND, read_at]
    assert factories.read(notification_id)["status"] == "delivered"
    assert "due_at" not in factories.read(notification_id)


def test_repeated_receipts_in_any_order_end_the_same(fcm: ScriptedProvider) -> None:
    notification_id, phone = half_sent(fcm)
    assert [
        send_receipt(notification_id, phone, event, at=NOON + n * SECOND)
        for n, event in enumerate(
            [DeviceEvent.OPENED, DeviceEvent.DELIVERED, DeviceEvent.OPENED], start=1
        )
    ] == [True, False, False]
    before = factories.read(notification_id)
    for event in EVENTS:
        assert not send_receipt(notification_id, phone, event, at=NOON + MINUTE)
    assert factories.read(notification_id) == before
    deliver(notification_id, at=RETRY)
    assert (delivery_status(notification_id)[0], times(notification_id)) == (
        "read",
        [NOON + SECOND] * 3,
    )


def test_device_with_a_receipt_is_not_sent_to_again(fcm: ScriptedProvider) -> None:
    """The receipt counts even if the provider returned an error for the device."""
    phone, tablet = device("phone"), device("tablet")
    fcm.always(provider_error)
    notification_id = push()
    deliver(notification_id)
    send_receipt(notification_id, phone)
    fcm.always(taken)
    tokens(fcm)
    deliver(notification_id, at=RETRY)
    assert tokens(fcm) == ["tablet"]
    assert delivery_status(notification_id)[0] == "delivered"
    assert state(notification_id)["accepted_targets"] == [phone, tablet]


def test_receipt_wins_if_no_other_device_can_be_reached(fcm: ScriptedProvider) -> None:
    notification_id, phone = half_sent(fcm)
    send_receipt(notification_id, phone)
    fcm.always(invalid_token)
    assert deliver(notification_id, at=RETRY).counts == {"sent": 1}
    assert delivery_status(notification_id) == ("delivered", None)


def test_receipt_of_the_only_device_ends_the_retries(fcm: ScriptedProvider) -> None:
    phone = device("phone")
    fcm.always(provider_error)
    notification_id = push()
    deliver(notification_id)
    send_receipt(notification_id, phone)
    tokens(fcm)
    deliver(notification_id, at=RETRY)
    assert (tokens(fcm), delivery_status(notification_id)) == ([], ("delivered", None))


def test_receipt_wins_if_the_push_expires(fcm: ScriptedProvider) -> None:
    notification_id, phone = half_sent(fcm, expires_at=NOON + 20 * MINUTE)
    send_receipt(notification_id, phone)
    deliver(notification_id, at=NOON + 20 * MINUTE)
    assert delivery_status(notification_id) == ("delivered", None)
    assert times(notification_id) == [NOON + SECOND, NOON + SECOND, None]


def test_receipt_cancels_the_fallback(fcm: ScriptedProvider) -> None:
    wait = 2 * MINUTE
    mail = NewDelivery(channel=EMAIL, step=2, delay=wait)
    notification_id, phone = half_sent(fcm, deliveries=(NewDelivery(channel=PUSH), mail))
    send_receipt(notification_id, phone)
    pipeline.dispatch(SendingRuntime(), [notification_id], channel=EMAIL, clock=lambda: NOON + wait)
    fallback = factories.delivery(factories.read(notification_id), EMAIL)
    assert (fallback["status"], fallback["failure_code"]) == ("cancelled", "not_needed")
    assert delivery_status(notification_id)[0] == "pending"


def receipt_while_sending(
    fcm: ScriptedProvider, phone: str, answer: Callable[[], Outcome]
) -> ObjectId:
    """Return a push whose receipt arrives before the provider response."""
    notification_id = push()

    def behave(outbound: SendRequest) -> Outcome:
        if outbound.recipient == "phone":
            send_receipt(notification_id, phone)
            assert delivery_status(notification_id)[0] == "sending"
        return answer()

    fcm.behave = behave
    deliver(notification_id, at=NOON)
    return notification_id


@pytest.mark.parametrize("answer", [taken, timeout, refused, invalid_token])
def test_receipt_can_come_before_the_provider_response(
    fcm: ScriptedProvider, answer: Callable[[], Outcome]
) -> None:
    phone = device("phone")
    device("tablet")
    notification_id = receipt_while_sending(fcm, phone, answer)
    assert delivery_status(notification_id) == ("delivered", None)
    assert (state(notification_id)["next_attempt_at"], state(notification_id).get("failed_at")) == (
        None,
        None,
    )
    assert "due_at" not in factories.read(notification_id)


def test_receipt_during_a_send_survives_the_settlement(fcm: ScriptedProvider) -> None:
    phone, tablet = device("phone"), device("tablet")
    notification_id = receipt_while_sending(fcm, phone, provider_error)
    assert (delivery_status(notification_id)[0], state(notification_id)["accepted_targets"]) == (
        "pending",
        [phone],
    )
    fcm.always(taken)
    tokens(fcm)
    deliver(notification_id, at=RETRY)
    assert tokens(fcm) == ["tablet"]
    assert delivery_status(notification_id)[0] == "delivered"
    assert state(notification_id)["accepted_targets"] == [phone, tablet]


class Killed(BaseException):
    """Stands for the end of the process."""


def lost(
    fcm: ScriptedProvider,
    monkeypatch: pytest.MonkeyPatch,
    event: DeviceEvent = DeviceEvent.DELIVERED,
) -> tuple[ObjectId, str]:
    """Return a push that has a receipt and whose worker was lost, and the phone's ID."""
    notification_id, phone = half_sent(fcm)
    send_receipt(notification_id, phone, event)

    def die(*_args: object, **_options: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(leases, "settle", die)
        with pytest.raises(Killed):
            deliver(notification_id, at=RETRY)
    recovery.expire_leases(now=RETRY + LEASE)
    assert (delivery_status(notification_id)[0], state(notification_id)["accepted_targets"]) == (
        "unknown",
        [phone],
    )
    return notification_id, phone


@pytest.mark.parametrize("decision", [RetryAt(RETRY), GiveUp(FailureCode.OUTCOME_UNKNOWN)])
def test_receipt_survives_a_lost_worker(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, decision: RetryAt | GiveUp
) -> None:
    notification_id, _ = lost(fcm, monkeypatch)
    later = RETRY + 10 * MINUTE
    waiting = recovery.unknown_outcomes(now=later)
    recovery.resolve_unknown([(unknown, decision) for unknown in waiting], now=later)
    deliver(notification_id, at=later)
    assert delivery_status(notification_id) == ("delivered", None)
    assert times(notification_id) == [NOON + SECOND, NOON + SECOND, None]


def test_opened_receipt_wins_over_a_later_delivered_one(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    notification_id, phone = lost(fcm, monkeypatch, DeviceEvent.OPENED)
    send_receipt(notification_id, device("tablet"), at=RETRY + 2 * LEASE)
    assert (delivery_status(notification_id), times(notification_id)) == (
        ("read", None),
        [NOON + SECOND] * 3,
    )
    assert phone in state(notification_id)["accepted_targets"]


def test_receipt_in_recovery_is_kept(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone, tablet = device("phone"), device("tablet")
    claim = factories.claimed(channel=PUSH, at=NOON)
    begun = factories.start(replace(claim, device_ids=(phone, tablet)), at=NOON, provider="fcm")
    records = recovery._records

    def read_late(*args: Any) -> Any:
        send_receipt(begun.notification_id, phone)
        return records(*args)

    monkeypatch.setattr(recovery, "_records", read_late)
    assert recovery.expire_leases(now=NOON + LEASE) == 1
    assert state(begun.notification_id)["accepted_targets"] == [phone]


def test_receipt_resolves_an_unknown_outcome(fcm: ScriptedProvider) -> None:
    phone = device("phone")
    device("tablet")
    fcm.always(timeout)
    notification_id = push()
    deliver(notification_id)
    assert delivery_status(notification_id)[0] == "unknown"
    send_receipt(notification_id, phone)
    assert delivery_status(notification_id) == ("delivered", None)


def attempts(notification_id: ObjectId) -> dict[str, dict[str, Any]]:
    """Return the last attempt at each device, as the API shows it."""
    found = queries.attempts_with_receipts(factories.read(notification_id))
    return {attempt["device_id"]: attempt for attempt in found}


def test_attempt_at_a_device_has_the_times_of_its_receipts(fcm: ScriptedProvider) -> None:
    phone, tablet = device("phone"), device("tablet")
    notification_id = push()
    deliver(notification_id)
    send_receipt(notification_id, tablet, at=NOON + SECOND)
    send_receipt(notification_id, phone, DeviceEvent.OPENED, at=NOON + 3 * SECOND)
    send_receipt(notification_id, phone, at=NOON + 2 * SECOND)
    found = attempts(notification_id)
    assert found[tablet]["delivered_at"] == NOON + SECOND
    assert "opened_at" not in found[tablet]
    assert found[phone]["delivered_at"] == NOON + 2 * SECOND
    assert found[phone]["opened_at"] == NOON + 3 * SECOND
    assert [attempt["status"] for attempt in found.values()] == ["sent", "sent"]


def test_receipt_belongs_to_the_attempt_that_the_provider_accepted(fcm: ScriptedProvider) -> None:
    notification_id, phone = half_sent(fcm)
    deliver(notification_id, at=RETRY)
    send_receipt(notification_id, phone, at=RETRY + SECOND)
    (attempt,) = device_attempts.attempts_at(notification_id, [phone])
    assert (attempt["attempt_number"], attempt["delivered_at"]) == (1, RETRY + SECOND)


def test_receipt_before_the_providers_answer_is_on_the_attempt(fcm: ScriptedProvider) -> None:
    phone = device("phone")
    notification_id = push()

    def behave(request: SendRequest) -> Outcome:
        assert send_receipt(notification_id, phone, at=NOON)
        return taken()

    fcm.behave = behave
    deliver(notification_id)
    assert attempts(notification_id)[phone]["delivered_at"] == NOON


def test_single_device_of_an_older_push_has_the_receipt_of_the_delivery(
    fcm: ScriptedProvider,
) -> None:
    phone = device("phone")
    notification_id = push()
    deliver(notification_id)
    send_receipt(notification_id, phone, DeviceEvent.OPENED)
    times = {"delivered_at": "", "opened_at": "", "platform": ""}
    collection("delivery_attempts").update_many({}, {"$unset": times})
    found = attempts(notification_id)[phone]
    assert (found["delivered_at"], found["opened_at"]) == (NOON + SECOND, NOON + SECOND)


@pytest.mark.parametrize("is_test", [False, True])
def test_receipt_of_a_further_device_tells_which_attempt_to_count_again(
    fcm: ScriptedProvider, is_test: bool
) -> None:
    phone, tablet = device("phone"), device("tablet")
    notification_id = push()
    deliver(notification_id)
    send_receipt(notification_id, phone)
    collection("notifications").update_one({"_id": notification_id}, {"$set": {"is_test": is_test}})
    before = factories.read(notification_id)
    applied = apply(notification_id, tablet, DeviceEvent.DELIVERED, at=NOON + MINUTE)
    assert not applied.is_delivery_changed
    assert applied.attempted_at == (None if is_test else NOON)
    assert factories.read(notification_id) == before
    assert (
        apply(notification_id, tablet, DeviceEvent.DELIVERED, at=NOON + MINUTE).attempted_at is None
    )


def test_attempts_at_a_device_are_read_by_an_index(fcm: ScriptedProvider) -> None:
    for number in range(5):
        device(f"device-{number}")
    notification_id = push()
    deliver(notification_id)
    phone = device("device-3")
    with plans("delivery_attempts") as found:
        assert len(device_attempts.attempts_at(notification_id, [phone])) == 1
    (plan,) = found
    assert (plan.is_indexed, plan.sorts, plan.examined) == (True, False, 1)
