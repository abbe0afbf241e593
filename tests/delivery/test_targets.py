"""Targets of a delivery: one address, or each device that has not got it yet."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from delivery.targets import SendTarget
from devices import registration, status
from devices.models import DeactivationReason, Platform
from devices.preferences import Preferences
from devices.status import Evidence
from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import AttemptStatus, Category, Channel, DeliveryStatus, Priority
from notifications import store
from notifications.store import ClaimedDelivery, ProviderAnswer, TargetAttempt
from recipients import service_windows
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, device, settlement
from tests.support.factories.push_targets import aimed_at, parked, push, resolve_targets
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")


EMAIL, PUSH, WHATSAPP, IN_APP = Channel

S = DeliveryStatus

MINUTE = timedelta(minutes=1)

HOUR = timedelta(hours=1)


def asleep(start: str, end: str, **zone: str) -> Preferences:
    return Preferences(quiet_hours={"enabled": True, "start": start, "end": end, **zone})


@pytest.mark.parametrize(
    ("channel", "address"),
    [(EMAIL, "ada@example.com"), (WHATSAPP, "+351912345678"), (IN_APP, "ada")],
)
def test_a_channel_without_devices_has_one_address(channel: Channel, address: str) -> None:
    one = factories.claimed(channel=channel, send_at=NOON - HOUR, created_at=NOON - 2 * HOUR)
    aimed = resolve_targets(one, channel=channel)
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
    (target,) = resolve_targets(one, channel=WHATSAPP).targets[one.reference]
    assert target.window_open is is_open


def test_a_push_goes_to_every_active_device_of_its_user() -> None:
    phone, tablet = device("phone"), device("tablet", platform=Platform.IOS)
    device("bobs", user_id="bob")
    one = push()
    assert set(resolve_targets(one).targets[one.reference]) == {
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
    aimed = resolve_targets(*claims.values())
    assert {
        user: [target.device_id for target in aimed.targets[one.reference]]
        for user, one in claims.items()
    } == {user: [phone] for user, phone in phones.items()}


def test_a_person_without_a_device_cannot_be_pushed_to() -> None:
    why = parked(push())
    assert (why.status, why.code) == (S.FAILED, FailureCode.NO_ADDRESS)
    assert why.reason == "No active device."


def test_a_device_that_was_switched_off_gets_nothing() -> None:
    phone = device("phone")
    status.deactivate(
        device_ids=[phone],
        reason=DeactivationReason.BY_USER,
        evidence=Evidence(at=NOON, source="api"),
        now=NOON,
    )
    assert parked(push()).code is FailureCode.NO_ADDRESS


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


def test_a_device_in_its_quiet_hours_is_left_out_and_it_is_told_when_it_wakes() -> None:
    phone = device("phone")
    device("tablet", preferences=asleep("11:00", "13:00"))
    device("watch", preferences=asleep("11:00", "12:30"))
    one = push()
    aimed = resolve_targets(one)
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
    assert resolve_targets(one).in_quiet_hours == {}


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


ENDS = {
    "sent": (AttemptStatus.SENT, None),
    "busy": (AttemptStatus.FAILED, FailureCode.PROVIDER_ERROR),
    "refused": (AttemptStatus.FAILED, FailureCode.REJECTED),
    "dead": (AttemptStatus.FAILED, FailureCode.INVALID_RECIPIENT),
    "unknown": (AttemptStatus.UNKNOWN, FailureCode.TIMEOUT),
}


def attempt(
    one: ClaimedDelivery, status: DeliveryStatus, at: datetime, outcomes: dict[str, str]
) -> None:
    """Let an attempt end so at each device, and the delivery in ``status``."""
    begun = factories.start(replace(one, device_ids=tuple(outcomes)), at=at, provider="fcm")
    tries = [
        TargetAttempt(
            device_id=device_id,
            status=ENDS[end][0],
            finished_at=at,
            duration_ms=1,
            answer=ProviderAnswer(provider="fcm"),
            code=ENDS[end][1],
            reason=f"It was {end}.",
        )
        for device_id, end in outcomes.items()
    ]
    reached = [device_id for device_id, end in outcomes.items() if end == "sent"]
    have = (*begun.accepted_targets, *reached)
    outcome = settlement(begun, status, at=at, target_attempts=tuple(tries), accepted_targets=have)
    store.settle([outcome], now=at)


def tried(one: ClaimedDelivery, *, at: datetime = NOON, **outcomes: str) -> ClaimedDelivery:
    """Let an attempt end so at each device; return the delivery, claimed anew."""
    attempt(one, S.PENDING, at, outcomes)
    return factories.claim(one.notification_id, at=at + 5 * MINUTE, channel=PUSH)


def test_a_retry_goes_only_to_devices_that_have_not_got_it() -> None:
    phone, tablet = device("phone"), device("tablet")
    again = tried(push(), **{phone: "sent", tablet: "busy"})
    assert aimed_at(again) == [tablet]


def test_it_is_sent_when_the_devices_that_are_left_have_it() -> None:
    phone, tablet = device("phone"), device("tablet")
    again = tried(push(), **{phone: "sent", tablet: "busy"})
    registration.remove(device_id=tablet)
    assert parked(again).status is S.SENT


def test_what_is_called_off_when_one_device_has_it_is_sent() -> None:
    again = tried(push(), phone="sent", tablet="busy")
    after = store.cancel(
        notification_id=again.notification_id, channels=[PUSH], reason="Enough.", now=NOON
    )
    assert after is not None
    (withdrawn,) = after["delivery"]
    assert (withdrawn["status"], after["status"]) == ("sent", "sent")
    assert withdrawn["sent_at"] == NOON
    assert withdrawn["failure_code"] is withdrawn["failure_reason"] is None
    assert "due_at" not in after


def test_a_push_that_one_device_has_is_sent_when_its_person_is_erased() -> None:
    again = tried(push(user_id="ada"), phone="sent", tablet="busy")
    store.erase(store.erasable(user_id="ada", limit=1), user_id="ada", now=NOON)
    assert factories.read(again.notification_id)["status"] == "sent"


def test_what_is_called_off_when_no_device_has_it_is_cancelled() -> None:
    again = tried(push(), phone="busy", tablet="busy")
    store.cancel_pending(ids=[again.notification_id], reason="$Enough", now=NOON)
    (withdrawn,) = factories.read(again.notification_id)["delivery"]
    assert (withdrawn["status"], withdrawn["failure_reason"]) == ("cancelled", "$Enough")
    assert withdrawn.get("sent_at") is None


def test_a_device_that_refused_it_for_good_is_not_asked_again() -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    again = tried(push(), **{phone: "refused", tablet: "busy", watch: "dead"})
    assert aimed_at(again) == [tablet]


def test_what_all_devices_that_are_left_refused_has_failed_of_that() -> None:
    phone, tablet = device("phone"), device("tablet")
    again = tried(push(), **{phone: "refused", tablet: "busy"})
    registration.remove(device_id=tablet)
    why = parked(again)
    assert (why.status, why.code) == (S.FAILED, FailureCode.REJECTED)
    assert why.reason == "It was refused."


def test_what_an_operator_opens_again_goes_to_devices_that_refused_it_too() -> None:
    phone = device("phone")
    one = push()
    attempt(one, S.FAILED, NOON, {phone: "refused"})
    later, ids = NOON + HOUR, one.notification_id
    store.reopen(notification_id=ids, channels=[PUSH], extra_attempts=1, now=later)
    again = factories.claim(ids, at=later, channel=PUSH)
    assert aimed_at(again, now=later) == [phone]


def test_a_device_that_may_have_it_is_not_sent_a_second_copy_if_another_has_it() -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    again = tried(push(), **{phone: "sent", tablet: "unknown", watch: "busy"})
    assert aimed_at(again) == [watch]


def test_a_device_that_may_have_it_is_tried_again_if_its_type_says_so_and_nobody_has_it() -> None:
    phone, tablet = device("phone"), device("tablet")
    again = tried(push(), **{phone: "unknown", tablet: "busy"})
    assert set(aimed_at(again)) == {phone, tablet}


def test_the_last_attempt_at_a_device_is_the_one_that_says_how_it_stands() -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    again = tried(push(), **{phone: "unknown", tablet: "busy", watch: "busy"})
    third = tried(again, at=NOON + 5 * MINUTE, **{phone: "busy", tablet: "sent", watch: "unknown"})
    assert aimed_at(third, now=NOON + 10 * MINUTE) == [phone]


def test_a_device_that_has_it_by_the_log_has_it() -> None:
    """The worker wrote the attempt's record and was lost before it wrote the delivery."""
    phone, tablet = device("phone"), device("tablet")
    again = tried(push(), **{phone: "sent", tablet: "busy"})
    forgetful = replace(again, accepted_targets=())
    assert aimed_at(forgetful) == [tablet]
    registration.remove(device_id=tablet)
    assert parked(forgetful).status is S.SENT


def test_earlier_attempts_are_read_only_if_there_were_any_and_by_their_index() -> None:
    phone, tablet = device("phone"), device("tablet")
    first = push()
    with plans("delivery_attempts") as found:
        resolve_targets(first)
    assert found == []
    again = tried(first, **{phone: "sent", tablet: "busy"})
    with plans("delivery_attempts") as found:
        resolve_targets(again)
    (plan,) = found
    assert plan.is_indexed
    assert (plan.examined, plan.sorts) == (2, False)
