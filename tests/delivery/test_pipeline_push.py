"""Dispatching a push: an attempt for each device, and one status for all."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import circuit_breaker, sweeper
from devices import registration
from devices.models import Platform
from domain.channels import Channel
from domain.errors import ProviderResponse
from domain.states import Priority
from notifications.receipts import device_receipts
from notifications.receipts.device_receipts import DeviceEvent
from notifications.store import actions, leases, recovery
from notifications.store.leases import LEASE
from notifications.store.references import AttemptReference
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON, device, stored_device, tries
from tests.support.factories.push import (
    RETRY,
    deliver,
    delivery_status,
    in_quiet_hours,
    push,
    state,
    tokens,
)
from tests.support.fakes.provider import (
    Outcome,
    ScriptedProvider,
    Slow,
    by_recipient,
    channel_unavailable,
    invalid_token,
    provider_error,
    refused,
    timeout,
)
from tests.support.fakes.provider import accepted as taken

pytestmark = pytest.mark.usefixtures("db", "broker")


PUSH = Channel.PUSH
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


def test_each_device_is_an_attempt_with_its_own_reference(fcm: ScriptedProvider) -> None:
    phone, tablet = device("phone"), device("tablet", platform=Platform.IOS)
    notification_id = push()
    assert deliver(notification_id).counts == {"sent": 1}
    assert {(o.reference, o.notification_id, o.recipient, o.platform) for o in fcm.seen} == {
        (f"{notification_id}.push.1.{phone}", str(notification_id), "phone", "android"),
        (f"{notification_id}.push.1.{tablet}", str(notification_id), "tablet", "ios"),
    }
    assert {AttemptReference.parse(o.reference) for o in fcm.seen} == {
        AttemptReference(notification_id, PUSH, 1, phone),
        AttemptReference(notification_id, PUSH, 1, tablet),
    }
    assert tries(notification_id) == {(1, phone): ("sent", None), (1, tablet): ("sent", None)}
    assert set(state(notification_id)["accepted_targets"]) == {phone, tablet}


def test_response_for_each_device_is_recorded(fcm: ScriptedProvider) -> None:
    phone, tablet = device("phone"), device("tablet")
    invalid = ProviderResponse(status=404, code="UNREGISTERED")
    fcm.behave = by_recipient(
        {
            "phone": lambda: taken(provider_id="m-1"),
            "tablet": lambda: invalid_token(response=invalid),
        }
    )
    notification_id = push()
    deliver(notification_id)
    records = {record["device_id"]: record for record in factories.attempts(notification_id)}
    assert records[phone]["provider_message_id"] == "m-1"
    assert records[tablet]["error_message"] == "Device token invalid"
    assert records[tablet]["platform_response"] == {"status": 404, "code": "UNREGISTERED"}
    assert {record["provider"] for record in records.values()} == {"fcm"}


def test_one_accepted_device_of_three_makes_it_sent(fcm: ScriptedProvider) -> None:
    phone, *gone = (device(token) for token in ("phone", "old", "older"))
    fcm.behave = by_recipient({"old": invalid_token, "older": invalid_token})
    notification_id = push()
    assert deliver(notification_id).counts == {"sent": 1}
    assert delivery_status(notification_id) == ("sent", None)
    assert state(notification_id)["accepted_targets"] == [phone]
    invalid = {(1, device_id): ("failed", "invalid_recipient") for device_id in gone}
    assert tries(notification_id) == {(1, phone): ("sent", None), **invalid}


def test_push_with_only_invalid_devices_fails(fcm: ScriptedProvider) -> None:
    device("old")
    device("older")
    fcm.always(invalid_token)
    notification_id = push()
    assert deliver(notification_id).counts == {"failed": 1}
    assert delivery_status(notification_id) == ("failed", "invalid_recipient")
    assert state(notification_id)["failure_reason"] == "Device token invalid"
    assert factories.read(notification_id)["error"] == "Device token invalid"


def test_retry_reaches_only_devices_that_did_not_accept(fcm: ScriptedProvider) -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    fcm.behave = by_recipient({"tablet": provider_error, "watch": refused})
    notification_id = push()
    assert deliver(notification_id).counts == {"pending": 1}
    assert state(notification_id)["accepted_targets"] == [phone]
    assert tokens(fcm) == ["phone", "tablet", "watch"]
    fcm.always(taken)
    assert deliver(notification_id, at=RETRY).counts == {"sent": 1}
    assert tokens(fcm) == ["tablet"]
    assert set(state(notification_id)["accepted_targets"]) == {phone, tablet}
    assert tries(notification_id) == {
        (1, phone): ("sent", None),
        (1, tablet): ("failed", "provider_error"),
        (1, watch): ("failed", "rejected"),
        (2, tablet): ("sent", None),
    }


def test_ambiguous_device_gets_no_second_copy_if_another_accepted(fcm: ScriptedProvider) -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    fcm.behave = by_recipient({"tablet": timeout, "watch": provider_error})
    notification_id = push()
    deliver(notification_id)
    tokens(fcm)
    deliver(notification_id, at=RETRY)
    assert tokens(fcm) == ["watch"]
    assert tries(notification_id)[1, tablet] == ("unknown", "timeout")
    assert tries(notification_id)[1, phone] == ("sent", None)
    assert delivery_status(notification_id)[0] == "pending"
    assert watch not in state(notification_id)["accepted_targets"]


def test_devices_of_a_batch_belong_to_their_own_recipients(fcm: ScriptedProvider) -> None:
    phones = {user: device(f"{user}s", user_id=user) for user in ("ada", "bob", "eve")}
    fcm.behave = by_recipient({"bobs": invalid_token})
    ids = {user: push(user_id=user) for user in phones}
    assert deliver(*ids.values()).counts == {"sent": 2, "failed": 1}
    for user, notification_id in ids.items():
        assert list(tries(notification_id)) == [(1, phones[user])]


class Killed(BaseException):
    """Stands for the end of the process."""


def test_worker_killed_while_sending_leaves_every_device_unknown(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone, tablet = device("phone"), device("tablet")
    notification_id = push()

    def die(*_args: object, **_options: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(leases, "settle", die)
        with pytest.raises(Killed):
            deliver(notification_id)
    assert tries(notification_id) == {(1, phone): ("started", None), (1, tablet): ("started", None)}
    assert recovery.expire_leases(now=NOON + LEASE) == 1
    assert delivery_status(notification_id) == ("unknown", "worker_lost")
    lost = ("unknown", "worker_lost")
    assert tries(notification_id) == {(1, phone): lost, (1, tablet): lost}


@pytest.mark.usefixtures("one_at_a_time")
def test_unsent_devices_are_sent_next(fcm: ScriptedProvider) -> None:
    """Ten devices at fifteen seconds each exceed a lease of ninety seconds."""
    ids = {device(f"phone-{n}") for n in range(10)}
    slow = fcm.behave = Slow(takes=15 * SECOND, now=NOON)
    notification_id = push()
    assert deliver(notification_id, clock=slow.clock).counts == {"pending": 1}
    have = set(state(notification_id)["accepted_targets"])
    assert len(have) == len(fcm.seen) == 5
    records = tries(notification_id)
    assert {records[1, device_id] for device_id in have} == {("sent", None)}
    assert {records[1, device_id] for device_id in ids - have} == {("expired", None)}
    assert deliver(notification_id, clock=slow.clock).counts == {"sent": 1}
    assert len({outbound.recipient for outbound in fcm.seen}) == len(fcm.seen) == 10
    assert set(state(notification_id)["accepted_targets"]) == ids
    assert state(notification_id)["uncounted_attempts"] == 1


@pytest.mark.usefixtures("one_at_a_time")
def test_push_that_expires_midway_is_sent_if_one_device_accepted(fcm: ScriptedProvider) -> None:
    slow = fcm.behave = Slow(takes=15 * SECOND, now=NOON)
    device("phone")
    device("tablet")
    notification_id = push(expires_at=NOON + 10 * SECOND)
    deliver(notification_id, clock=slow.clock)
    assert len(fcm.seen) == 1
    assert delivery_status(notification_id) == ("sent", None)


def test_push_that_expires_before_its_retry_is_sent_if_accepted(fcm: ScriptedProvider) -> None:
    device("phone")
    device("tablet")
    fcm.behave = by_recipient({"tablet": provider_error})
    notification_id = push(expires_at=NOON + 20 * MINUTE)
    deliver(notification_id)
    assert deliver(notification_id, at=NOON + 20 * MINUTE).counts == {"sent": 1}
    assert delivery_status(notification_id) == ("sent", None)
    assert state(notification_id)["sent_at"] == NOON + 20 * MINUTE


HOUR = timedelta(hours=1)


def test_push_without_a_device_is_suppressed(fcm: ScriptedProvider) -> None:
    notification_id = push()
    assert deliver(notification_id).counts == {"suppressed": 1}
    assert delivery_status(notification_id) == ("suppressed", "no_address")
    assert state(notification_id)["failure_reason"] == "No device registered."
    assert factories.read(notification_id)["status"] == "suppressed"
    assert (fcm.seen, factories.attempts(notification_id)) == ([], [])


def test_push_whose_device_leaves_before_its_retry_is_suppressed(fcm: ScriptedProvider) -> None:
    phone = device("phone")
    fcm.behave = by_recipient({"phone": provider_error})
    notification_id = push()
    assert deliver(notification_id).counts == {"pending": 1}
    registration.remove(device_id=phone)
    assert deliver(notification_id, at=RETRY).counts == {"suppressed": 1}
    assert delivery_status(notification_id) == ("suppressed", "no_address")


def test_push_waits_for_the_first_device_to_leave_quiet_hours(fcm: ScriptedProvider) -> None:
    device("phone", preferences=in_quiet_hours("13:00"))
    device("tablet", preferences=in_quiet_hours("14:00"))
    notification_id = push()
    report = deliver(notification_id)
    assert [wakeup.at for wakeup in report.wakeups] == [NOON + HOUR]
    assert (delivery_status(notification_id), state(notification_id)["attempt_count"]) == (
        ("pending", "quiet_hours"),
        0,
    )
    assert deliver(notification_id, at=NOON + HOUR).counts == {"sent": 1}
    assert tokens(fcm) == ["phone"]


def test_device_in_quiet_hours_gets_it_later_if_others_are_invalid(fcm: ScriptedProvider) -> None:
    device("old")
    device("tablet", preferences=in_quiet_hours("13:00"))
    fcm.behave = by_recipient({"old": invalid_token})
    notification_id = push()
    assert deliver(notification_id).counts == {"pending": 1}
    assert delivery_status(notification_id) == ("pending", "quiet_hours")
    assert deliver(notification_id, at=NOON + HOUR).counts == {"sent": 1}
    assert tokens(fcm) == ["old", "tablet"]


def test_invalid_token_deactivates_its_device_with_evidence(fcm: ScriptedProvider) -> None:
    old, phone = device("old"), device("phone")
    answer = ProviderResponse(status=404, code="UNREGISTERED")
    fcm.behave = by_recipient({"old": lambda: invalid_token(response=answer)})
    notification_id = push()
    deliver(notification_id)
    deactivated = stored_device(old)
    assert (deactivated["is_active"], deactivated["deactivation_reason"]) == (False, "unregistered")
    assert deactivated["deactivation_evidence"] == {
        "at": NOON,
        "source": "fcm",
        "code": "UNREGISTERED",
        "notification_id": str(notification_id),
    }
    assert stored_device(phone)["is_active"]
    tokens(fcm)
    deliver(push())
    assert tokens(fcm) == ["phone"]


def test_unavailable_channel_opens_the_circuit_and_uses_no_attempt(fcm: ScriptedProvider) -> None:
    phones = [device("phone"), device("tablet")]
    fcm.always(channel_unavailable)
    first, two = push(), push()
    assert deliver(first).counts == {"pending": 1}
    assert delivery_status(first) == ("pending", "channel_unavailable")
    assert (state(first)["attempt_count"], state(first)["uncounted_attempts"]) == (1, 1)
    circuits = circuit_breaker.circuit_states(now=NOON)
    assert circuits is not None
    assert [(c.name, c.state) for c in circuits] == [(fcm.account, circuit_breaker.State.OPEN)]
    assert all(stored_device(phone)["is_active"] for phone in phones)
    tokens(fcm)
    assert deliver(two).counts == {"pending": 1}
    assert (tokens(fcm), state(two)["attempt_count"]) == ([], 0)
    fcm.always(taken)
    assert deliver(first, two, at=NOON + HOUR).counts["sent"] == 1


AT_MOST_ONCE: dict[str, Any] = {"type": "marketing"}
"""Its type fails unknown outcomes."""

AT_LEAST_ONCE: dict[str, Any] = {"type": "payment_confirmed"}
"""Its type retries unknown outcomes."""


def ambiguous_push(
    fcm: ScriptedProvider, *, tablet: Callable[[], Outcome] = provider_error, **fields: Any
) -> tuple[ObjectId, str, str]:
    """Return a push that is ambiguous on a phone and failed on a tablet."""
    phone, other = device("phone"), device("tablet")
    fcm.behave = by_recipient({"phone": timeout, "tablet": tablet})
    notification_id = push(**fields)
    assert deliver(notification_id).counts == {"pending": 1}
    assert tries(notification_id)[1, phone] == ("unknown", "timeout")
    fcm.always(taken)
    tokens(fcm)
    return notification_id, phone, other


def recipients_at(fcm: ScriptedProvider, notification_id: ObjectId, at: datetime) -> list[str]:
    deliver(notification_id, at=at)
    return tokens(fcm)


def test_retry_skips_the_ambiguous_device(fcm: ScriptedProvider) -> None:
    notification_id, phone, tablet = ambiguous_push(fcm, **AT_MOST_ONCE)
    assert (delivery_status(notification_id), state(notification_id)["ambiguous_targets"]) == (
        ("pending", "timeout"),
        [phone],
    )
    assert recipients_at(fcm, notification_id, RETRY) == ["tablet"]
    assert delivery_status(notification_id) == ("sent", None)
    assert (
        state(notification_id)["accepted_targets"],
        state(notification_id)["ambiguous_targets"],
    ) == ([tablet], [])


def test_failure_of_the_other_devices_leaves_it_unknown(fcm: ScriptedProvider) -> None:
    notification_id, phone, tablet = ambiguous_push(fcm, **AT_MOST_ONCE)
    fcm.always(invalid_token)
    assert recipients_at(fcm, notification_id, RETRY) == ["tablet"]
    assert delivery_status(notification_id) == ("unknown", "outcome_unknown")
    assert sweeper.resolve_unknown_outcomes(now=RETRY) == 1
    assert delivery_status(notification_id) == ("failed", "outcome_unknown")
    assert recipients_at(fcm, notification_id, RETRY + HOUR) == []
    assert tries(notification_id) == {
        (1, phone): ("unknown", "timeout"),
        (1, tablet): ("failed", "provider_error"),
        (2, tablet): ("failed", "invalid_recipient"),
    }


def test_removal_of_the_other_devices_leaves_it_unknown(fcm: ScriptedProvider) -> None:
    notification_id, _, tablet = ambiguous_push(fcm, **AT_MOST_ONCE)
    registration.remove(device_id=tablet)
    assert recipients_at(fcm, notification_id, RETRY) == []
    assert delivery_status(notification_id) == ("failed", "outcome_unknown")


def test_device_in_quiet_hours_gets_it_after_them(fcm: ScriptedProvider) -> None:
    device("phone")
    device("tablet", preferences=in_quiet_hours("13:00"))
    fcm.always(timeout)
    notification_id = push(**AT_MOST_ONCE)
    deliver(notification_id)
    fcm.always(taken)
    tokens(fcm)
    assert recipients_at(fcm, notification_id, NOON + 5 * MINUTE) == []
    assert (delivery_status(notification_id), state(notification_id)["next_attempt_at"]) == (
        ("pending", "quiet_hours"),
        NOON + HOUR,
    )
    assert recipients_at(fcm, notification_id, NOON + HOUR) == ["tablet"]
    assert delivery_status(notification_id) == ("sent", None)


def test_reopened_push_goes_to_the_ambiguous_device_too(fcm: ScriptedProvider) -> None:
    notification_id, _, tablet = ambiguous_push(fcm, **AT_MOST_ONCE)
    registration.remove(device_id=tablet)
    deliver(notification_id, at=RETRY)
    later = RETRY + HOUR
    actions.reopen(notification_id=notification_id, channels=[Channel.PUSH], now=later)
    assert recipients_at(fcm, notification_id, later) == ["phone"]
    assert delivery_status(notification_id) == ("sent", None)


def test_retry_policy_sends_to_all_again(fcm: ScriptedProvider) -> None:
    notification_id, *_ = ambiguous_push(fcm, **AT_LEAST_ONCE)
    assert recipients_at(fcm, notification_id, RETRY) == ["phone", "tablet"]
    assert (delivery_status(notification_id), state(notification_id)["ambiguous_targets"]) == (
        ("sent", None),
        [],
    )


def test_ambiguous_device_has_time_to_report_before_its_retry(fcm: ScriptedProvider) -> None:
    """Other devices are retried after 15 seconds, but a receipt can take 30 seconds."""
    notification_id, *_ = ambiguous_push(fcm, **AT_LEAST_ONCE, priority=Priority.CRITICAL)
    fcm.always(provider_error)
    assert recipients_at(fcm, notification_id, NOON + 18 * SECOND) == ["tablet"]
    assert recipients_at(fcm, notification_id, NOON + 54 * SECOND) == ["phone", "tablet"]


def test_retry_waits_for_the_receipt_when_the_others_are_removed(fcm: ScriptedProvider) -> None:
    notification_id, _, tablet = ambiguous_push(fcm, **AT_LEAST_ONCE, priority=Priority.CRITICAL)
    registration.remove(device_id=tablet)
    assert recipients_at(fcm, notification_id, NOON + 18 * SECOND) == []
    waiting = state(notification_id)
    assert (waiting["status"], waiting["next_attempt_at"]) == ("pending", NOON + 30 * SECOND)
    assert recipients_at(fcm, notification_id, NOON + 30 * SECOND) == ["phone"]


def test_silent_device_is_sent_to_no_more_than_max_attempts(fcm: ScriptedProvider) -> None:
    """The limit applies even while another device waits for its platform without using attempts."""
    fcm.behave = by_recipient({"phone": timeout, "tablet": channel_unavailable})
    device("phone")
    device("tablet")
    notification_id = push(**AT_LEAST_ONCE, max_attempts=3)
    at = NOON
    while state(notification_id)["status"] == "pending" and at < NOON + 12 * HOUR:
        deliver(notification_id, at=at)
        at = max(at, state(notification_id)["next_attempt_at"] or at)
    assert tokens(fcm).count("phone") == 3
    assert delivery_status(notification_id)[0] == "pending"


@pytest.mark.parametrize("kind", [AT_MOST_ONCE, AT_LEAST_ONCE])
def test_receipt_resolves_an_ambiguous_device(fcm: ScriptedProvider, kind: dict[str, Any]) -> None:
    notification_id, phone, tablet = ambiguous_push(fcm, **kind)
    device_receipts.apply_device_receipt(
        device_id=phone,
        notification_id=notification_id,
        client_id=CLIENT,
        event=DeviceEvent.DELIVERED,
        now=NOON + SECOND,
    )
    assert recipients_at(fcm, notification_id, RETRY) == ["tablet"]
    assert delivery_status(notification_id) == ("delivered", None)
    assert state(notification_id)["accepted_targets"] == [phone, tablet]
