"""Labels: every code, state, channel and risk has one."""

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from console.texts import disabled, failure_codes, labels, wait_reasons
from console.texts.failure_codes import EXPLANATIONS
from console.texts.wait_reasons import HELD_ADVICE, WAITS_UNTIL
from domain.errors import FailureCode
from domain.states import (
    DeliveryStatus,
)
from domain.wait_reasons import HELD, WaitReason
from notifications.actions.risk import RiskKind
from tests.support.tables import each_case

S, F = DeliveryStatus, FailureCode
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


SOME = {"WAITS_UNTIL", "HELD_ADVICE", "SOURCE_LABELS"}
"""Tables that name only some values."""
TABLES: dict[str, dict[Enum, object]] = {
    f"{module.__name__}.{name}": table
    for module in (labels, disabled, wait_reasons, failure_codes)
    for name, table in vars(module).items()
    if isinstance(table, dict) and not name.startswith("__") and name not in SOME
}


def test_table_has_a_text_for_every_value() -> None:
    for name, table in TABLES.items():
        assert set(table) == set(type(next(iter(table)))), name


def test_waits_with_an_end_and_held_ones_are_explained() -> None:
    assert set(WAITS_UNTIL) < set(WaitReason)
    assert set(HELD_ADVICE) == HELD


def test_resend_risk_is_named_by_what_a_resend_would_do() -> None:
    assert {risk: label for risk, (label, _color) in labels.RESEND_RISKS.items()} == {
        RiskKind.SAFE: "Safe",
        RiskKind.WILL_FAIL_AGAIN: "Won't help",
        RiskKind.MAY_DUPLICATE: "May duplicate",
        RiskKind.EXPIRED: "Expired",
        RiskKind.SUPPRESSED: "Suppressed",
    }


@each_case("code", list(F))
def test_explanation_reads_as_a_sentence(code: FailureCode) -> None:
    known = EXPLANATIONS[code]
    assert not known.meaning[0].isupper()
    assert not known.meaning.endswith(".")
    assert known.advice[0].isupper()
    assert known.advice.endswith(".")


def test_unknown_code_has_a_label() -> None:
    assert failure_codes.explain("brand_new").meaning == "unknown failure code"
    assert labels.code_label("brand_new") == "Brand new"


def pending(**fields: Any) -> dict[str, Any]:
    default = {"channel": "email", "status": "pending", "attempt_count": 0}
    return default | {"next_attempt_at": NOW + timedelta(hours=1)} | fields


@each_case(
    "status, deliveries, label",
    [
        ("created", [pending()], "Scheduled"),
        ("created", [pending(failure_code="channel_unavailable")], "Held"),
        ("created", [pending(), pending(step=2)], "Scheduled"),
        ("created", [pending(status="sent"), pending(step=2)], "Held: later step"),
        ("processing", [pending(status="sending")], "Sending"),
        ("processing", [pending(status="sending"), pending(status="unknown")], "Unknown"),
        ("cancelled", [pending(status="suppressed"), pending(status="cancelled")], "Cancelled"),
        ("partially_delivered", [], "Partially delivered"),
    ],
)
def test_notification_state_has_its_label(
    status: str, deliveries: list[dict[str, Any]], label: str
) -> None:
    assert labels.notification_state(status, deliveries, now=NOW)[0] == label


@each_case(
    "delivery, label",
    [
        (pending(), "Scheduled"),
        (pending(next_attempt_at=NOW), "Queued"),
        (pending(attempt_count=1, failure_code="timeout"), "Retrying"),
        (pending(failure_code="quiet_hours"), "Quiet hours"),
        (pending(step=2), "Held: later step"),
        (pending(status="read"), "Read"),
    ],
)
def test_delivery_state_has_its_label(delivery: dict[str, Any], label: str) -> None:
    assert labels.delivery_state(delivery, now=NOW)[0] == label
