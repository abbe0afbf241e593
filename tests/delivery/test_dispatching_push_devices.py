"""Which devices a push goes to, and what an answer means for a device."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from delivery import circuit_breaker
from devices.preferences import Preferences
from domain.errors import ProviderResponse
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, device, stored_device
from tests.support.factories.push import asleep, deliver, fate, push, state, tokens
from tests.support.fakes.provider import (
    Outcome,
    Scripted,
    busy,
    by_recipient,
    dead,
    refused,
    silent,
    suspect,
    unavailable,
)
from tests.support.fakes.provider import accepted as taken

pytestmark = pytest.mark.usefixtures("db", "broker")

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


# Nowhere to go, not now, not wanted.


def test_a_person_without_a_device_cannot_be_pushed_to(fcm: Scripted) -> None:
    one = push()
    assert deliver(one).counts == {"failed": 1}
    assert fate(one) == ("failed", "no_address")
    assert (fcm.seen, factories.attempts(one)) == ([], [])


def test_a_device_that_does_not_want_it_gets_nothing(fcm: Scripted) -> None:
    device("phone", preferences=Preferences(categories={"transactional": False}))
    device("tablet")
    assert deliver(push()).counts == {"sent": 1}
    assert tokens(fcm) == ["tablet"]
    device("tablet", at=NOON, preferences=Preferences(enabled=False))
    one = push()
    assert deliver(one).counts == {"suppressed": 1}
    assert fate(one) == ("suppressed", "opted_out")


def test_a_push_to_devices_that_all_sleep_waits_for_the_first_to_wake(fcm: Scripted) -> None:
    device("phone", preferences=asleep("13:00"))
    device("tablet", preferences=asleep("14:00"))
    one = push()
    report = deliver(one)
    assert [wakeup.at for wakeup in report.wakeups] == [NOON + HOUR]
    assert (fate(one), state(one)["attempt_count"]) == (("pending", "quiet_hours"), 0)
    assert deliver(one, at=NOON + HOUR).counts == {"sent": 1}
    assert tokens(fcm) == ["phone"]


def test_a_device_asleep_gets_it_in_the_morning_if_those_awake_are_dead(fcm: Scripted) -> None:
    device("old")
    device("tablet", preferences=asleep("13:00"))
    fcm.behave = by_recipient({"old": dead})
    one = push()
    assert deliver(one).counts == {"pending": 1}
    assert fate(one) == ("pending", "quiet_hours")
    assert deliver(one, at=NOON + HOUR).counts == {"sent": 1}
    assert tokens(fcm) == ["old", "tablet"]


# What an answer means for the device.


def test_a_dead_token_switches_its_device_off_and_says_why(fcm: Scripted) -> None:
    old, phone = device("old"), device("phone")
    answer = ProviderResponse(status=404, code="UNREGISTERED")
    fcm.behave = by_recipient({"old": lambda: dead(response=answer)})
    one = push()
    deliver(one)
    off = stored_device(old)
    assert (off["is_active"], off["deactivation_reason"]) == (False, "unregistered")
    assert off["deactivation_evidence"] == {
        "at": NOON,
        "source": "fcm",
        "code": "UNREGISTERED",
        "notification_id": str(one),
    }
    assert stored_device(phone)["is_active"]
    tokens(fcm)
    deliver(push())
    assert tokens(fcm) == ["phone"]


def test_a_device_that_takes_a_push_is_alive(fcm: Scripted) -> None:
    phone = device("phone")
    deliver(push())
    assert stored_device(phone)["last_accepted_at"] == NOON


def test_a_token_called_malformed_three_times_in_a_row_is_dead(fcm: Scripted) -> None:
    phone = device("phone")
    fcm.always(suspect)
    for n in range(3):
        assert stored_device(phone)["is_active"]
        at = NOON + n * MINUTE
        deliver(push(created_at=at), at=at)
    assert stored_device(phone)["deactivation_reason"] == "suspect"


@pytest.mark.parametrize("trouble", [busy, silent, refused, unavailable])
def test_no_other_trouble_is_blamed_on_a_device(
    fcm: Scripted, trouble: Callable[[], Outcome]
) -> None:
    phone = device("phone")
    before = stored_device(phone)
    fcm.always(trouble)
    deliver(push())
    assert stored_device(phone) == before


def test_a_wrong_project_opens_the_circuit_and_uses_up_no_attempt(fcm: Scripted) -> None:
    phones = [device("phone"), device("tablet")]
    fcm.always(unavailable)
    one, two = push(), push()
    assert deliver(one).counts == {"pending": 1}
    assert fate(one) == ("pending", "channel_unavailable")
    assert (state(one)["attempt_count"], state(one)["excused_count"]) == (1, 1)
    circuits = circuit_breaker.circuit_states(now=NOON)
    assert circuits is not None
    assert [(c.account, c.state) for c in circuits] == [(fcm.account, circuit_breaker.State.OPEN)]
    assert all(stored_device(phone)["is_active"] for phone in phones)
    tokens(fcm)
    assert deliver(two).counts == {"pending": 1}
    assert (tokens(fcm), state(two)["attempt_count"]) == ([], 0)
    fcm.always(taken)
    assert deliver(one, two, at=NOON + HOUR).counts["sent"] == 1
