"""A device that may have a push, beside devices that certainly have not: what each is sent."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import sweeper
from devices import registration
from domain.states import Channel, Priority
from notifications import store
from notifications.receipts import device_receipts
from notifications.receipts.device_receipts import DeviceEvent
from tests.support.factories.notifications import CLIENT, NOON, device, tries
from tests.support.factories.push import RETRY, asleep, deliver, fate, push, state, tokens
from tests.support.fakes.provider import (
    Outcome,
    Scripted,
    busy,
    by_recipient,
    dead,
    silent,
    unavailable,
)
from tests.support.fakes.provider import accepted as taken

pytestmark = pytest.mark.usefixtures("db", "broker")

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
ONCE: dict[str, Any] = {"type": "marketing"}
"""Twice is worse than never."""
AGAIN: dict[str, Any] = {"type": "payment_confirmed"}
"""Twice is better than never."""


def doubtful(
    fcm: Scripted, *, tablet: Callable[[], Outcome] = busy, **fields: Any
) -> tuple[ObjectId, str, str]:
    """Return a push that nobody knows whether the phone has, and a tablet has certainly not."""
    phone, other = device("phone"), device("tablet")
    fcm.behave = by_recipient({"phone": silent, "tablet": tablet})
    one = push(**fields)
    assert deliver(one).counts == {"pending": 1}
    assert tries(one)[1, phone] == ("unknown", "timeout")
    fcm.always(taken)
    tokens(fcm)
    return one, phone, other


def sent_at(fcm: Scripted, one: ObjectId, at: datetime) -> list[str]:
    """Return whom it was sent to at this time."""
    deliver(one, at=at)
    return tokens(fcm)


# Twice is worse than never.


def test_who_has_not_got_it_gets_it_and_who_may_have_it_gets_no_second_copy(fcm: Scripted) -> None:
    one, phone, tablet = doubtful(fcm, **ONCE)
    assert (fate(one), state(one)["doubtful_targets"]) == (("pending", "timeout"), [phone])
    assert sent_at(fcm, one, RETRY) == ["tablet"]
    assert fate(one) == ("sent", None)
    assert (state(one)["accepted_targets"], state(one)["doubtful_targets"]) == ([tablet], [])


def test_when_the_others_cannot_get_it_nobody_can_tell_whether_it_went(fcm: Scripted) -> None:
    one, phone, tablet = doubtful(fcm, **ONCE)
    fcm.always(dead)
    assert sent_at(fcm, one, RETRY) == ["tablet"]
    assert fate(one) == ("unknown", "outcome_unknown")
    assert sweeper.resolve_unknown(now=RETRY) == 1
    assert fate(one) == ("failed", "outcome_unknown")
    assert sent_at(fcm, one, RETRY + HOUR) == []
    assert tries(one) == {
        (1, phone): ("unknown", "timeout"),
        (1, tablet): ("failed", "provider_error"),
        (2, tablet): ("failed", "invalid_recipient"),
    }


def test_when_the_others_are_gone_nobody_can_tell_whether_it_went(fcm: Scripted) -> None:
    one, _, tablet = doubtful(fcm, **ONCE)
    registration.remove(device_id=tablet)
    assert sent_at(fcm, one, RETRY) == []
    assert fate(one) == ("failed", "outcome_unknown")


def test_a_device_asleep_gets_it_in_the_morning(fcm: Scripted) -> None:
    device("phone")
    device("tablet", preferences=asleep("13:00"))
    fcm.always(silent)
    one = push(**ONCE)
    deliver(one)
    fcm.always(taken)
    tokens(fcm)
    assert sent_at(fcm, one, NOON + 5 * MINUTE) == []
    assert (fate(one), state(one)["next_attempt_at"]) == (("pending", "quiet_hours"), NOON + HOUR)
    assert sent_at(fcm, one, NOON + HOUR) == ["tablet"]
    assert fate(one) == ("sent", None)


def test_what_an_operator_opens_again_goes_to_the_device_in_doubt_too(fcm: Scripted) -> None:
    one, _, tablet = doubtful(fcm, **ONCE)
    registration.remove(device_id=tablet)
    deliver(one, at=RETRY)
    later = RETRY + HOUR
    store.reopen(notification_id=one, channels=[Channel.PUSH], extra_attempts=1, now=later)
    assert sent_at(fcm, one, later) == ["phone"]
    assert fate(one) == ("sent", None)


# Twice is better than never.


def test_it_is_sent_again_to_all_if_its_type_says_so(fcm: Scripted) -> None:
    one, *_ = doubtful(fcm, **AGAIN)
    assert sent_at(fcm, one, RETRY) == ["phone", "tablet"]
    assert (fate(one), state(one)["doubtful_targets"]) == (("sent", None), [])


def test_a_device_in_doubt_may_report_before_it_is_sent_to_again(fcm: Scripted) -> None:
    """The others are tried again after a quarter of a minute; a report may take half a minute."""
    one, *_ = doubtful(fcm, **AGAIN, priority=Priority.CRITICAL)
    fcm.always(busy)
    assert sent_at(fcm, one, NOON + 18 * SECOND) == ["tablet"]
    assert sent_at(fcm, one, NOON + 54 * SECOND) == ["phone", "tablet"]


def test_when_the_others_are_gone_it_waits_for_the_report_and_is_sent_again(fcm: Scripted) -> None:
    one, _, tablet = doubtful(fcm, **AGAIN, priority=Priority.CRITICAL)
    registration.remove(device_id=tablet)
    assert sent_at(fcm, one, NOON + 18 * SECOND) == []
    waiting = state(one)
    assert (waiting["status"], waiting["next_attempt_at"]) == ("pending", NOON + 30 * SECOND)
    assert sent_at(fcm, one, NOON + 30 * SECOND) == ["phone"]


def test_a_device_that_never_answers_is_sent_to_no_more_often_than_the_type_says(
    fcm: Scripted,
) -> None:
    """While the other one waits for its platform, which uses up no attempt."""
    fcm.behave = by_recipient({"phone": silent, "tablet": unavailable})
    device("phone")
    device("tablet")
    one = push(**AGAIN, max_attempts=3)
    at = NOON
    while state(one)["status"] == "pending" and at < NOON + 12 * HOUR:
        deliver(one, at=at)
        at = max(at, state(one)["next_attempt_at"] or at)
    assert tokens(fcm).count("phone") == 3
    assert fate(one)[0] == "pending"


# A report.


@pytest.mark.parametrize("kind", [ONCE, AGAIN])
def test_a_report_ends_the_doubt(fcm: Scripted, kind: dict[str, Any]) -> None:
    one, phone, tablet = doubtful(fcm, **kind)
    device_receipts.apply_device_receipt(
        device_id=phone,
        notification_id=one,
        client_id=CLIENT,
        event=DeviceEvent.DELIVERED,
        now=NOON + SECOND,
    )
    assert sent_at(fcm, one, RETRY) == ["tablet"]
    assert fate(one) == ("delivered", None)
    assert state(one)["accepted_targets"] == [phone, tablet]
