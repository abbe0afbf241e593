"""A month of notifications in every state, with their attempts, people, calls and figures.

Each is a copy of one that the store itself has brought into its state: with ids, a person, a type
and a time of its own. It needs Django, so it is imported where that is set up.
"""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import WriteConcern

from access.clients import registry
from access.models import Scope
from monitoring import rollup
from notifyproject.db.collections import collection

from . import shapes
from .shapes import Document

MONTH = timedelta(days=30)
PEOPLE, CLIENTS = 5, 10
"""One person for so many notifications; API clients."""
BUSY, BUSY_SHARE = "user-busy", 500
"""Somebody who gets every so many-th of all."""
BATCH = 2_000
LOGGED = 10
"""A provider's call, and an entry of the audit log, for so many notifications."""
DAY = timedelta(hours=25)


def fill(count: int, *, now: datetime) -> int:
    """Store so many notifications in the empty database; return how many attempts they took."""
    made = [(shape, *shapes.seed(shape, now=now)) for shape in shapes.SHAPES]
    collection("notifications").delete_many({})
    collection("delivery_attempts").delete_many({})
    chance = random.Random(6)
    chosen = chance.choices(made, [shape.share for shape in shapes.SHAPES], k=count)
    clients = _clients(now)
    kinds = _kinds()
    attempted = 0
    with _indexes_last("notifications", "delivery_attempts"):
        for start in range(0, count, BATCH):
            documents, attempts = [], []
            for number in range(start, min(start + BATCH, count)):
                shape, document, tries = chosen[number]
                age = (
                    MONTH * (1 - number / count)
                    if shape.within is None
                    else shape.within * chance.random()
                )
                own = _own(number, count, document["created_at"] - age)
                own |= chance.choice(kinds) | {"client_id": chance.choice(clients)}
                documents.append(_copy(document, own, age=age, number=number))
                attempts += [_attempt(one, own["_id"], age=age, number=number) for one in tries]
            _insert("notifications", documents)
            _insert("delivery_attempts", attempts)
            attempted += len(attempts)
    _others(count, now)
    rollup.rebuild(since=now - DAY, until=now, now=now)
    return attempted


def samples(count: int) -> list[Document]:
    """Return notifications from all over the month, each of another person."""
    found = []
    total = collection("notifications").estimated_document_count()
    for number in range(count):
        place = (2 * number + 1) * total // (2 * count)
        found += collection("notifications").find({"external_id": f"order-{place}"}).limit(1)
    return found


def _own(number: int, count: int, at: datetime) -> dict[str, Any]:
    """Return what tells a notification from all others."""
    person = _person(number % max(count // PEOPLE, 1))
    if number % BUSY_SHARE == 0:
        person["user_id"] = BUSY
    return {
        "_id": ObjectId(ObjectId.from_datetime(at).binary[:4] + number.to_bytes(8, "big")),
        "user_id": person["user_id"],
        "recipient": {name: person[name] for name in ("email", "phone", "name")},
        "entity_id": f"video-{number}",
        "external_id": f"order-{number}",
        "idempotency_key": f"request-{number}",
    }


def _person(number: int) -> dict[str, Any]:
    return {
        "user_id": f"user-{number:07d}",
        "email": f"person-{number}@example.com",
        "phone": f"+3519{number:08d}",
        "name": f"Person {number}",
    }


def _copy(document: Document, own: Document, *, age: timedelta, number: int) -> Document:
    copied = _moved(document, age, number)
    return copied | own | {"recipient": copied["recipient"] | own["recipient"]}


def _attempt(attempt: Document, owner: ObjectId, *, age: timedelta, number: int) -> Document:
    copied = _moved(attempt, age, number)
    rest = str(attempt["_id"]).partition(".")[2]
    return copied | {"_id": f"{owner}.{rest}", "notification_id": owner}


def _moved(document: Document, age: timedelta, number: int) -> Document:
    """Return a copy with all its times so much earlier, and messages' ids of its own."""
    copied = {}
    for name, value in document.items():
        if isinstance(value, datetime):
            copied[name] = value - age
        elif isinstance(value, dict):
            copied[name] = _moved(value, age, number)
        elif isinstance(value, list):
            copied[name] = [
                _moved(one, age, number) if isinstance(one, dict) else one for one in value
            ]
        elif name == "provider_message_id" and value is not None:
            copied[name] = f"{value}-{number}"
        else:
            copied[name] = value
    return copied


def _clients(now: datetime) -> list[ObjectId]:
    scopes = [Scope.NOTIFICATIONS_WRITE]
    names = [f"app {number}" for number in range(CLIENTS)]
    return [registry.create_client(name=name, scopes=scopes, now=now) for name in names]


def _kinds() -> list[Document]:
    """Return what notifications say of each registered type."""
    found = collection("notification_types").find({}, {"category": 1, "priority": 1})
    return [{"type": one.pop("_id"), **one} for one in found]


def _others(count: int, now: datetime) -> None:
    """Store the people, what providers have called, and what staff have done."""
    people = max(count // PEOPLE, 1)
    state = {"attributes": {}, "preferences": {}, "is_active": True}
    state |= {"created_at": now - MONTH, "updated_at": now - MONTH}
    numbered = ({**_person(number), **state} for number in range(people))
    busy = {**_person(people), **state, "user_id": BUSY}
    _in_batches("recipients", ({"_id": one.pop("user_id"), **one} for one in (busy, *numbered)))
    entries = count // LOGGED
    ages = [MONTH * (number / entries) * 0.9 for number in range(entries)]
    calls = (
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
    _in_batches("webhook_log", calls)
    done = (
        {
            "_id": ObjectId(
                ObjectId.from_datetime(now - age).binary[:4] + number.to_bytes(8, "big")
            ),
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
    _in_batches("django_admin_log", done)


def _in_batches(name: str, documents: Iterator[Document]) -> None:
    some: list[Document] = []
    for one in documents:
        some.append(one)
        if len(some) == BATCH:
            _insert(name, some)
            some = []
    _insert(name, some)


def _insert(name: str, documents: Sequence[Document]) -> None:
    """Store documents, without waiting for the disk."""
    if documents:
        quick = collection(name).with_options(write_concern=WriteConcern(w=1, j=False))
        quick.insert_many(documents, ordered=False)


@contextmanager
def _indexes_last(*names: str) -> Iterator[None]:
    """Build the indexes of collections when all is there: it takes a fraction of the time."""
    indexes = {
        name: [
            {word: value for word, value in index.items() if word != "v"}
            for index in collection(name).list_indexes()
            if index["name"] != "_id_"
        ]
        for name in names
    }
    for name in names:
        collection(name).drop_indexes()
    yield
    for name, found in indexes.items():
        collection(name).database.command("createIndexes", name, indexes=found)
