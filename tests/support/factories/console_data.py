"""Varied documents of the console: enough for a scan to be visible, or a million for S6."""

import random
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.store.search_keys import search_keys_of
from notifyproject.db.collections import collection
from recipients.suppressions import suppression_keys
from tests.support.factories import notifications as factories

MANY, BATCH = 4_000, 2_000
BEYOND_COUNTS = 12_000
"""Documents of the other collections: more than the cap on counts."""
CLIENTS = [ObjectId("a" * 24), ObjectId("b" * 24)]
TYPES = ["payment_confirmed", "order_shipped", "mfa_code"]


def insert_console_data(*, now: datetime, count: int = MANY) -> dict[str, Any]:
    """Store this many notifications, and others. Return a notification of the middle."""
    models = [
        *(factories.settled(status, at=now) for status in _SETTLED),
        factories.accepted(created_at=now),
        factories.accepted(created_at=now, channels=(Channel.EMAIL, Channel.IN_APP)),
    ]
    attempts = list(collection("delivery_attempts").find())
    middle: dict[str, Any] = {}
    for start in range(0, count, BATCH):
        numbers = range(start, min(start + BATCH, count))
        documents = [_vary(models, n, now, count=count) for n in numbers]
        collection("notifications").insert_many(documents)
        collection("delivery_attempts").insert_many(
            [
                _vary_attempt(attempts, n, number)
                for n, number in zip(numbers, documents, strict=True)
            ]
        )
        if count // 2 in numbers:
            middle = documents[count // 2 - start]
    for start in range(0, max(count, BEYOND_COUNTS), BATCH):
        for name, make in OTHERS.items():
            collection(name).insert_many([make(n, now) for n in range(start, start + BATCH)])
    return middle


def remove_console_data() -> None:
    for name in ("notifications", "delivery_attempts", *OTHERS):
        collection(name).delete_many({})


_SETTLED = (
    DeliveryStatus.SENT,
    DeliveryStatus.SENT,
    DeliveryStatus.SENT,
    DeliveryStatus.FAILED,
    DeliveryStatus.PENDING,
    DeliveryStatus.UNKNOWN,
)
_CHANCE = random.Random(3)


def _vary(models: list[Any], n: int, now: datetime, *, count: int) -> dict[str, Any]:
    """Return a copy of one of the model documents, up to 20 days old."""
    at = now - timedelta(minutes=n * 20 * 24 * 60 / count)
    document = dict(_CHANCE.choice(models))
    document |= {
        "_id": ObjectId(ObjectId.from_datetime(at).binary[:4] + n.to_bytes(8, "big")),
        "created_at": at,
        "user_id": f"user-{n % 3000}",
        "client_id": CLIENTS[n % 2],
        "type": TYPES[n % 3],
        "entity_id": f"entity-{n}",
        "external_id": f"external-{n}",
        "idempotency_key": f"key-{n}",
        "recipient": {**document["recipient"], "email": f"p{n % 3000}@example.com"}
        | {"phone": f"+3519{n % 3000:08d}"},
    }
    if "failed_at" in document:
        document["failed_at"] = at
        document["delivery"] = [{**d, "failed_at": at} for d in document["delivery"]]
    return document | {"search_keys": search_keys_of(document)}


def _vary_attempt(attempts: list[Any], n: int, document: dict[str, Any]) -> dict[str, Any]:
    return {
        **attempts[n % len(attempts)],
        "_id": f"{document['_id']}.email.1",
        "notification_id": document["_id"],
        "attempted_at": document["created_at"],
    }


def _call(n: int, now: datetime) -> dict[str, Any]:
    call = {"provider": "sendgrid", "received_at": now, "body": "[]"}
    return {**call, "search_keys": [f"call-{n}"]}


def _request(n: int, now: datetime) -> dict[str, Any]:
    answer = {"status": 422 if n % 20 == 0 else 202, "duration_ms": 12, "body_bytes": 0}
    asked = {"method": "POST", "path": "/api/v1/notifications", "request_id": f"request-{n}"}
    times = {"at": now, "purge_at": now + timedelta(days=7)}
    return {"client_id": CLIENTS[n % len(CLIENTS)], **asked, **answer, **times}


def _recipient(n: int, now: datetime) -> dict[str, Any]:
    return {
        "_id": f"user-{n:05d}",
        "name": f"Ada Person{n}",
        "name_words": ["ada", f"person{n}"],
        "email": f"p{n}@example.com",
        "phone": f"+3519{n:08d}",
        "attributes": {},
        "preferences": {},
        "is_active": True,
        "created_at": now,
        "updated_at": now,
    }


def _suppression(n: int, now: datetime) -> dict[str, Any]:
    channel, reason = ("email", "whatsapp")[n % 2], ("manual", "hard_bounce", "complaint")[n % 3]
    key = suppression_keys(channel, f"p{n}@example.com")[0]
    return {"_id": f"{key}:{reason}", "key": key, "channel": channel, "reason": reason} | {
        "address": f"p{n}@example.com",
        "source": "admin",
        "marketing_only": False,
        "created_at": now - timedelta(seconds=n),
    }


def _entry(_n: int, now: datetime) -> dict[str, Any]:
    return {"action_time": now, "user_id": ObjectId(), "object_repr": "x", "action_flag": 2} | {
        "content_type_id": None,
        "change_message": "",
        "object_id": "x",
    }


OTHERS: Mapping[str, Callable[[int, datetime], dict[str, Any]]] = {
    "webhook_log": _call,
    "request_log": _request,
    "recipients": _recipient,
    "django_admin_log": _entry,
    "suppressions": _suppression,
}
"""What makes a document of the other collections, of its number and the time."""
