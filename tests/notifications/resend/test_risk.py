"""The verdict on a delivery: what sending the same again would be, told before anybody asks."""

from typing import Any

import pytest

from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from notifications.resend.risk import DeliveryFacts, RiskKind, assess_risk

S, F = DeliveryStatus, FailureCode
SAFE, POINTLESS, COPY = RiskKind.SAFE, RiskKind.WILL_FAIL_AGAIN, RiskKind.MAY_DUPLICATE
EXPIRED, SUPPRESSED = RiskKind.EXPIRED, RiskKind.SUPPRESSED
NO_MORE = "The address is suppressed: complaint."


def judged(status: DeliveryStatus, code: str | None = None, **known: Any) -> RiskKind:
    """Return the verdict on an email."""
    facts = {"channel": Channel.EMAIL, "status": status, "code": code, **known}
    found = assess_risk(DeliveryFacts(**facts))
    assert found.reason.endswith(".")
    return found.kind


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # Nothing was sent, and nothing stands in the way.
        (F.RATE_LIMITED, SAFE),
        (F.RECIPIENT_RATE_LIMITED, SAFE),
        (F.PROVIDER_ERROR, SAFE),
        (F.CONNECTION_FAILED, SAFE),
        (F.CHANNEL_UNAVAILABLE, SAFE),
        (F.BLOCKED, SAFE),
        (F.REPORTED_FAILED, SAFE),
        # The cause is gone: a suppression lifted, a device back, a window open.
        (F.BOUNCED, SAFE),
        (F.NO_ADDRESS, SAFE),
        (F.INVALID_RECIPIENT, SAFE),
        (F.WINDOW_CLOSED, SAFE),
        # Bytes left, and nobody knows.
        (F.TIMEOUT, COPY),
        (F.CONNECTION_LOST, COPY),
        (F.WORKER_LOST, COPY),
        (F.INTERNAL_ERROR, COPY),
        (F.OUTCOME_UNKNOWN, COPY),
        ("a_code_of_an_older_release", COPY),
        (None, COPY),
        # It fails the same way.
        (F.REJECTED, POINTLESS),
        (F.TOO_LARGE, POINTLESS),
        (F.RENDER_FAILED, POINTLESS),
        (F.ATTACHMENT_UNAVAILABLE, POINTLESS),
        (F.QUARANTINED, POINTLESS),
        (F.DROPPED, POINTLESS),
    ],
)
def test_what_has_failed_is_judged_by_its_cause(code: str | None, expected: RiskKind) -> None:
    assert judged(S.FAILED, code) is expected


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        *((status, None, COPY) for status in (S.PENDING, S.SENDING, S.UNKNOWN)),
        *((status, None, COPY) for status in (S.SENT, S.DELIVERED, S.READ)),
        (S.CANCELLED, F.CANCELLED, SAFE),
        (S.CANCELLED, F.NOT_NEEDED, COPY),
        (S.SUPPRESSED, F.SUPPRESSED, SAFE),
        (S.SUPPRESSED, F.OPTED_OUT, SAFE),
        (S.EXPIRED, F.EXPIRED, EXPIRED),
        (S.EXPIRED, F.QUIET_HOURS, EXPIRED),
    ],
)
def test_what_has_not_failed_is_judged_by_where_it_stands(
    status: DeliveryStatus, code: str | None, expected: RiskKind
) -> None:
    assert judged(status, code) is expected


@pytest.mark.parametrize("code", FailureCode)
def test_each_cause_has_a_verdict_of_its_own_words(code: FailureCode) -> None:
    facts = DeliveryFacts(channel=Channel.EMAIL, status=S.FAILED, code=code.value)
    assert "no words" not in assess_risk(facts).reason


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"suppression_reason": NO_MORE}, SUPPRESSED),
        ({"suppression_reason": NO_MORE, "may_be_delivered": True, "is_expired": True}, SUPPRESSED),
        ({"is_erased": True, "suppression_reason": NO_MORE}, POINTLESS),
        ({"is_sensitive_data_destroyed": True}, POINTLESS),
        ({"is_content_removed": True, "suppression_reason": NO_MORE}, POINTLESS),
        ({"can_reach": False}, POINTLESS),
        ({"can_reach": False, "may_be_delivered": True}, POINTLESS),
        ({"has_provider": False}, POINTLESS),
        ({"is_whatsapp_allowed": False}, POINTLESS),
        ({"may_be_delivered": True}, COPY),
        ({"may_be_delivered": True, "is_expired": True}, COPY),
        ({"is_expired": True}, EXPIRED),
    ],
)
def test_what_speaks_against_it_most_is_told(known: dict[str, Any], expected: RiskKind) -> None:
    assert judged(S.FAILED, F.PROVIDER_ERROR, **known) is expected


def test_a_cause_that_stays_is_told_before_a_possible_copy() -> None:
    assert judged(S.FAILED, F.REJECTED, may_be_delivered=True, is_expired=True) is POINTLESS


def test_the_reason_is_that_of_today() -> None:
    facts = DeliveryFacts(
        channel=Channel.PUSH, status=S.FAILED, code=F.NO_ADDRESS.value, can_reach=False
    )
    assert assess_risk(facts).reason == "No active device that hasn't rejected it."
