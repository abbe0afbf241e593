"""What keeps a claimed delivery from being sent now."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from delivery import eligibility
from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus, Priority
from domain.time import QuietHours
from notifications.store import Deferred
from tests.support.factories.records import NOON, claimed

S = DeliveryStatus
MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)
MORNING = datetime(2026, 11, 22, 7, tzinfo=UTC)
NIGHT = QuietHours.parse(start="22:00", end="07:00", zone="UTC")
MILLISECOND = timedelta(milliseconds=1)


def checked(
    *,
    now: datetime = NOON,
    quiet: QuietHours | None = None,
    suppression: str | None = None,
    has_provider: bool = True,
    **fields: Any,
) -> Deferred | None:
    return eligibility.check_eligibility(
        claimed(**fields),
        now=now,
        quiet=quiet,
        suppression=suppression,
        has_provider=has_provider,
    )


def fate(parked: Deferred | None) -> tuple[DeliveryStatus, FailureCode]:
    assert parked is not None
    return parked.status, parked.code


def test_what_nothing_stands_against_is_sent() -> None:
    assert checked() is None


@pytest.mark.parametrize("after", [timedelta(0), MILLISECOND, timedelta(days=1)])
def test_nothing_is_sent_at_or_after_its_end(after: timedelta) -> None:
    parked = checked(now=NOON + after, expires_at=NOON)
    assert fate(parked) == (S.EXPIRED, FailureCode.EXPIRED)


def test_it_is_sent_up_to_its_end() -> None:
    assert checked(now=NOON - MILLISECOND, expires_at=NOON) is None


@pytest.mark.parametrize("claims", [1, 2, 3])
def test_three_claims_may_come_to_nothing(claims: int) -> None:
    assert checked(claim_count=claims) is None


@pytest.mark.parametrize("claims", [4, 5, 100])
def test_what_three_workers_took_and_never_sent_is_quarantined(claims: int) -> None:
    assert fate(checked(claim_count=claims)) == (S.FAILED, FailureCode.QUARANTINED)


def test_a_channel_without_a_provider_fails() -> None:
    parked = checked(has_provider=False, channel=Channel.WHATSAPP)
    assert fate(parked) == (S.FAILED, FailureCode.CHANNEL_UNAVAILABLE)
    assert parked is not None
    assert "whatsapp" in parked.reason


@pytest.mark.parametrize(
    ("channel", "recipient", "is_sent"),
    [
        (Channel.EMAIL, Recipient(email="ada@example.com"), True),
        (Channel.EMAIL, Recipient(phone="+351912345678"), False),
        (Channel.WHATSAPP, Recipient(phone="+351912345678"), True),
        (Channel.WHATSAPP, Recipient(email="ada@example.com"), False),
        (Channel.PUSH, Recipient(), True),
        (Channel.IN_APP, Recipient(), True),
    ],
)
def test_mail_and_whatsapp_need_an_address(
    channel: Channel, recipient: Recipient, is_sent: bool
) -> None:
    parked = checked(channel=channel, recipient=recipient)
    assert (parked is None) is is_sent
    assert is_sent or fate(parked) == (S.FAILED, FailureCode.NO_ADDRESS)


def test_a_suppressed_address_gets_nothing_and_the_reason_is_told() -> None:
    parked = checked(suppression="hard_bounce")
    assert fate(parked) == (S.SUPPRESSED, FailureCode.SUPPRESSED)
    assert parked is not None
    assert "hard_bounce" in parked.reason
    assert "@" not in parked.reason


@pytest.mark.parametrize("priority", [Priority.HIGH, Priority.NORMAL, Priority.LOW])
@pytest.mark.parametrize("channel", [Channel.EMAIL, Channel.PUSH, Channel.WHATSAPP])
def test_quiet_hours_put_it_off_until_they_end(priority: Priority, channel: Channel) -> None:
    parked = checked(now=MIDNIGHT, quiet=NIGHT, priority=priority, channel=channel)
    assert fate(parked) == (S.PENDING, FailureCode.QUIET_HOURS)
    assert parked is not None
    assert parked.next_attempt_at == MORNING


def test_quiet_hours_do_not_hold_back_what_is_critical() -> None:
    assert checked(now=MIDNIGHT, quiet=NIGHT, priority=Priority.CRITICAL) is None


def test_quiet_hours_do_not_hold_back_what_makes_no_sound() -> None:
    assert checked(now=MIDNIGHT, quiet=NIGHT, channel=Channel.IN_APP) is None


def test_outside_quiet_hours_it_is_sent() -> None:
    assert checked(now=NOON, quiet=NIGHT) is None


@pytest.mark.parametrize("expires_at", [MORNING, MORNING - MILLISECOND])
def test_what_would_expire_before_the_quiet_hours_end_expires_now(expires_at: datetime) -> None:
    parked = checked(now=MIDNIGHT, quiet=NIGHT, expires_at=expires_at)
    assert fate(parked) == (S.EXPIRED, FailureCode.QUIET_HOURS)
    assert parked is not None
    assert parked.next_attempt_at is None


def test_what_outlives_the_quiet_hours_waits_for_their_end() -> None:
    parked = checked(now=MIDNIGHT, quiet=NIGHT, expires_at=MORNING + MILLISECOND)
    assert fate(parked) == (S.PENDING, FailureCode.QUIET_HOURS)


def test_only_what_waits_has_another_time() -> None:
    for parked in (
        checked(expires_at=NOON),
        checked(claim_count=9),
        checked(has_provider=False),
        checked(recipient=Recipient()),
        checked(suppression="manual"),
    ):
        assert parked is not None
        assert parked.next_attempt_at is None


ALL: dict[str, Any] = {
    "expires_at": NOON,
    "claim_count": 9,
    "has_provider": False,
    "recipient": Recipient(),
    "suppression": "manual",
    "quiet": QuietHours.parse(start="11:00", end="13:00", zone="UTC"),
}


@pytest.mark.parametrize(
    ("without", "code"),
    [
        ([], FailureCode.EXPIRED),
        (["expires_at"], FailureCode.QUARANTINED),
        (["expires_at", "claim_count"], FailureCode.CHANNEL_UNAVAILABLE),
        (["expires_at", "claim_count", "has_provider"], FailureCode.NO_ADDRESS),
        (["expires_at", "claim_count", "has_provider", "recipient"], FailureCode.SUPPRESSED),
        ([name for name in ALL if name != "quiet"], FailureCode.QUIET_HOURS),
    ],
)
def test_the_most_final_reason_is_the_one_given(without: list[str], code: FailureCode) -> None:
    assert fate(checked(**{k: v for k, v in ALL.items() if k not in without}))[1] is code


STORED = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": "Europe/London"}


def zone_of(stored: dict[str, Any], own: str | None, sent: str | None) -> str | None:
    hours = eligibility.parse_quiet_hours(stored, own_zone=own, notification_zone=sent)
    return hours.zone.key if hours else None


@pytest.mark.parametrize(
    ("stored", "own", "sent", "zone"),
    [
        ("Europe/London", "Europe/Lisbon", "Asia/Tokyo", "Europe/London"),
        (None, "Europe/Lisbon", "Asia/Tokyo", "Europe/Lisbon"),
        (None, None, "Asia/Tokyo", "Asia/Tokyo"),
        (None, None, None, "UTC"),
        ("", "", "", "UTC"),
    ],
)
def test_quiet_hours_are_in_the_nearest_zone_known(
    stored: str | None, own: str | None, sent: str | None, zone: str
) -> None:
    assert zone_of(STORED | {"timezone": stored}, own, sent) == zone


@pytest.mark.parametrize("stored", [None, {}, {"enabled": False}, STORED | {"enabled": False}])
def test_quiet_hours_that_are_off_are_none(stored: dict[str, Any] | None) -> None:
    assert eligibility.parse_quiet_hours(stored, own_zone="UTC", notification_zone=None) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"start": "25:00"},
        {"end": "7"},
        {"start": "07:00"},
    ],
)
def test_quiet_hours_that_cannot_be_are_none(broken: dict[str, str]) -> None:
    assert (
        eligibility.parse_quiet_hours(STORED | broken, own_zone="UTC", notification_zone=None)
        is None
    )


def test_quiet_hours_without_a_start_do_not_stop_a_batch() -> None:
    for stored in ({"enabled": True}, STORED | {"start": None}, {"enabled": True, "end": "07:00"}):
        assert eligibility.parse_quiet_hours(stored, own_zone="UTC", notification_zone=None) is None


@pytest.mark.parametrize(
    ("stored", "own", "sent", "zone"),
    [
        ("Mars/Olympus", "Europe/Lisbon", "Asia/Tokyo", "Europe/Lisbon"),
        ("Mars/Olympus", "Mars/Olympus", "Asia/Tokyo", "Asia/Tokyo"),
        ("Mars/Olympus", None, None, "UTC"),
        (["Europe/London"], None, None, "UTC"),
        (None, "../etc/passwd", None, "UTC"),
    ],
)
def test_a_zone_that_is_none_does_not_wake_anybody(
    stored: Any, own: str | None, sent: str | None, zone: str
) -> None:
    assert zone_of(STORED | {"timezone": stored}, own, sent) == zone


@pytest.mark.parametrize(
    ("broken", "problem", "instead"),
    [
        ({"timezone": "Mars/Olympus"}, "unknown_timezone", "Asia/Tokyo"),
        ({"start": "25:00"}, "invalid_time", "none"),
        ({"end": None}, "invalid_time", "none"),
    ],
)
def test_what_cannot_be_read_is_told_once_for_each_person(
    broken: dict[str, Any], problem: str, instead: str
) -> None:
    eligibility._warn_once.cache_clear()
    with capture_logs() as logs:
        for whose in ("ada", "bob", "ada"):
            eligibility.parse_quiet_hours(
                STORED | broken, own_zone=None, notification_zone="Asia/Tokyo", user_id=whose
            )
    said = {"event": "quiet_hours_rejected", "log_level": "warning"}
    said |= {"problem": problem, "used": instead}
    assert logs == [said | {"user_id": "ada"}, said | {"user_id": "bob"}]


def test_quiet_hours_that_can_be_read_are_no_news() -> None:
    eligibility._warn_once.cache_clear()
    with capture_logs() as logs:
        eligibility.parse_quiet_hours(
            STORED, own_zone="Mars/Olympus", notification_zone=None, user_id="ada"
        )
        eligibility.parse_quiet_hours(
            {"enabled": False}, own_zone=None, notification_zone=None, user_id="ada"
        )
    assert logs == []


def test_a_test_that_has_no_sandbox_says_so() -> None:
    parked = checked(has_provider=False, is_test=True)
    assert fate(parked) == (S.FAILED, FailureCode.CHANNEL_UNAVAILABLE)
    assert parked is not None
    assert parked.reason == "Test notification, but no sandbox is configured for email."
    assert checked(has_provider=True, is_test=True) is None


def test_a_check_leaves_the_claim_as_it_is() -> None:
    one = claimed(claim_count=9)
    parked = eligibility.check_eligibility(
        one, now=NOON, quiet=None, suppression=None, has_provider=True
    )
    assert parked is not None
    assert parked.claimed == one == replace(one)
