"""Records of the layers' own types, made by hand: no database."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bson import ObjectId

from domain.content import Content, Recipient
from domain.retry import RetryState
from domain.states import Category, Channel, Priority
from notifications.catalog import types
from notifications.catalog.default_types import DEFAULT_TYPES
from notifications.content.templates import FILES, Part
from notifications.intake.requests import NotificationRequest
from notifications.store import ClaimedDelivery
from providers.contract import Message, SendRequest

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
"""When everything happens, unless a test says otherwise."""
SHIPPED = {
    default.slug: types._parse_type({"_id": default.slug, **asdict(default)})
    for default in DEFAULT_TYPES
}

MORE_THAN_TEXT = Content(
    subject="s",
    body="b",
    image_url="https://cdn.example.com/i.png",
    deep_link="app://orders/1",
    payload={"orderId": "1"},
)


def retry_state(**fields: Any) -> RetryState:
    """Return the past of a delivery whose first attempt has just failed."""
    default: dict[str, Any] = {
        "priority": Priority.NORMAL,
        "attempt_count": 1,
        "uncounted_attempts": 0,
        "max_attempts": 4,
        "first_due_at": NOON,
        "expires_at": None,
    }
    return RetryState(**(default | fields))


def claimed(**fields: Any) -> ClaimedDelivery:
    """Return a delivery that is being sent for the first time."""
    default: dict[str, Any] = {
        "notification_id": ObjectId("a" * 24),
        "channel": Channel.EMAIL,
        "token": "f" * 32,
        "lease_until": NOON + timedelta(seconds=90),
        "claim_count": 1,
        "attempt_count": 1,
        "uncounted_attempts": 0,
        "max_attempts": 4,
        "first_due_at": NOON,
        "type": "payment_confirmed",
        "category": Category.TRANSACTIONAL,
        "priority": Priority.NORMAL,
        "user_id": "ada",
        "recipient": Recipient(email="ada@example.com", phone="+351912345678", name="Ada"),
        "content": Content(subject="Paid", body="Your payment has arrived."),
        "data": {},
        "accepted_targets": (),
        "expires_at": None,
        "purge_at": None,
        "request_id": None,
    }
    return ClaimedDelivery(**(default | fields))


def outbound(**fields: Any) -> SendRequest:
    """Return a mail to Ada."""
    default: dict[str, Any] = {
        "reference": f"{'a' * 24}.email.1",
        "recipient": "ada@example.com",
        "recipient_name": "Ada",
        "message": Message(subject="Paid", text="Your payment has arrived.", html="<p>Paid</p>"),
        "category": "transactional",
    }
    return SendRequest(**(default | fields))


def request(**fields: Any) -> NotificationRequest:
    """Return a request that can be accepted."""
    default: dict[str, Any] = {"type": "alert", "user_id": "ada"}
    return NotificationRequest(**(default | fields))


def write_template(
    folder: Path, name: str, *, language: str = "", subject: str = "S", body: str = "B", **more: str
) -> None:
    """Write the files of a template, or of one of its languages; ``more`` are further parts."""
    path = folder / name / language
    path.mkdir(parents=True)
    for part, text in {"subject": subject, "body": body, **more}.items():
        (path / FILES[Part(part)]).write_text(text)
