"""The views of a notification, with content and after its removal."""

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from bson import ObjectId

from api.http.rendering import encode
from api.notifications.schemas import attempt_view, notification_view, redacted
from domain.channels import Channel
from domain.states import PHASES, DeliveryStatus, NotificationStatus, Phase
from domain.time import utc_now
from notifications.catalog.types import MASK
from notifications.store import leases
from privacy import content_removal
from tests.support.clients.api import App
from tests.support.clients.inbox import InboxUser, delivered, token
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("shipped_types")
ID = ObjectId("a" * 24)


def delivery(channel: str = "email", status: str = "pending", **fields: Any) -> dict[str, Any]:
    return {
        "channel": channel,
        "status": status,
        "attempt_count": 0,
        "uncounted_attempts": 0,
        "max_attempts": 4,
        "claim_count": 0,
        "first_due_at": NOON,
        "accepted_targets": [],
    } | fields


def document(*deliveries: dict[str, Any], **fields: Any) -> dict[str, Any]:
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
    view = notification_view(document(*deliveries, **fields), now=NOON)
    return msgspec.json.decode(encode(view))


def test_minimal_notification_is_shown() -> None:
    view = shown()
    assert view["id"] == str(ID)
    assert view["status"] == "queued"
    assert view["created_at"] == "2026-11-21T12:00:00Z"
    assert view["user_id"] is None
    assert view["resent_from"] is view["content_removed_at"] is None
    assert view["delivery"][0]["channel"] == "email"


def test_internals_are_not_shown() -> None:
    claim = {"token": "t0ken", "lease_until": NOON, "worker": "worker-1"}
    view = shown(delivery(claim=claim, claim_count=2))
    text = msgspec.json.encode(view).decode()
    internals = ("t0ken", "worker-1", "claim", "key-1", "client_id", "due_at", "purge_at")
    for internal in (*internals, "excused"):
        assert internal not in text


@each_case(
    "statuses, derived",
    [
        (["pending"], {"is_pending": True}),
        (["sending"], {"is_pending": False}),
        (["failed"], {"is_pending": False}),
        (["delivered"], {"is_pending": False}),
    ],
)
def test_derived_fields_follow_the_deliveries(
    statuses: list[str], derived: dict[str, bool]
) -> None:
    channels = [c.value for c in Channel]
    view = shown(*[delivery(c, s) for c, s in zip(channels, statuses, strict=False)])
    assert {name: view[name] for name in derived} == derived


@each_case("status", list(NotificationStatus))
def test_derived_flags_follow_the_status(status: NotificationStatus) -> None:
    view = shown(status=status.value)
    was_sent = status in ("sent", "delivered", "partially_delivered")
    assert view["is_delivered"] is was_sent
    assert view["is_confirmed"] is (status is NotificationStatus.DELIVERED)
    assert view["is_failed"] is (status is NotificationStatus.FAILED)


def test_channels_are_sorted_by_outcome() -> None:
    view = shown(
        delivery("email", "sent"),
        delivery("push", "failed"),
        delivery("whatsapp", "pending"),
        delivery("in_app", "read"),
    )
    assert view["successful_channels"] == ["email", "in_app"]
    assert view["failed_channels"] == ["push"]


@each_case("status", list(DeliveryStatus))
def test_every_delivery_status_is_shown(status: DeliveryStatus) -> None:
    assert shown(delivery(status=status.value))["delivery"][0]["status"] == status


@each_case(
    "type_name, data, expected",
    [
        ("mfa_code", {"code": "493817", "expires_in": 5}, {"code": MASK, "expires_in": 5}),
        ("mfa_code", {"expires_in": 5}, {"expires_in": 5}),
        ("alert", {"code": "493817"}, {"code": "493817"}),
        ("gone", {"code": "493817", "other": 1}, {"code": MASK, "other": MASK}),
    ],
)
def test_sensitive_data_is_masked(
    type_name: str, data: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert redacted(data, type_name) == expected
    assert shown(type=type_name, data=data)["data"] == expected


def test_resend_links_are_ids() -> None:
    view = shown(resent_from=ObjectId("d" * 24), resent_as=[ObjectId("e" * 24)])
    assert view["resent_from"] == "d" * 24
    assert view["resent_as"] == ["e" * 24]


def test_adjusted_time_is_shown() -> None:
    assert not shown()["adjusted"]
    assert notification_view(document(), adjusted=True, now=NOON).adjusted


def test_error_history_is_shown() -> None:
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


def test_attempt_is_shown_without_its_worker() -> None:
    view = msgspec.to_builtins(attempt_view(attempt()))
    assert view["id"] == f"{ID}.email.1"
    assert view["notification_id"] == str(ID)
    assert "worker" not in view
    assert view["finished_at"] is None


EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
LONG_AGO = utc_now() - timedelta(days=31)


def removed(app: App, status: DeliveryStatus = DeliveryStatus.FAILED, **fields: Any) -> str:
    document = factories.settled(
        status, client_id=app.id, at=LONG_AGO, created_at=LONG_AGO, **fields
    )
    content_removal.remove_expired_content(now=utc_now())
    return str(document["_id"])


def test_removed_content_blocks_retry_and_resend_and_leaves_the_outcome(app: App) -> None:
    notification_id = removed(app)
    shown = app.get(f"/notifications/{notification_id}").json()
    assert shown["content_removed_at"] is not None
    assert (shown["content"]["subject"], shown["content"]["body"]) == (None, None)
    assert (shown["data"], shown["recipient"]["email"], shown["error"]) == ({}, None, None)
    assert (shown["status"], shown["type"]) == ("failed", "payment_confirmed")
    assert shown["user_id"] == "ada"
    assert shown["delivery"][0]["failure_code"] == "provider_error"
    assert shown["can_retry"] is False
    for action in ("retry", "resend"):
        answer = app.post(f"/notifications/{notification_id}/{action}")
        assert (answer.status_code, answer.json()["code"]) == (409, "content_removed")
        assert f"removed on {utc_now():%Y-%m-%d} by retention" in answer.json()["detail"]
    (listed,) = app.get("/notifications").json()["results"]
    assert (listed["id"], listed["content"]["body"]) == (notification_id, None)
    (exported,) = app.get("/recipients/ada/export").json()["notifications"]
    assert exported["content_removed_at"] == listed["content_removed_at"]
    (attempt,) = app.get(f"/notifications/{notification_id}/attempts").json()["results"]
    assert (attempt["status"], attempt["error_code"]) == ("failed", "provider_error")
    assert (attempt["platform_response"], attempt["error_message"]) == ({"status": 503}, None)
    assert InboxUser(app=app, token=token(app)).get().json()["results"] == []


def test_inbox_item_outlives_content_removal(app: App) -> None:
    both = {"channels": [IN_APP, EMAIL], "created_at": LONG_AGO}
    document = delivered(app, **both)
    begun = factories.start(factories.claim(document["_id"]), at=LONG_AGO)
    settlement = factories.settlement(begun, DeliveryStatus.SENT, at=LONG_AGO)
    leases.settle([settlement], now=LONG_AGO)
    person = InboxUser(app=app, token=token(app))
    before = person.get().json()
    assert content_removal.remove_expired_content(now=utc_now()).notifications == 1
    assert person.get().json() == before
    assert before["results"][0]["body"] == "Your payment has arrived."


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


@each_case("case", RETRIES)
def test_retries_of_all_channels_are_summed_up(case: str) -> None:
    deliveries, expected = RETRIES[case]
    view = notification_view(document(*deliveries), now=NOON)
    assert {name: getattr(view, name) for name in expected} == expected


@each_case("status", NotificationStatus)
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
