"""Where a delivery goes: to one address, or to each device that is to get it and has not got it."""

from datetime import timedelta

import pytest

from delivery.targets import SendTarget
from devices import status
from devices.models import DeactivationReason, Platform
from devices.preferences import Preferences
from devices.status import Evidence
from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import Category, Channel, DeliveryStatus, Priority
from recipients import service_windows
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, device
from tests.support.factories.push_targets import aim, aimed_at, parked, push

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def asleep(start: str, end: str, **zone: str) -> Preferences:
    return Preferences(quiet_hours={"enabled": True, "start": start, "end": end, **zone})


# One address.


@pytest.mark.parametrize(
    ("channel", "address"),
    [(EMAIL, "ada@example.com"), (WHATSAPP, "+351912345678"), (IN_APP, "ada")],
)
def test_a_channel_without_devices_has_one_address(channel: Channel, address: str) -> None:
    one = factories.claimed(channel=channel, send_at=NOON - HOUR, created_at=NOON - 2 * HOUR)
    aimed = aim(one, channel=channel)
    (target,) = aimed.targets[one.reference]
    assert (target.address, target.device_id, target.platform) == (address, None, "")
    assert (aimed.in_quiet_hours, aimed.deferred) == ({}, ())


@pytest.mark.parametrize(("ago", "is_open"), [(HOUR, True), (25 * HOUR, False), (None, False)])
def test_whatsapp_is_told_whether_the_person_has_written_within_a_day(
    ago: timedelta | None, is_open: bool
) -> None:
    if ago is not None:
        service_windows.record_inbound([("+351912345678", NOON - ago)], now=NOON)
    one = factories.claimed(channel=WHATSAPP)
    (target,) = aim(one, channel=WHATSAPP).targets[one.reference]
    assert target.window_open is is_open


# Whose devices.


def test_a_push_goes_to_every_active_device_of_its_user() -> None:
    phone, tablet = device("phone"), device("tablet", platform=Platform.IOS)
    device("bobs", user_id="bob")
    one = push()
    assert set(aim(one).targets[one.reference]) == {
        SendTarget(address="phone", device_id=phone, platform="android"),
        SendTarget(address="tablet", device_id=tablet, platform="ios"),
    }


def test_a_push_that_names_devices_goes_to_these() -> None:
    device("phone")
    tablet = device("tablet")
    assert aimed_at(push(recipient=Recipient(device_ids=(tablet,)))) == [tablet]


def test_a_named_device_that_is_somebody_elses_by_now_gets_nothing() -> None:
    sold = device("phone", user_id="bob")
    why = parked(push(recipient=Recipient(device_ids=(sold,))))
    assert (why.status, why.code) == (S.FAILED, FailureCode.NO_ADDRESS)


def test_a_push_to_nobody_in_particular_goes_to_the_devices_it_names() -> None:
    phone = device("phone")
    assert aimed_at(push(user_id=None, recipient=Recipient(device_ids=(phone,)))) == [phone]


def test_each_of_a_batch_goes_to_its_own_users_devices() -> None:
    phones = {user: device(f"{user}s", user_id=user) for user in ("ada", "bob", "eve")}
    claims = {user: push(user_id=user) for user in phones}
    aimed = aim(*claims.values())
    assert {
        user: [target.device_id for target in aimed.targets[one.reference]]
        for user, one in claims.items()
    } == {user: [phone] for user, phone in phones.items()}


def test_a_person_without_a_device_cannot_be_pushed_to() -> None:
    why = parked(push())
    assert (why.status, why.code) == (S.FAILED, FailureCode.NO_ADDRESS)
    assert why.reason == "There is no active device for it."


def test_a_device_that_was_switched_off_gets_nothing() -> None:
    phone = device("phone")
    status.deactivate(
        device_ids=[phone],
        reason=DeactivationReason.BY_USER,
        evidence=Evidence(at=NOON, source="api"),
        now=NOON,
    )
    assert parked(push()).code is FailureCode.NO_ADDRESS


# What they want.


@pytest.mark.parametrize(
    "wishes",
    [
        Preferences(enabled=False),
        Preferences(categories={"marketing": False}),
        Preferences(categories={"newsletter": False, "marketing": True}),
    ],
    ids=["nothing at all", "no marketing", "not this type"],
)
def test_a_device_that_does_not_want_it_is_left_out(wishes: Preferences) -> None:
    device("phone", preferences=wishes)
    tablet = device("tablet")
    assert aimed_at(push(type="newsletter", category=Category.MARKETING)) == [tablet]


def test_what_no_device_wants_is_suppressed() -> None:
    device("phone", preferences=Preferences(categories={"marketing": False}))
    why = parked(push(category=Category.MARKETING))
    assert (why.status, why.code) == (S.SUPPRESSED, FailureCode.OPTED_OUT)


def test_a_code_to_sign_in_with_comes_through_though_its_category_is_muted() -> None:
    phone = device("phone", preferences=Preferences(categories={"transactional": False}))
    assert aimed_at(push(priority=Priority.CRITICAL)) == [phone]


# When they sleep.


def test_a_device_in_its_quiet_hours_is_left_out_and_it_is_told_when_it_wakes() -> None:
    phone = device("phone")
    device("tablet", preferences=asleep("11:00", "13:00"))
    device("watch", preferences=asleep("11:00", "12:30"))
    one = push()
    aimed = aim(one)
    assert [t.device_id for t in aimed.targets[one.reference]] == [phone]
    assert aimed.in_quiet_hours == {one.reference: NOON + 30 * MINUTE}


def test_a_push_waits_for_the_first_device_to_wake_if_all_sleep() -> None:
    device("phone", preferences=asleep("11:00", "13:00"))
    device("tablet", preferences=asleep("11:00", "14:00"))
    why = parked(push())
    assert (why.status, why.code) == (S.PENDING, FailureCode.QUIET_HOURS)
    assert why.next_attempt_at == NOON + HOUR


def test_a_push_that_expires_while_all_sleep_is_over() -> None:
    device("phone", preferences=asleep("11:00", "13:00"))
    why = parked(push(expires_at=NOON + HOUR))
    assert (why.status, why.code) == (S.EXPIRED, FailureCode.QUIET_HOURS)


def test_an_urgent_push_wakes_everybody() -> None:
    phone = device("phone", preferences=asleep("11:00", "13:00"))
    one = push(priority=Priority.CRITICAL)
    assert aimed_at(one) == [phone]
    assert aim(one).in_quiet_hours == {}


@pytest.mark.parametrize(
    "where",
    [{"zone": "Asia/Tokyo"}, {"device_zone": "Asia/Tokyo"}, {"sent_zone": "Asia/Tokyo"}],
    ids=["the quiet hours'", "the device's", "the caller's"],
)
def test_quiet_hours_are_in_the_zone_that_is_known_best(where: dict[str, str]) -> None:
    """Noon in UTC is nine in the evening in Tokyo."""
    quiet = asleep("20:00", "06:00", **({"timezone": where["zone"]} if "zone" in where else {}))
    device("phone", preferences=quiet, timezone=where.get("device_zone"))
    one = push(recipient=Recipient(timezone=where.get("sent_zone")))
    assert parked(one).next_attempt_at == NOON + 9 * HOUR
