"""Eligibility of claimed deliveries: expiry, suppression, quiet hours, quarantine."""

from datetime import UTC, datetime, timedelta
from typing import Any

from delivery import eligibility
from domain.channels import Channel
from domain.content import Recipient
from domain.errors import FailureCode
from domain.quiet_hours import QuietHours
from domain.states import DeliveryStatus, Priority
from notifications.store.claims import NotSent
from recipients.queries import Refusal
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import claimed_delivery as claimed
from tests.support.tables import each_case

S = DeliveryStatus
MIDNIGHT = datetime(2026, 11, 22, tzinfo=UTC)
MORNING = datetime(2026, 11, 22, 7, tzinfo=UTC)
NIGHT = QuietHours.parse(start="22:00", end="07:00", zone="UTC")
MILLISECOND = timedelta(milliseconds=1)


def check(
    *,
    now: datetime = NOON,
    quiet: QuietHours | None = None,
    refusal: Refusal | None = None,
    has_provider: bool = True,
    **fields: Any,
) -> NotSent | None:
    return eligibility.check_eligibility(
        claimed(**fields), now=now, quiet=quiet, refusal=refusal, has_provider=has_provider
    )


def ended(**fields: Any) -> NotSent:
    not_sent = check(**fields)
    assert not_sent is not None
    return not_sent


def outcome(not_sent: NotSent) -> tuple[DeliveryStatus, FailureCode]:
    return not_sent.status, not_sent.code


def test_eligible_delivery_is_sent() -> None:
    assert check() is None


@each_case("after", [timedelta(0), MILLISECOND, timedelta(days=1)])
def test_delivery_is_expired_at_and_after_its_expiry(after: timedelta) -> None:
    assert outcome(ended(now=NOON + after, expires_at=NOON)) == (S.EXPIRED, FailureCode.EXPIRED)
    assert check(now=NOON - MILLISECOND, expires_at=NOON) is None


def test_deleted_delivery_is_cancelled() -> None:
    assert outcome(ended(is_deleted=True)) == (S.CANCELLED, FailureCode.CANCELLED)


def test_fourth_claim_is_quarantined() -> None:
    assert [check(claim_count=claims) for claims in (1, 2, 3)] == [None] * 3
    for claims in (4, 5, 100):
        assert outcome(ended(claim_count=claims)) == (S.FAILED, FailureCode.QUARANTINED)


@each_case(
    "fields, reason",
    [
        ({"channel": Channel.WHATSAPP}, "No provider is configured for whatsapp."),
        ({"is_test": True}, "Test notification, but no sandbox is configured for email."),
    ],
)
def test_channel_without_a_provider_fails(fields: dict[str, Any], reason: str) -> None:
    not_sent = ended(has_provider=False, **fields)
    assert outcome(not_sent) == (S.FAILED, FailureCode.CHANNEL_UNAVAILABLE)
    assert not_sent.reason == reason
    assert check(has_provider=True, **fields) is None


@each_case(
    "channel, recipient, is_sent",
    [
        (Channel.EMAIL, Recipient(email="ada@example.com"), True),
        (Channel.EMAIL, Recipient(phone="+351912345678"), False),
        (Channel.WHATSAPP, Recipient(phone="+351912345678"), True),
        (Channel.WHATSAPP, Recipient(email="ada@example.com"), False),
        (Channel.PUSH, Recipient(), True),
        (Channel.IN_APP, Recipient(), True),
    ],
)
def test_email_and_whatsapp_need_address(
    channel: Channel, recipient: Recipient, is_sent: bool
) -> None:
    not_sent = check(channel=channel, recipient=recipient)
    assert (not_sent is None) is is_sent
    assert not_sent is None or outcome(not_sent) == (S.SUPPRESSED, FailureCode.NO_ADDRESS)


@each_case("code", [FailureCode.SUPPRESSED, FailureCode.OPTED_OUT])
def test_refused_delivery_has_the_code_and_the_reason(code: FailureCode) -> None:
    not_sent = ended(refusal=Refusal(code, "Muted."))
    assert (*outcome(not_sent), not_sent.reason) == (S.SUPPRESSED, code, "Muted.")


@each_case("priority", [Priority.HIGH, Priority.NORMAL, Priority.LOW])
@each_case("channel", [Channel.EMAIL, Channel.PUSH, Channel.WHATSAPP])
def test_quiet_hours_defer_until_they_end(priority: Priority, channel: Channel) -> None:
    not_sent = ended(now=MIDNIGHT, quiet=NIGHT, priority=priority, channel=channel)
    assert outcome(not_sent) == (S.PENDING, FailureCode.QUIET_HOURS)
    assert not_sent.next_attempt_at == MORNING


@each_case(
    "fields",
    [
        {"now": MIDNIGHT, "priority": Priority.CRITICAL},
        {"now": MIDNIGHT, "channel": Channel.IN_APP},
        {"now": NOON},
    ],
)
def test_quiet_hours_do_not_defer(fields: dict[str, Any]) -> None:
    assert check(quiet=NIGHT, **fields) is None


@each_case(
    "expires_at, status, next_attempt_at",
    [
        (MORNING - MILLISECOND, S.EXPIRED, None),
        (MORNING, S.EXPIRED, None),
        (MORNING + MILLISECOND, S.PENDING, MORNING),
    ],
)
def test_expiry_before_the_end_of_quiet_hours_expires_at_once(
    expires_at: datetime, status: DeliveryStatus, next_attempt_at: datetime | None
) -> None:
    not_sent = ended(now=MIDNIGHT, quiet=NIGHT, expires_at=expires_at)
    assert outcome(not_sent) == (status, FailureCode.QUIET_HOURS)
    assert not_sent.next_attempt_at == next_attempt_at


def test_only_deferred_deliveries_have_a_next_attempt() -> None:
    for name in ("expires_at", "claim_count", "has_provider", "refusal", "recipient"):
        assert ended(**{name: ALL[name]}).next_attempt_at is None


ALL: dict[str, Any] = {
    "expires_at": NOON,
    "claim_count": 9,
    "has_provider": False,
    "refusal": Refusal(FailureCode.OPTED_OUT, "Muted."),
    "recipient": Recipient(),
    "quiet": QuietHours.parse(start="11:00", end="13:00", zone="UTC"),
}


@each_case(
    "without, code",
    [
        ([], FailureCode.EXPIRED),
        (["expires_at"], FailureCode.QUARANTINED),
        (["expires_at", "claim_count"], FailureCode.CHANNEL_UNAVAILABLE),
        (["expires_at", "claim_count", "has_provider"], FailureCode.OPTED_OUT),
        (["expires_at", "claim_count", "has_provider", "refusal"], FailureCode.NO_ADDRESS),
        ([name for name in ALL if name != "quiet"], FailureCode.QUIET_HOURS),
    ],
)
def test_most_final_reason_wins(without: list[str], code: FailureCode) -> None:
    assert ended(**{k: v for k, v in ALL.items() if k not in without}).code is code


STORED = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": "Europe/London"}


def parsed_zone(stored: dict[str, Any], recipient_zone: str | None, sent: str | None) -> str | None:
    hours = eligibility.parse_quiet_hours(stored, own_zone=recipient_zone, notification_zone=sent)
    return hours.zone.key if hours else None


@each_case(
    "stored, recipient_zone, sent, zone",
    [
        ("Europe/London", "Europe/Lisbon", "Asia/Tokyo", "Europe/London"),
        (None, "Europe/Lisbon", "Asia/Tokyo", "Europe/Lisbon"),
        (None, None, "Asia/Tokyo", "Asia/Tokyo"),
        (None, None, None, "UTC"),
    ],
)
def test_quiet_hours_use_the_most_specific_time_zone(
    stored: Any, recipient_zone: str | None, sent: str | None, zone: str
) -> None:
    assert parsed_zone(STORED | {"timezone": stored}, recipient_zone, sent) == zone


@each_case("stored", [None, STORED | {"enabled": False}])
def test_disabled_quiet_hours_are_none(stored: dict[str, Any] | None) -> None:
    assert eligibility.parse_quiet_hours(stored, own_zone="UTC", notification_zone=None) is None
