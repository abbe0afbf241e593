"""The mail that all benchmarks send: a confirmed payment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from bson import ObjectId

from domain.channels import Channel
from domain.states import Category, Priority

CLIENT = ObjectId("c" * 24)
TYPE = "payment_confirmed"
DATA = {"video_title": "Sunrise", "amount": "49.90"}
BATCH = 1_000


@dataclass(frozen=True, kw_only=True)
class RenderedMail:
    """The rendered mail, for the floor and the peer, which don't render."""

    sender: str
    subject: str
    text: str
    html: str

    def save(self, path: Path) -> Path:
        """Save the mail for another process; return the path."""
        path.write_bytes(msgspec.json.encode(asdict(self)))
        return path

    @classmethod
    def load(cls, path: str) -> "RenderedMail":
        """Return a saved mail."""
        return cls(**msgspec.json.decode(Path(path).read_bytes()))


def rendered_mail() -> RenderedMail:
    """Render mail number 1,000 with the service."""
    from django.conf import settings

    from notifications.content import rendering

    notification = new_notification(1_000, at=datetime.now().astimezone())
    message = rendering.render_message(
        channel=Channel.EMAIL,
        content=notification.content,
        data=notification.data,
        recipient=notification.recipient,
    )
    if message.subject is None or message.html is None:
        raise RuntimeError("the mail has no subject or no HTML")
    return RenderedMail(
        sender=settings.EMAIL_FROM, subject=message.subject, text=message.text, html=message.html
    )


def address(number: int) -> str:
    """Return the address of recipient ``number``."""
    return f"user-{number}@example.com"


def sendgrid_body(sender: str, *, subject: str, text: str, html: str, to: str) -> dict[str, Any]:
    """Return the body of a SendGrid request for a mail."""
    return {
        "from": {"email": sender},
        "subject": subject,
        "content": [{"type": "text/plain", "value": text}, {"type": "text/html", "value": html}],
        "personalizations": [{"to": [{"email": to}]}],
    }


def request_body(number: int) -> dict[str, Any]:
    """Return the body of an API request for a mail."""
    return {
        "type": TYPE,
        "user_id": f"user-{number}",
        "recipient": {"email": address(number)},
        "channels": ["email"],
        "data": {**DATA, "order_id": number},
    }


def bodies_with_and_without_schema() -> dict[str, Callable[[int], dict[str, Any]]]:
    """Create two types that differ in their schema of ten fields; return a request of each."""
    from notifications.catalog import schemas, types

    schema = {
        "type": "object",
        "properties": {
            "order_id": {"type": "integer", "minimum": 0},
            "amount": {"type": "string", "pattern": "^[0-9]+[.][0-9]{2}$"},
            "currency": {"enum": ["EUR", "USD", "BRL"]},
            "paid_at": {"type": "string", "format": "date-time"},
            "receipt": {"type": "string", "format": "uri"},
            "contact": {"type": "string", "format": "email"},
            "title": {"type": "string", "maxLength": 100},
            "is_gift": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 10},
            "seller": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
            },
        },
        "required": ["order_id", "amount", "currency", "paid_at", "title", "seller"],
        "additionalProperties": False,
    }
    shipped: Mapping[str, Any] = types.read_type(TYPE) or {}
    own = {"_id", "categories", "template_version", "schema", "created_at", "updated_at"}
    fields = {name: value for name, value in shipped.items() if name not in own}
    texts = {"bench_schema": schemas.dump(schema), "bench_plain": None}
    for slug, text in texts.items():
        types.define_type(slug, {**fields, "schema": text}, now=datetime.now().astimezone())

    def body_of(slug: str, number: int) -> dict[str, Any]:
        data = {
            "order_id": number,
            "amount": "49.90",
            "currency": "EUR",
            "paid_at": "2026-12-24T18:00:00Z",
            "receipt": "https://example.com/receipts/1",
            "contact": "sales@example.com",
            "title": "Sunrise",
            "is_gift": False,
            "tags": ["video", "nature"],
            "seller": {"name": "Sunrise Films"},
        }
        content = {"subject": "Paid", "body": "Thank you."}
        return request_body(number) | {"type": slug, "data": data, "content": content}

    return {slug: partial(body_of, slug) for slug in texts}


def new_notification(
    number: int, *, at: datetime, user_id: str | None = None, in_app: bool = False
) -> Any:
    """Return the mail, or an inbox item (``in_app``), as a notification that is due at ``at``."""
    from domain import content
    from notifications.store.new_notifications import NewDelivery, NewNotification

    return NewNotification(
        id=ObjectId(),
        client_id=CLIENT,
        user_id=user_id or f"user-{number}",
        recipient=content.Recipient(email=address(number)),
        type=TYPE,
        category=Category.TRANSACTIONAL,
        priority=Priority.NORMAL,
        content=content.Content(
            subject=f"Payment confirmed: order {number}",
            body=f"Your payment of 49.90 for Sunrise (order {number}) has arrived. Thank you.",
            template_id=TYPE,
        ),
        data={**DATA, "order_id": number},
        deliveries=(NewDelivery(channel=Channel.IN_APP if in_app else Channel.EMAIL),),
        max_attempts=4,
        send_at=at,
        purge_at=at + timedelta(days=90),
        created_at=at,
    )


def store_due(count: int, *, at: datetime) -> Sequence[ObjectId]:
    """Store due mails; return their IDs."""
    from notifications.store import acceptance

    ids: list[ObjectId] = []
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        batch = [new_notification(number, at=at) for number in numbers]
        acceptance.accept(batch, now=at)
        ids += [notification.id for notification in batch]
    return ids
