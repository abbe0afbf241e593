"""A month of notifications in every state, copied from one notification for each history.

Import this module only after Django is set up.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

from bson import ObjectId
from pymongo import WriteConcern

from access.clients import registry
from access.models import Scope
from monitoring import rollup
from notifyproject.db.collections import collection

from .notification_histories import HISTORIES, Document, seed
from .volume import rebuild_indexes_after

MONTH = timedelta(days=30)
NOTIFICATIONS_PER_RECIPIENT = 5
BUSY_USER_ID, NOTIFICATIONS_PER_BUSY_ONE = "user-busy", 500
"""A recipient who gets one in 500 of all notifications."""
BATCH = 2_000
NOTIFICATIONS_PER_LOG_ENTRY = 10
DAY = timedelta(hours=25)


def fill(count: int, *, now: datetime) -> int:
    """Fill the empty database with notifications and related data; count the attempts."""
    templates = [(history, *seed(history, now=now)) for history in HISTORIES]
    collection("notifications").delete_many({})
    collection("delivery_attempts").delete_many({})
    rng = random.Random(6)
    chosen = rng.choices(templates, [history.share for history in HISTORIES], k=count)
    scopes = [Scope.NOTIFICATIONS_WRITE]
    clients = [
        registry.create_client(name=f"app {number}", scopes=scopes, now=now) for number in range(10)
    ]
    registered = collection("notification_types").find({}, {"category": 1, "priority": 1})
    types = [{"type": one.pop("_id"), **one} for one in registered]
    attempted = 0
    with rebuild_indexes_after("notifications", "delivery_attempts"):
        for start in range(0, count, BATCH):
            documents, attempts = list[Document](), list[Document]()
            for number in range(start, min(start + BATCH, count)):
                history, document, attempt_templates = chosen[number]
                age = MONTH * (1 - number / count)
                if history.max_age is not None:
                    age = history.max_age * rng.random()
                unique = _unique_fields(number, count, document["created_at"] - age)
                unique |= rng.choice(types) | {"client_id": rng.choice(clients)}
                documents.append(_copy(document, unique, age=age, number=number))
                copy = partial(_attempt, owner=unique["_id"], age=age, number=number)
                attempts += map(copy, attempt_templates)
            _insert("notifications", documents)
            _insert("delivery_attempts", attempts)
            attempted += len(attempts)
    _fill_other_collections(count, now)
    rollup.rebuild(since=now - DAY, until=now, now=now)
    return attempted


def samples(count: int) -> list[Document]:
    """Return notifications that are spread evenly over the month."""
    found = []
    total = collection("notifications").estimated_document_count()
    for number in range(count):
        index = (2 * number + 1) * total // (2 * count)
        found += collection("notifications").find({"external_id": f"order-{index}"}).limit(1)
    return found


def _unique_fields(number: int, count: int, at: datetime) -> dict[str, Any]:
    recipient = _recipient(number % max(count // NOTIFICATIONS_PER_RECIPIENT, 1))
    if number % NOTIFICATIONS_PER_BUSY_ONE == 0:
        recipient["user_id"] = BUSY_USER_ID
    return {
        "_id": _object_id(at, number),
        "user_id": recipient["user_id"],
        "recipient": {name: recipient[name] for name in ("email", "phone", "name")},
        "entity_id": f"video-{number}",
        "external_id": f"order-{number}",
        "idempotency_key": f"request-{number}",
    }


def _object_id(at: datetime, number: int) -> ObjectId:
    return ObjectId(ObjectId.from_datetime(at).binary[:4] + number.to_bytes(8, "big"))


def _recipient(number: int) -> dict[str, Any]:
    return {
        "user_id": f"user-{number:07d}",
        "email": f"person-{number}@example.com",
        "phone": f"+3519{number:08d}",
        "name": f"Person {number}",
    }


def _copy(document: Document, unique: Document, *, age: timedelta, number: int) -> Document:
    copied = _shift_times(document, age, number)
    return copied | unique | {"recipient": copied["recipient"] | unique["recipient"]}


def _attempt(attempt: Document, *, owner: ObjectId, age: timedelta, number: int) -> Document:
    copied = _shift_times(attempt, age, number)
    rest = str(attempt["_id"]).partition(".")[2]
    return copied | {"_id": f"{owner}.{rest}", "notification_id": owner}


def _shift_times(document: Document, age: timedelta, number: int) -> Document:
    """Return a copy with times that are ``age`` earlier, and unique provider message IDs."""
    copied = {}
    for name, value in document.items():
        if isinstance(value, datetime):
            copied[name] = value - age
        elif isinstance(value, dict):
            copied[name] = _shift_times(value, age, number)
        elif isinstance(value, list):
            copied[name] = [
                _shift_times(one, age, number) if isinstance(one, dict) else one for one in value
            ]
        elif name == "provider_message_id" and value is not None:
            copied[name] = f"{value}-{number}"
        else:
            copied[name] = value
    return copied


def _fill_other_collections(count: int, now: datetime) -> None:
    recipient_count = max(count // NOTIFICATIONS_PER_RECIPIENT, 1)
    state = {"attributes": {}, "preferences": {}, "is_active": True}
    state |= {"created_at": now - MONTH, "updated_at": now - MONTH}
    numbered = ({**_recipient(number), **state} for number in range(recipient_count))
    busy = {**_recipient(recipient_count), **state, "user_id": BUSY_USER_ID}
    _insert_in_batches(
        "recipients", ({"_id": one.pop("user_id"), **one} for one in (busy, *numbered))
    )
    entries = count // NOTIFICATIONS_PER_LOG_ENTRY
    ages = [MONTH * (number / entries) * 0.9 for number in range(entries)]
    webhook_calls = (
        {
            "provider": ("sendgrid", "whatsapp")[number % 2],
            "received_at": now - age,
            "processed_at": now - age,
            "body": '[{"event":"delivered"}]',
            "event_count": 1,
            "applied_count": number % 3 and 1,
            "unmatched_count": 0,
            "purge_at": now - age + MONTH,
        }
        for number, age in enumerate(ages)
    )
    _insert_in_batches("webhook_log", webhook_calls)
    audit_entries = (
        {
            "_id": _object_id(now - age, number),
            "action_time": now - age,
            "user_id": ObjectId(),
            "content_type_id": None,
            "object_id": f"{number}",
            "object_repr": f"payment_confirmed {number}",
            "action_flag": 2,
            "change_message": "Retried.",
        }
        for number, age in enumerate(ages)
    )
    _insert_in_batches("django_admin_log", audit_entries)


def _insert_in_batches(name: str, documents: Iterator[Document]) -> None:
    while batch := list(islice(documents, BATCH)):
        _insert(name, batch)


def _insert(name: str, documents: Sequence[Document]) -> None:
    if documents:
        unjournaled = collection(name).with_options(write_concern=WriteConcern(w=1, j=False))
        unjournaled.insert_many(documents, ordered=False)
