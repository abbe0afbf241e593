"""What an answer looks like."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from bson import ObjectId

from api.http.rendering import JSONRenderer
from api.notifications.schemas import attempt_view, notification_view, redacted
from domain.states import Channel, DeliveryStatus, NotificationStatus
from notifications.catalog.types import MASK
from tests.support.factories.records import NOON

pytestmark = pytest.mark.usefixtures("shipped_types")
ID = ObjectId("a" * 24)


def delivery(channel: str = "email", status: str = "pending", **fields: Any) -> dict[str, Any]:
    return {
        "channel": channel,
        "status": status,
        "attempt_count": 0,
        "excused_count": 0,
        "max_attempts": 4,
        "claim_count": 0,
        "first_due_at": NOON,
        "accepted_targets": [],
    } | fields


def document(*deliveries: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the least a stored notification has."""
    return {
        "_id": ID,
        "client_id": ObjectId("c" * 24),
        "idempotency_key": "key-1",
        "recipient": {"device_ids": []},
        "type": "alert",
        "category": "alert",
        "priority": "high",
        "channels": ["email"],
        "content": {"is_masked": False},
        "data": {},
        "delivery": list(deliveries) or [delivery()],
        "status": "queued",
        "due_at": NOON,
        "purge_at": NOON + timedelta(days=90),
        "error_history": [],
        "is_read": False,
        "is_active": True,
        "resent_as": [],
        "created_at": NOON,
        "updated_at": NOON,
    } | fields


def shown(*deliveries: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a notification as a caller reads it."""
    view = notification_view(document(*deliveries, **fields))
    return msgspec.json.decode(JSONRenderer().render(view))


def test_the_least_of_a_notification_can_be_shown() -> None:
    view = shown()
    assert view["id"] == str(ID)
    assert view["status"] == "queued"
    assert view["created_at"] == "2026-11-21T12:00:00Z"
    assert view["user_id"] is None
    assert view["resent_from"] is None
    assert view["delivery"][0]["channel"] == "email"


def test_what_is_internal_is_not_shown() -> None:
    claim = {"token": "t0ken", "lease_until": NOON, "worker": "worker-1"}
    view = shown(delivery(claim=claim, claim_count=2))
    text = msgspec.json.encode(view).decode()
    for internal in ("t0ken", "worker-1", "claim", "key-1", "client_id", "due_at", "excused"):
        assert internal not in text


@pytest.mark.parametrize(
    ("statuses", "derived"),
    [
        (["pending"], {"is_pending": True, "can_retry": False}),
        (["sending"], {"is_pending": False, "can_retry": False}),
        (["failed"], {"is_pending": False, "can_retry": True}),
        (["sent", "failed"], {"can_retry": True}),
        (["delivered"], {"is_pending": False, "can_retry": False}),
    ],
)
def test_what_follows_from_the_deliveries_is_told(
    statuses: list[str], derived: dict[str, bool]
) -> None:
    channels = [c.value for c in Channel]
    view = shown(*[delivery(c, s) for c, s in zip(channels, statuses, strict=False)])
    assert {name: view[name] for name in derived} == derived


@pytest.mark.parametrize("status", list(NotificationStatus))
def test_delivered_and_failed_are_the_whole_notifications(status: NotificationStatus) -> None:
    view = shown(status=status.value)
    assert view["is_delivered"] is (status is NotificationStatus.DELIVERED)
    assert view["is_failed"] is (status is NotificationStatus.FAILED)


def test_channels_are_sorted_by_their_fate() -> None:
    view = shown(
        delivery("email", "sent"),
        delivery("push", "failed"),
        delivery("whatsapp", "pending"),
        delivery("in_app", "read"),
    )
    assert view["successful_channels"] == ["email", "in_app"]
    assert view["failed_channels"] == ["push"]


@pytest.mark.parametrize("status", list(DeliveryStatus))
def test_every_state_of_a_delivery_can_be_shown(status: DeliveryStatus) -> None:
    assert shown(delivery(status=status.value))["delivery"][0]["status"] == status


@pytest.mark.parametrize(
    ("type_name", "data", "expected"),
    [
        ("mfa_code", {"code": "493817", "expires_in": 5}, {"code": MASK, "expires_in": 5}),
        ("mfa_code", {"expires_in": 5}, {"expires_in": 5}),
        ("alert", {"code": "493817"}, {"code": "493817"}),
        ("gone", {"code": "493817", "other": 1}, {"code": MASK, "other": MASK}),
    ],
    ids=["a secret", "no secret given", "not a secret here", "the type is gone"],
)
def test_secrets_are_masked(type_name: str, data: dict[str, Any], expected: dict[str, Any]) -> None:
    assert redacted(data, type_name) == expected
    assert shown(type=type_name, data=data)["data"] == expected


def test_links_between_resends_are_ids() -> None:
    view = shown(resent_from=ObjectId("d" * 24), resent_as=[ObjectId("e" * 24)])
    assert view["resent_from"] == "d" * 24
    assert view["resent_as"] == ["e" * 24]


def test_a_time_that_was_adjusted_is_told() -> None:
    assert not shown()["adjusted"]
    assert notification_view(document(), adjusted=True).adjusted


def test_texts_come_back_exactly() -> None:
    text = 'caf\u00e9 e\u0301 \U0001f469\u200d\U0001f467 <script> {{ x }} $y \\ " \u2028'
    view = shown(content={"subject": text, "body": text, "payload": {"k": [text, 1, None]}})
    assert view["content"]["subject"] == view["content"]["body"] == text
    assert view["content"]["payload"] == {"k": [text, 1, None]}


def test_the_error_history_is_told() -> None:
    line = {"timestamp": NOON, "channel": "email", "code": "rejected", "error": "No."}
    assert shown(error_history=[line])["error_history"] == [
        line | {"timestamp": "2026-11-21T12:00:00Z"}
    ]


def attempt(**fields: Any) -> dict[str, Any]:
    return {
        "_id": f"{ID}.email.1",
        "notification_id": ID,
        "channel": "email",
        "attempt_number": 1,
        "status": "started",
        "provider": "sendgrid",
        "worker": "worker-1",
        "attempted_at": NOON,
        "purge_at": NOON,
    } | fields


def test_an_attempt_is_shown_without_its_worker() -> None:
    view = msgspec.to_builtins(attempt_view(attempt()))
    assert view["id"] == f"{ID}.email.1"
    assert view["notification_id"] == str(ID)
    assert "worker" not in view
    assert view["finished_at"] is None


def test_an_attempt_tells_what_the_provider_said() -> None:
    view = attempt_view(
        attempt(
            status="failed",
            platform_response={"status": 503, "body": "busy"},
            error_code="provider_error",
            error_message="Busy.",
            finished_at=NOON,
            duration_ms=12,
        )
    )
    assert view.platform_response == {"status": 503, "body": "busy"}
    assert (view.error_code, view.duration_ms) == ("provider_error", 12)
