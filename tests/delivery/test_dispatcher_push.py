"""A push on the real store: an attempt at each of a person's devices, and one fate for all."""

from datetime import timedelta

import pytest

from devices.models import Platform
from domain.errors import ProviderResponse
from domain.states import Channel
from notifications import store
from notifications.store import LEASE, AttemptReference
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, device, tries
from tests.support.factories.push import RETRY, deliver, fate, push, state, tokens
from tests.support.fakes.provider import Scripted, Slow, busy, by_recipient, dead, refused, silent
from tests.support.fakes.provider import accepted as taken

pytestmark = pytest.mark.usefixtures("db", "broker")

PUSH = Channel.PUSH
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


# An attempt at each device.


def test_every_device_is_an_attempt_with_a_reference_of_its_own(fcm: Scripted) -> None:
    phone, tablet = device("phone"), device("tablet", platform=Platform.IOS)
    one = push()
    assert deliver(one).counts == {"sent": 1}
    assert {(o.reference, o.notification_id, o.recipient, o.platform) for o in fcm.seen} == {
        (f"{one}.push.1.{phone}", str(one), "phone", "android"),
        (f"{one}.push.1.{tablet}", str(one), "tablet", "ios"),
    }
    assert {AttemptReference.parse(o.reference) for o in fcm.seen} == {
        AttemptReference(one, PUSH, 1, phone),
        AttemptReference(one, PUSH, 1, tablet),
    }
    assert tries(one) == {(1, phone): ("sent", None), (1, tablet): ("sent", None)}
    assert set(state(one)["accepted_targets"]) == {phone, tablet}


def test_what_each_device_was_answered_is_on_record(fcm: Scripted) -> None:
    phone, tablet = device("phone"), device("tablet")
    invalid = ProviderResponse(status=404, code="UNREGISTERED")
    fcm.behave = by_recipient(
        {"phone": lambda: taken(provider_id="m-1"), "tablet": lambda: dead(response=invalid)}
    )
    one = push()
    deliver(one)
    records = {record["device_id"]: record for record in factories.attempts(one)}
    assert records[phone]["provider_message_id"] == "m-1"
    assert records[tablet]["error_message"] == "Device token invalid"
    assert records[tablet]["platform_response"] == {"status": 404, "code": "UNREGISTERED"}
    assert {record["provider"] for record in records.values()} == {"fcm"}


def test_one_device_of_three_that_takes_it_is_enough(fcm: Scripted) -> None:
    phone, *gone = (device(token) for token in ("phone", "old", "older"))
    fcm.behave = by_recipient({"old": dead, "older": dead})
    one = push()
    assert deliver(one).counts == {"sent": 1}
    assert fate(one) == ("sent", None)
    assert state(one)["accepted_targets"] == [phone]
    dead_ones = {(1, one): ("failed", "invalid_recipient") for one in gone}
    assert tries(one) == {(1, phone): ("sent", None), **dead_ones}


def test_a_push_whose_devices_are_all_dead_has_failed(fcm: Scripted) -> None:
    device("old")
    device("older")
    fcm.always(dead)
    one = push()
    assert deliver(one).counts == {"failed": 1}
    assert fate(one) == ("failed", "invalid_recipient")
    assert state(one)["failure_reason"] == "Device token invalid"
    assert factories.read(one)["error"] == "Device token invalid"


def test_a_retry_reaches_only_the_devices_that_did_not_get_it(fcm: Scripted) -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    fcm.behave = by_recipient({"tablet": busy, "watch": refused})
    one = push()
    assert deliver(one).counts == {"pending": 1}
    assert state(one)["accepted_targets"] == [phone]
    assert tokens(fcm) == ["phone", "tablet", "watch"]
    fcm.always(taken)
    assert deliver(one, at=RETRY).counts == {"sent": 1}
    assert tokens(fcm) == ["tablet"]
    assert set(state(one)["accepted_targets"]) == {phone, tablet}
    assert tries(one) == {
        (1, phone): ("sent", None),
        (1, tablet): ("failed", "provider_error"),
        (1, watch): ("failed", "rejected"),
        (2, tablet): ("sent", None),
    }


def test_retries_that_are_used_up_leave_it_sent(fcm: Scripted) -> None:
    device("phone")
    device("tablet")
    fcm.behave = by_recipient({"tablet": busy})
    one = push(max_attempts=2)
    deliver(one)
    assert deliver(one, at=RETRY).counts == {"sent": 1}
    assert fate(one) == ("sent", None)


def test_a_device_that_may_have_it_gets_no_second_copy_if_another_has_it(fcm: Scripted) -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    fcm.behave = by_recipient({"tablet": silent, "watch": busy})
    one = push()
    deliver(one)
    tokens(fcm)
    deliver(one, at=RETRY)
    assert tokens(fcm) == ["watch"]
    assert tries(one)[1, tablet] == ("unknown", "timeout")
    assert tries(one)[1, phone] == ("sent", None)
    assert fate(one)[0] == "pending"
    assert watch not in state(one)["accepted_targets"]


def test_a_push_that_nobody_answered_for_is_unknown(fcm: Scripted) -> None:
    phone, tablet = device("phone"), device("tablet")
    fcm.always(silent)
    one = push()
    assert deliver(one).counts == {"unknown": 1}
    assert tries(one) == {(1, phone): ("unknown", "timeout"), (1, tablet): ("unknown", "timeout")}


def test_the_devices_of_a_batch_are_each_their_own_persons(fcm: Scripted) -> None:
    phones = {user: device(f"{user}s", user_id=user) for user in ("ada", "bob", "eve")}
    fcm.behave = by_recipient({"bobs": dead})
    ids = {user: push(user_id=user) for user in phones}
    assert deliver(*ids.values()).counts == {"sent": 2, "failed": 1}
    for user, one in ids.items():
        assert list(tries(one)) == [(1, phones[user])]


# A worker that is lost, a lease that is short.


class Killed(BaseException):
    """The process ends here."""


def test_a_worker_killed_while_it_sent_leaves_every_device_in_doubt(
    fcm: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    phone, tablet = device("phone"), device("tablet")
    one = push()

    def die(*_args: object, **_options: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(store, "settle", die)
        with pytest.raises(Killed):
            deliver(one)
    assert tries(one) == {(1, phone): ("started", None), (1, tablet): ("started", None)}
    assert store.expire_leases(now=NOON + LEASE) == 1
    assert fate(one) == ("unknown", "worker_lost")
    lost = ("unknown", "worker_lost")
    assert tries(one) == {(1, phone): lost, (1, tablet): lost}


@pytest.mark.usefixtures("one_thread")
def test_devices_there_was_no_time_for_are_next(fcm: Scripted) -> None:
    """A provider that takes fifteen seconds for each of ten devices: a lease is ninety."""
    ids = {device(f"phone-{n}") for n in range(10)}
    slowly = fcm.behave = Slow(takes=15 * SECOND, now=NOON)
    one = push()
    assert deliver(one, clock=slowly.clock).counts == {"pending": 1}
    have = set(state(one)["accepted_targets"])
    assert len(have) == len(fcm.seen) == 5
    records = tries(one)
    assert {records[1, device_id] for device_id in have} == {("sent", None)}
    assert {records[1, device_id] for device_id in ids - have} == {("expired", None)}
    assert deliver(one, clock=slowly.clock).counts == {"sent": 1}
    assert len({outbound.recipient for outbound in fcm.seen}) == len(fcm.seen) == 10
    assert set(state(one)["accepted_targets"]) == ids
    assert state(one)["excused_count"] == 1


@pytest.mark.usefixtures("one_thread")
def test_a_push_that_expires_half_way_is_sent_to_those_who_have_it(fcm: Scripted) -> None:
    slowly = fcm.behave = Slow(takes=15 * SECOND, now=NOON)
    device("phone")
    device("tablet")
    one = push(expires_at=NOON + 10 * SECOND)
    deliver(one, clock=slowly.clock)
    assert len(fcm.seen) == 1
    assert fate(one) == ("sent", None)


def test_a_push_that_expires_before_its_retry_is_sent_if_one_device_has_it(fcm: Scripted) -> None:
    device("phone")
    device("tablet")
    fcm.behave = by_recipient({"tablet": busy})
    one = push(expires_at=NOON + 20 * MINUTE)
    deliver(one)
    report = deliver(one, at=NOON + 20 * MINUTE)
    assert report.counts == {"sent": 1}
    assert fate(one) == ("sent", None)
    assert state(one)["sent_at"] == NOON + 20 * MINUTE
