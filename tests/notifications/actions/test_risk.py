"""The resend risk of a delivery."""

from typing import Any

from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.actions.risk import DeliveryFacts, RiskKind, assess_risk
from tests.support.tables import each_case

S, F = DeliveryStatus, FailureCode
SAFE, WILL_FAIL_AGAIN = RiskKind.SAFE, RiskKind.WILL_FAIL_AGAIN
MAY_DUPLICATE, EXPIRED, SUPPRESSED = RiskKind.MAY_DUPLICATE, RiskKind.EXPIRED, RiskKind.SUPPRESSED
COMPLAINT = "The address is suppressed: complaint."


def risk_of(status: DeliveryStatus, code: str | None = None, **known: Any) -> RiskKind:
    facts = {"channel": Channel.EMAIL, "status": status, "code": code, **known}
    found = assess_risk(DeliveryFacts(**facts))
    assert found.reason.endswith(".")
    return found.kind


@each_case(
    "code, expected",
    [
        # Nothing was sent, or the cause is gone: a suppression lifted, a device back.
        *((code, SAFE) for code in (F.RATE_LIMITED, F.RECIPIENT_RATE_LIMITED, F.PROVIDER_ERROR)),
        *((code, SAFE) for code in (F.CONNECTION_FAILED, F.CHANNEL_UNAVAILABLE, F.BLOCKED)),
        *((code, SAFE) for code in (F.REPORTED_FAILED, F.BOUNCED, F.NO_ADDRESS)),
        *((code, SAFE) for code in (F.INVALID_RECIPIENT, F.WINDOW_CLOSED)),
        # The outcome is unknown.
        *((code, MAY_DUPLICATE) for code in (F.TIMEOUT, F.CONNECTION_LOST, F.WORKER_LOST)),
        *((code, MAY_DUPLICATE) for code in (F.INTERNAL_ERROR, F.OUTCOME_UNKNOWN)),
        *((code, MAY_DUPLICATE) for code in ("a_code_of_an_older_release", None)),
        # The failure is permanent.
        *(
            (code, WILL_FAIL_AGAIN)
            for code in (F.REJECTED, F.TOO_LARGE, F.RENDER_FAILED, F.DECRYPTION_FAILED)
        ),
        *((code, WILL_FAIL_AGAIN) for code in (F.ATTACHMENT_UNAVAILABLE, F.QUARANTINED)),
        (F.DROPPED, WILL_FAIL_AGAIN),
    ],
)
def test_risk_of_a_failure_depends_on_its_code(code: str | None, expected: RiskKind) -> None:
    assert risk_of(S.FAILED, code) is expected


@each_case(
    "status, code, expected",
    [
        *((status, None, MAY_DUPLICATE) for status in (S.PENDING, S.SENDING, S.UNKNOWN)),
        *((status, None, MAY_DUPLICATE) for status in (S.SENT, S.DELIVERED, S.READ)),
        (S.MERGED, None, MAY_DUPLICATE),
        (S.CANCELLED, F.CANCELLED, SAFE),
        (S.CANCELLED, F.NOT_NEEDED, MAY_DUPLICATE),
        (S.SUPPRESSED, F.SUPPRESSED, SAFE),
        (S.SUPPRESSED, F.OPTED_OUT, SAFE),
        (S.SUPPRESSED, F.OVER_LIMIT, SAFE),
        (S.EXPIRED, F.OVER_DAILY_UNITS, SAFE),
        (S.EXPIRED, F.EXPIRED, EXPIRED),
        (S.EXPIRED, F.QUIET_HOURS, EXPIRED),
    ],
)
def test_risk_of_other_states_depends_on_the_status(
    status: DeliveryStatus, code: str | None, expected: RiskKind
) -> None:
    assert risk_of(status, code) is expected


@each_case("code", FailureCode)
def test_each_code_has_its_own_reason(code: FailureCode) -> None:
    facts = DeliveryFacts(channel=Channel.EMAIL, status=S.FAILED, code=code.value)
    assert assess_risk(facts).reason != "Unknown failure code."


@each_case(
    "known, expected",
    [
        ({"suppression_reason": COMPLAINT}, SUPPRESSED),
        (
            {"suppression_reason": COMPLAINT, "may_be_delivered": True, "is_expired": True},
            SUPPRESSED,
        ),
        ({"is_erased": True, "suppression_reason": COMPLAINT}, WILL_FAIL_AGAIN),
        ({"is_sensitive_data_destroyed": True}, WILL_FAIL_AGAIN),
        ({"is_content_removed": True, "suppression_reason": COMPLAINT}, WILL_FAIL_AGAIN),
        ({"can_reach": False}, WILL_FAIL_AGAIN),
        ({"can_reach": False, "may_be_delivered": True}, WILL_FAIL_AGAIN),
        ({"has_provider": False}, WILL_FAIL_AGAIN),
        ({"is_whatsapp_allowed": False}, WILL_FAIL_AGAIN),
        ({"may_be_delivered": True}, MAY_DUPLICATE),
        ({"may_be_delivered": True, "is_expired": True}, MAY_DUPLICATE),
        ({"is_expired": True}, EXPIRED),
    ],
)
def test_strongest_objection_wins(known: dict[str, Any], expected: RiskKind) -> None:
    assert risk_of(S.FAILED, F.PROVIDER_ERROR, **known) is expected


def test_permanent_failure_wins_over_a_possible_duplicate() -> None:
    assert risk_of(S.FAILED, F.REJECTED, may_be_delivered=True, is_expired=True) is WILL_FAIL_AGAIN


def test_current_reason_is_given() -> None:
    facts = DeliveryFacts(
        channel=Channel.PUSH, status=S.FAILED, code=F.NO_ADDRESS.value, can_reach=False
    )
    assert assess_risk(facts).reason == "No active device that hasn't rejected it."
