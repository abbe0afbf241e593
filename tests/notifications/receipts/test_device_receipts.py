"""What a device says of a push that its user's other devices still wait for."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import dispatcher
from domain.errors import FailureCode
from domain.retry import GiveUp, RetryAt
from domain.states import Channel
from notifications import store
from notifications.receipts import device_receipts
from notifications.receipts.device_receipts import DeviceEvent
from notifications.store import LEASE, NewDelivery, recovery
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

pytestmark = pytest.mark.usefixtures("db", "broker")

PUSH, EMAIL = Channel.PUSH, Channel.EMAIL
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
EVENTS = {DeviceEvent.DELIVERED: "delivered", DeviceEvent.OPENED: "read"}
"""What a device may say, and what the push becomes by it."""


def tell(
    one: ObjectId,
    device_id: str,
    event: DeviceEvent = DeviceEvent.DELIVERED,
    *,
    at: datetime = NOON + SECOND,
) -> bool:
    return device_receipts.apply_device_receipt(
        device_id=device_id, notification_id=one, client_id=CLIENT, event=event, now=at
    )


def half_sent(fcm: ScriptedProvider, **fields: Any) -> tuple[ObjectId, str]:
    """Return a push that a phone has and a tablet still waits for, and the phone."""
    phone = device("phone")
    device("tablet")
    fcm.behave = by_recipient({"tablet": provider_error})
    one = push(**fields)
    deliver(one)
    fcm.always(taken)
    tokens(fcm)
    return one, phone


def times(one: ObjectId) -> list[datetime | None]:
    delivery = state(one)
    return [delivery.get(name) for name in ("sent_at", "delivered_at", "read_at")]


# It is noted, and the others are reached.


@pytest.mark.parametrize(("event", "becomes"), EVENTS.items())
def test_the_other_devices_are_reached_and_then_it_is_what_the_first_one_said(
    fcm: ScriptedProvider, event: DeviceEvent, becomes: str
) -> None:
    one, phone = half_sent(fcm)
    before = state(one)
    assert tell(one, phone, event)
    waiting = state(one)
    assert (waiting["status"], waiting["next_attempt_at"]) == ("pending", before["next_attempt_at"])
    assert waiting["delivered_at"] == NOON + SECOND
    assert factories.read(one)["due_at"] == before["next_attempt_at"]
    deliver(one, at=RETRY)
    assert tokens(fcm) == ["tablet"]
    read_at = NOON + SECOND if becomes == "read" else None
    assert (delivery_status(one), times(one)) == (
        (becomes, None),
        [NOON + SECOND, NOON + SECOND, read_at],
    )
    assert factories.read(one)["status"] == "delivered"
    assert "due_at" not in factories.read(one)


def test_both_events_in_any_order_and_any_number_of_times_end_the_same(
    fcm: ScriptedProvider,
) -> None:
    one, phone = half_sent(fcm)
    assert [
        tell(one, phone, event, at=NOON + n * SECOND)
        for n, event in enumerate(
            [DeviceEvent.OPENED, DeviceEvent.DELIVERED, DeviceEvent.OPENED], start=1
        )
    ] == [True, False, False]
    before = factories.read(one)
    for event in EVENTS:
        assert not tell(one, phone, event, at=NOON + MINUTE)
    assert factories.read(one) == before
    deliver(one, at=RETRY)
    assert (delivery_status(one)[0], times(one)) == ("read", [NOON + SECOND] * 3)


def test_a_device_that_says_it_has_it_is_not_sent_to_again(fcm: ScriptedProvider) -> None:
    """Its provider said that it was busy, and had taken it all the same."""
    phone, tablet = device("phone"), device("tablet")
    fcm.always(provider_error)
    one = push()
    deliver(one)
    tell(one, phone)
    fcm.always(taken)
    tokens(fcm)
    deliver(one, at=RETRY)
    assert tokens(fcm) == ["tablet"]
    assert (delivery_status(one)[0], state(one)["accepted_targets"]) == (
        "delivered",
        [phone, tablet],
    )


def test_when_nobody_else_can_be_reached_it_is_delivered(fcm: ScriptedProvider) -> None:
    one, phone = half_sent(fcm)
    tell(one, phone)
    fcm.always(invalid_token)
    assert deliver(one, at=RETRY).counts == {"sent": 1}
    assert delivery_status(one) == ("delivered", None)


def test_when_its_only_device_has_it_the_next_look_finds_nobody_left(fcm: ScriptedProvider) -> None:
    phone = device("phone")
    fcm.always(provider_error)
    one = push()
    deliver(one)
    tell(one, phone)
    tokens(fcm)
    deliver(one, at=RETRY)
    assert (tokens(fcm), delivery_status(one)) == ([], ("delivered", None))


def test_what_expires_before_the_others_are_reached_is_delivered(fcm: ScriptedProvider) -> None:
    one, phone = half_sent(fcm, expires_at=NOON + 20 * MINUTE)
    tell(one, phone)
    deliver(one, at=NOON + 20 * MINUTE)
    assert (delivery_status(one), times(one)) == (
        ("delivered", None),
        [NOON + SECOND, NOON + SECOND, None],
    )


def test_what_stands_in_for_the_push_is_not_needed(fcm: ScriptedProvider) -> None:
    wait = 2 * MINUTE
    mail = NewDelivery(channel=EMAIL, fallback_for=PUSH, delay=wait)
    one, phone = half_sent(fcm, deliveries=(NewDelivery(channel=PUSH), mail))
    tell(one, phone)
    dispatcher.dispatch([one], channel=EMAIL, clock=lambda: NOON + wait)
    instead = factories.delivery(factories.read(one), EMAIL)
    assert (instead["status"], instead["failure_code"]) == ("cancelled", "not_needed")
    assert delivery_status(one)[0] == "pending"


# While it is being sent.


def told_while_sending(
    fcm: ScriptedProvider, phone: str, answer: Callable[[], Outcome]
) -> ObjectId:
    """Return a push whose phone reports it before the provider has answered at all."""
    one = push()

    def behave(outbound: SendRequest) -> Outcome:
        if outbound.recipient == "phone":
            tell(one, phone)
            assert delivery_status(one)[0] == "sending"
        return answer()

    fcm.behave = behave
    deliver(one, at=NOON)
    return one


@pytest.mark.parametrize("answer", [taken, timeout, refused, invalid_token])
def test_a_device_may_be_faster_than_the_provider(
    fcm: ScriptedProvider, answer: Callable[[], Outcome]
) -> None:
    phone = device("phone")
    device("tablet")
    one = told_while_sending(fcm, phone, answer)
    assert delivery_status(one) == ("delivered", None)
    assert (state(one)["next_attempt_at"], state(one).get("failed_at")) == (None, None)
    assert "due_at" not in factories.read(one)


def test_a_report_in_the_midst_of_a_send_is_not_forgotten_by_what_comes_of_it(
    fcm: ScriptedProvider,
) -> None:
    phone, tablet = device("phone"), device("tablet")
    one = told_while_sending(fcm, phone, provider_error)
    assert (delivery_status(one)[0], state(one)["accepted_targets"]) == ("pending", [phone])
    fcm.always(taken)
    tokens(fcm)
    deliver(one, at=RETRY)
    assert tokens(fcm) == ["tablet"]
    assert (delivery_status(one)[0], state(one)["accepted_targets"]) == (
        "delivered",
        [phone, tablet],
    )


class Killed(BaseException):
    """The process ends here."""


def lost(
    fcm: ScriptedProvider,
    monkeypatch: pytest.MonkeyPatch,
    event: DeviceEvent = DeviceEvent.DELIVERED,
) -> tuple[ObjectId, str]:
    """Return a push whose phone reported it, and whose worker was lost as it was to settle it."""
    one, phone = half_sent(fcm)
    tell(one, phone, event)

    def die(*_args: object, **_options: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(store, "settle", die)
        with pytest.raises(Killed):
            deliver(one, at=RETRY)
    store.expire_leases(now=RETRY + LEASE)
    assert (delivery_status(one)[0], state(one)["accepted_targets"]) == ("unknown", [phone])
    return one, phone


@pytest.mark.parametrize("decision", [RetryAt(RETRY), GiveUp(FailureCode.OUTCOME_UNKNOWN)])
def test_a_worker_that_is_lost_does_not_take_the_report_along(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch, decision: RetryAt | GiveUp
) -> None:
    one, _ = lost(fcm, monkeypatch)
    later = RETRY + 10 * MINUTE
    store.resolve_unknown(
        [(doubt, decision) for doubt in store.unknown_outcomes(now=later)], now=later
    )
    deliver(one, at=later)
    assert (delivery_status(one), times(one)) == (
        ("delivered", None),
        [NOON + SECOND, NOON + SECOND, None],
    )


def test_what_was_opened_is_read_whatever_another_device_says_of_what_is_in_doubt(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, phone = lost(fcm, monkeypatch, DeviceEvent.OPENED)
    tell(one, device("tablet"), at=RETRY + 2 * LEASE)
    assert (delivery_status(one), times(one)) == (("read", None), [NOON + SECOND] * 3)
    assert phone in state(one)["accepted_targets"]


def test_a_report_between_a_rescues_two_looks_is_kept(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone, tablet = device("phone"), device("tablet")
    one = factories.claimed(channel=PUSH, at=NOON)
    begun = factories.start(replace(one, device_ids=(phone, tablet)), at=NOON, provider="fcm")
    records = recovery._records

    def slowly(*args: Any) -> Any:
        tell(begun.notification_id, phone)
        return records(*args)

    monkeypatch.setattr(recovery, "_records", slowly)
    assert store.expire_leases(now=NOON + LEASE) == 1
    assert state(begun.notification_id)["accepted_targets"] == [phone]


def test_a_report_of_what_is_in_doubt_settles_it(fcm: ScriptedProvider) -> None:
    phone = device("phone")
    device("tablet")
    fcm.always(timeout)
    one = push()
    deliver(one)
    assert delivery_status(one)[0] == "unknown"
    tell(one, phone)
    assert delivery_status(one) == ("delivered", None)
