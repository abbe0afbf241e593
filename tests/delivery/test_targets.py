"""Targets of a delivery: one address, or each device that did not accept yet."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from devices import registration, status
from devices.models import DeactivationReason, Platform
from devices.preferences import Preferences
from devices.status import Evidence
from domain.channels import Channel
from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import AttemptStatus, Category, DeliveryStatus, Priority
from notifications.store import actions, leases, removal
from notifications.store.claims import ClaimedDelivery, TargetAttempt
from providers.contract import SendTarget
from recipients import service_windows
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, device, settlement
from tests.support.factories.push import claimed_push as push
from tests.support.factories.push import deferral, resolve_targets, target_ids
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")


EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def quiet_hours(start: str, result: str, **zone: str) -> Preferences:
    return Preferences(quiet_hours={"enabled": True, "start": start, "end": result, **zone})


@pytest.mark.parametrize(
    ("channel", "address"),
    [(EMAIL, "ada@example.com"), (WHATSAPP, "+351912345678"), (IN_APP, "ada")],
)
def test_channel_without_devices_has_one_address(channel: Channel, address: str) -> None:
    claim = factories.claimed(channel=channel, send_at=NOON - HOUR, created_at=NOON - 2 * HOUR)
    resolved = resolve_targets(claim, channel=channel)
    (target,) = resolved.targets[claim.reference]
    assert (target.address, target.device_id, target.platform) == (address, None, "")
    assert (resolved.in_quiet_hours, resolved.not_sent) == ({}, ())


@pytest.mark.parametrize(("ago", "is_open"), [(HOUR, True), (25 * HOUR, False), (None, False)])
def test_whatsapp_target_knows_its_service_window(ago: timedelta | None, is_open: bool) -> None:
    if ago is not None:
        service_windows.record_inbound([("+351912345678", NOON - ago)], now=NOON)
    claim = factories.claimed(channel=WHATSAPP)
    (target,) = resolve_targets(claim, channel=WHATSAPP).targets[claim.reference]
    assert target.window_open is is_open


def test_push_goes_to_every_active_device_of_its_user() -> None:
    phone, tablet = device("phone"), device("tablet", platform=Platform.IOS)
    device("bobs", user_id="bob")
    claim = push()
    assert set(resolve_targets(claim).targets[claim.reference]) == {
        SendTarget(address="phone", device_id=phone, platform="android"),
        SendTarget(address="tablet", device_id=tablet, platform="ios"),
    }


def test_push_with_device_ids_goes_to_these() -> None:
    device("phone")
    tablet = device("tablet")
    assert target_ids(push(recipient=Recipient(device_ids=(tablet,)))) == [tablet]


def test_device_id_of_another_user_gets_nothing() -> None:
    deferred = deferral(push(recipient=Recipient(device_ids=(device("phone", user_id="bob"),))))
    assert (deferred.status, deferred.code) == (S.SUPPRESSED, FailureCode.NO_ADDRESS)


def test_push_without_a_user_goes_to_its_device_ids() -> None:
    phone = device("phone")
    assert target_ids(push(user_id=None, recipient=Recipient(device_ids=(phone,)))) == [phone]


def test_deactivated_device_gets_nothing() -> None:
    phone = device("phone")
    status.deactivate(
        device_ids=[phone],
        reason=DeactivationReason.BY_USER,
        evidence=Evidence(at=NOON, source="api"),
        now=NOON,
    )
    deferred = deferral(push())
    assert (deferred.status, deferred.code) == (S.SUPPRESSED, FailureCode.NO_ADDRESS)


@pytest.mark.parametrize(
    "preferences",
    [
        Preferences(enabled=False),
        Preferences(categories={"marketing": False}),
        Preferences(categories={"newsletter": False, "marketing": True}),
    ],
    ids=["all", "category", "type"],
)
def test_device_preference_is_respected(preferences: Preferences) -> None:
    device("phone", preferences=preferences)
    tablet = device("tablet")
    assert target_ids(push(type="newsletter", category=Category.MARKETING)) == [tablet]


def test_push_that_no_device_wants_is_suppressed() -> None:
    device("phone", preferences=Preferences(categories={"marketing": False}))
    deferred = deferral(push(category=Category.MARKETING))
    assert (deferred.status, deferred.code) == (S.SUPPRESSED, FailureCode.OPTED_OUT)


def test_critical_push_ignores_muted_categories() -> None:
    phone = device("phone", preferences=Preferences(categories={"transactional": False}))
    assert target_ids(push(priority=Priority.CRITICAL)) == [phone]


def test_push_of_a_locked_type_ignores_muted_types_and_quiet_hours() -> None:
    categories = {"mfa_code": False, "transactional": False}
    phone = device("phone", preferences=Preferences(categories=categories))
    tablet = device("tablet", preferences=quiet_hours("11:00", "13:00"))
    claim = push(type="mfa_code", category=Category.TRANSACTIONAL, priority=Priority.NORMAL)
    assert set(target_ids(claim)) == {phone, tablet}


def test_device_in_quiet_hours_is_left_out() -> None:
    phone = device("phone")
    device("tablet", preferences=quiet_hours("11:00", "13:00"))
    device("watch", preferences=quiet_hours("11:00", "12:30"))
    claim = push()
    resolved = resolve_targets(claim)
    assert [t.device_id for t in resolved.targets[claim.reference]] == [phone]
    assert resolved.in_quiet_hours == {claim.reference: NOON + 30 * MINUTE}


def test_push_that_expires_in_quiet_hours_expires() -> None:
    device("phone", preferences=quiet_hours("11:00", "13:00"))
    deferred = deferral(push(expires_at=NOON + HOUR))
    assert (deferred.status, deferred.code) == (S.EXPIRED, FailureCode.QUIET_HOURS)


def test_critical_push_ignores_quiet_hours() -> None:
    phone = device("phone", preferences=quiet_hours("11:00", "13:00"))
    claim = push(priority=Priority.CRITICAL)
    assert target_ids(claim) == [phone]
    assert resolve_targets(claim).in_quiet_hours == {}


@pytest.mark.parametrize(
    "where",
    [{"zone": "Asia/Tokyo"}, {"device_zone": "Asia/Tokyo"}, {"sent_zone": "Asia/Tokyo"}],
    ids=["the quiet hours'", "the device's", "the caller's"],
)
def test_quiet_hours_use_the_most_specific_time_zone(where: dict[str, str]) -> None:
    """12:00 UTC is 21:00 in Tokyo, within the quiet hours."""
    quiet = quiet_hours(
        "20:00", "06:00", **({"timezone": where["zone"]} if "zone" in where else {})
    )
    device("phone", preferences=quiet, timezone=where.get("device_zone"))
    claim = push(recipient=Recipient(timezone=where.get("sent_zone")))
    assert deferral(claim).next_attempt_at == NOON + 9 * HOUR


ENDS = {
    "sent": (AttemptStatus.SENT, None),
    "busy": (AttemptStatus.FAILED, FailureCode.PROVIDER_ERROR),
    "refused": (AttemptStatus.FAILED, FailureCode.REJECTED),
    "dead": (AttemptStatus.FAILED, FailureCode.INVALID_RECIPIENT),
    "unknown": (AttemptStatus.UNKNOWN, FailureCode.TIMEOUT),
}


def attempt(
    claim: ClaimedDelivery, status: DeliveryStatus, at: datetime, outcomes: dict[str, str]
) -> None:
    """Start an attempt and settle it with a status, and with an outcome for each device."""
    begun = factories.start(replace(claim, device_ids=tuple(outcomes)), at=at, provider="fcm")
    records = [
        TargetAttempt(
            device_id=device_id,
            status=ENDS[result][0],
            finished_at=at,
            duration_ms=1,
            code=ENDS[result][1],
            reason=f"It was {result}.",
        )
        for device_id, result in outcomes.items()
    ]
    reached = [device_id for device_id, result in outcomes.items() if result == "sent"]
    targets = (*begun.accepted_targets, *reached)
    outcome = settlement(
        begun, status, at=at, target_attempts=tuple(records), accepted_targets=targets
    )
    leases.settle([outcome], now=at)


def attempted(claim: ClaimedDelivery, *, at: datetime = NOON, **outcomes: str) -> ClaimedDelivery:
    """Start an attempt and settle it as pending; return the next claim of the delivery."""
    attempt(claim, S.PENDING, at, outcomes)
    return factories.claim(claim.notification_id, at=at + 5 * MINUTE, channel=PUSH)


def test_push_is_sent_when_all_remaining_devices_accepted() -> None:
    phone, tablet = device("phone"), device("tablet")
    again = attempted(push(), **{phone: "sent", tablet: "busy"})
    registration.remove(device_id=tablet)
    assert deferral(again).status is S.SENT


def test_cancelled_push_is_sent_if_one_device_accepted() -> None:
    again = attempted(push(), phone="sent", tablet="busy")
    after = actions.cancel(
        notification_id=again.notification_id, channels=[PUSH], reason="Enough.", now=NOON
    )
    assert after is not None
    (withdrawn,) = after["delivery"]
    assert (withdrawn["status"], after["status"]) == ("sent", "sent")
    assert withdrawn["sent_at"] == NOON
    assert withdrawn["failure_code"] is withdrawn["failure_reason"] is None
    assert "due_at" not in after


def test_erased_push_is_sent_if_one_device_accepted() -> None:
    again = attempted(push(user_id="ada"), phone="sent", tablet="busy")
    removal.erase(removal.erasable(user_id="ada", limit=1), user_id="ada", now=NOON)
    assert factories.read(again.notification_id)["status"] == "sent"


def test_cancelled_push_is_cancelled_if_no_device_accepted() -> None:
    again = attempted(push(), phone="busy", tablet="busy")
    actions.cancel_pending(ids=[again.notification_id], reason="$Enough", now=NOON)
    (withdrawn,) = factories.read(again.notification_id)["delivery"]
    assert (withdrawn["status"], withdrawn["failure_reason"]) == ("cancelled", "$Enough")
    assert withdrawn.get("sent_at") is None


def test_permanently_failed_device_is_not_retried() -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    again = attempted(push(), **{phone: "refused", tablet: "busy", watch: "dead"})
    assert target_ids(again) == [tablet]


@pytest.mark.parametrize("removed", [("tablet",), ("tablet", "phone")])
def test_push_fails_with_the_code_of_a_device_that_refused_it(removed: tuple[str, ...]) -> None:
    phone, tablet = device("phone"), device("tablet")
    again = attempted(push(), **{phone: "refused", tablet: "busy"})
    for name in removed:
        registration.remove(device_id={"phone": phone, "tablet": tablet}[name])
    deferred = deferral(again)
    assert (deferred.status, deferred.code) == (S.FAILED, FailureCode.REJECTED)
    assert deferred.reason == "It was refused."


def test_reopened_push_goes_to_failed_devices_too() -> None:
    phone = device("phone")
    claim = push()
    attempt(claim, S.FAILED, NOON, {phone: "refused"})
    later, ids = NOON + HOUR, claim.notification_id
    actions.reopen(notification_id=ids, channels=[PUSH], now=later)
    assert target_ids(factories.claim(ids, at=later, channel=PUSH), now=later) == [phone]


def test_latest_attempt_of_a_device_counts() -> None:
    phone, tablet, watch = device("phone"), device("tablet"), device("watch")
    again = attempted(push(), **{phone: "unknown", tablet: "busy", watch: "busy"})
    third = attempted(
        again, at=NOON + 5 * MINUTE, **{phone: "busy", tablet: "sent", watch: "unknown"}
    )
    assert target_ids(third, now=NOON + 10 * MINUTE) == [phone]


def test_attempt_record_is_enough_to_know_an_acceptance() -> None:
    """The worker was lost between the writes of the attempt and the delivery."""
    phone, tablet = device("phone"), device("tablet")
    again = attempted(push(), **{phone: "sent", tablet: "busy"})
    without_targets = replace(again, accepted_targets=())
    assert target_ids(without_targets) == [tablet]
    registration.remove(device_id=tablet)
    assert deferral(without_targets).status is S.SENT


def test_earlier_attempts_are_read_only_if_needed_and_by_index() -> None:
    phone, tablet = device("phone"), device("tablet")
    first = push()
    with plans("delivery_attempts") as found:
        resolve_targets(first)
    assert found == []
    again = attempted(first, **{phone: "sent", tablet: "busy"})
    with plans("delivery_attempts") as found:
        resolve_targets(again)
    (plan,) = found
    assert plan.is_indexed
    assert (plan.examined, plan.sorts) == (2, False)
