"""What clients read from the API's contract: retries, attempts, and types made from the schema."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from api.notifications.schemas import attempt_view, notification_view
from domain.states import PHASES, NotificationStatus, Phase
from tests.api.notifications.test_schemas import delivery, document
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.openapi import api_document
from tests.support.tables import each_case

MINUTE = timedelta(minutes=1)
EMAIL_SENT = delivery(status="sent", attempt_count=1, last_attempt_at=NOON)
RETRIES: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "nothing was sent yet": ([delivery()], {"retry_count": 0, "max_retries": 3}),
    "sent at the first attempt": ([EMAIL_SENT], {"retry_count": 0}),
    "one channel failed twice and waits": (
        [
            EMAIL_SENT,
            delivery(
                "whatsapp",
                attempt_count=2,
                last_attempt_at=NOON + 5 * MINUTE,
                next_attempt_at=NOON + 15 * MINUTE,
            ),
        ],
        {
            "retry_count": 1,
            "max_retries": 3,
            "last_retry_at": NOON + 5 * MINUTE,
            "next_retry_at": NOON + 15 * MINUTE,
        },
    ),
    "two channels wait": (
        [
            delivery(attempt_count=1, last_attempt_at=NOON, next_attempt_at=NOON + 9 * MINUTE),
            delivery("push", attempt_count=3, last_attempt_at=NOON, next_attempt_at=NOON + MINUTE),
        ],
        {"retry_count": 2, "last_retry_at": NOON, "next_retry_at": NOON + MINUTE},
    ),
    "an outage isn't counted": (
        [
            delivery(
                attempt_count=4, uncounted_attempts=3, last_attempt_at=NOON, next_attempt_at=NOON
            )
        ],
        {"retry_count": 0, "next_retry_at": NOON},
    ),
    "a first attempt isn't a retry": (
        [delivery(next_attempt_at=NOON + MINUTE)],
        {"retry_count": 0, "last_retry_at": None, "next_retry_at": None},
    ),
    "retried by hand": (
        [delivery(status="failed", attempt_count=5, max_attempts=8, last_attempt_at=NOON)],
        {"retry_count": 4, "max_retries": 7, "last_retry_at": NOON, "next_retry_at": None},
    ),
}


@pytest.mark.usefixtures("shipped_types")
@pytest.mark.parametrize("case", RETRIES)
def test_retries_of_all_channels_are_summed_up(case: str) -> None:
    deliveries, expected = RETRIES[case]
    view = notification_view(document(*deliveries), now=NOON)
    assert {name: getattr(view, name) for name in expected} == expected


@pytest.mark.usefixtures("shipped_types")
@pytest.mark.parametrize("status", NotificationStatus)
def test_phase_is_one_of_four_words_and_agrees_with_the_flags(status: NotificationStatus) -> None:
    view = notification_view(document(status=status.value), now=NOON)
    assert view.phase is PHASES[status]
    assert view.phase.value in ("pending", "sent", "failed", "retrying")
    assert not view.is_delivered or view.phase is Phase.SENT
    assert not view.is_failed or view.phase is Phase.FAILED


AT = {"delivered_at": NOON + MINUTE}


@each_case(
    "status, times, shown",
    [
        ("sent", {}, "sent"),
        ("sent", AT, "delivered"),
        ("sent", {"opened_at": NOON}, "delivered"),
        ("unknown", AT, "delivered"),
        ("started", AT, "delivered"),
        ("failed", AT, "failed"),
        ("expired", {}, "expired"),
    ],
)
def test_attempt_is_delivered_once_a_receipt_says_so(
    status: str, times: dict[str, datetime], shown: str
) -> None:
    stored = {
        "_id": "a",
        "notification_id": ObjectId(),
        "channel": "email",
        "attempt_number": 1,
        "status": status,
        "attempted_at": NOON,
        **times,
    }
    assert attempt_view(stored).status.value == shown


@pytest.fixture(scope="module")
def schemas() -> Any:
    return api_document()["components"]["schemas"]


@pytest.mark.parametrize(
    "field",
    [
        "NotificationRequest.data",
        "ContentRequest.payload",
        "BroadcastRequest.data",
        "RecipientRequest.attributes",
        "TypeRequest.example_data",
        "NotificationView.data",
        "ContentView.payload",
        "AttemptView.platform_response",
    ],
)
def test_free_object_takes_any_field(schemas: Any, field: str) -> None:
    """Without additionalProperties, a generated type takes none:
    https://github.com/openapi-ts/openapi-typescript/issues/1115 and /1686; with anyOf, /1514."""
    structure, _, name = field.partition(".")
    schema = schemas[structure]["properties"][name]
    (free,) = [item for item in [schema, *schema.get("anyOf", ())] if item.get("type") == "object"]
    assert free["additionalProperties"] is True


@pytest.mark.parametrize(
    "field",
    [
        "NotificationRequest.recipient",
        "NotificationRequest.data",
        "NotificationRequest.ignore_limits",
        "NotificationRecipientRequest.device_ids",
        "ContentRequest.attachments",
        "TypeRequest.priority",
        "LimitRequest.overflow",
    ],
)
def test_field_of_a_request_with_a_default_is_optional(schemas: Any, field: str) -> None:
    """Generated types require a field with a default:
    https://github.com/openapi-ts/openapi-typescript/issues/1741, /664, and /2012."""
    structure, _, name = field.partition(".")
    assert "default" not in schemas[structure]["properties"][name]
    assert name not in schemas[structure].get("required", ())
