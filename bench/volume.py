"""Collections of millions of documents: copies of real ones, made by MongoDB."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bson import ObjectId

from . import mail

CLIENTS = tuple(ObjectId(f"{number:024x}") for number in range(1, 11))
"""The clients of the copies."""
READER = "reader"
"""A recipient with a full inbox, at the first client."""
FIRST_CLIENT = CLIENTS[0]
HOUR_MS = 3_600_000
Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class CopySpec:
    """A document and its number of copies; ``people`` is the number of recipients."""

    seed: Document
    count: int
    clients: Sequence[ObjectId] = CLIENTS
    people: int | None = None


def due_mails(count: int) -> CopySpec:
    """Return due mails."""
    return CopySpec(
        seed=_accepted(mail.new_notification(1, at=_now())), count=count, people=200_000
    )


def sent_mails(count: int) -> CopySpec:
    """Return sent mails."""
    from delivery import dispatcher
    from domain.states import Channel
    from notifyproject.db.collections import collection

    document = _accepted(mail.new_notification(1, at=_now()))
    dispatcher.dispatch([document["_id"]], channel=Channel.EMAIL)
    stored = collection("notifications").find_one({"_id": document["_id"]})
    if stored is None or stored["status"] != "sent":
        raise RuntimeError("the mail was not sent")
    return CopySpec(seed=stored, count=count, people=200_000)


def inbox_items(count: int) -> CopySpec:
    """Return the unread items of one inbox."""
    item = mail.new_notification(1, at=_now(), user_id=READER, in_app=True)
    return CopySpec(seed=_accepted(item), count=count, clients=[FIRST_CLIENT])


def fill(parts: Sequence[CopySpec]) -> None:
    """Replace all notifications by copies, and build the indexes afterwards."""
    from notifyproject.db.collections import database

    with rebuild_indexes_after("notifications"):
        database().aggregate(_copies(parts))


@contextmanager
def rebuild_indexes_after(*names: str) -> Iterator[None]:
    """Build the indexes after the inserts, which takes a fraction of the time."""
    from notifyproject.db.collections import collection

    indexes = {
        name: [
            {word: value for word, value in index.items() if word != "v"}
            for index in collection(name).list_indexes()
            if index["name"] != "_id_"
        ]
        for name in names
    }
    for name in names:
        collection(name).drop()
    yield
    for name, found in indexes.items():
        collection(name).database.command("createIndexes", name, indexes=found)


def _copies(parts: Sequence[CopySpec]) -> list[dict[str, Any]]:
    """Return the pipeline: each copy gets an ID, a recipient, and a time of its own."""
    seeds = [
        {**part.seed, "_clients": list(part.clients), "_people": part.people, "_count": part.count}
        for part in parts
    ]
    thousands = {"$range": [0, {"$ceil": {"$divide": ["$_count", 1_000]}}]}
    return [
        {"$documents": seeds},
        {"$unset": "_id"},
        {"$set": {"_a": thousands}},
        {"$unwind": "$_a"},
        {"$set": {"_b": {"$range": [0, 1_000]}}},
        {"$unwind": "$_b"},
        {"$set": {"_shift": _random(HOUR_MS)}},
        {
            "$set": {
                "client_id": {"$arrayElemAt": ["$_clients", _random({"$size": "$_clients"})]},
                "user_id": {
                    "$cond": [
                        {"$eq": ["$_people", None]},
                        "$user_id",
                        {"$concat": ["user-", {"$toString": _random("$_people")}]},
                    ]
                },
                **{name: _earlier(f"${name}") for name in ("created_at", "due_at", "inbox_at")},
                "delivery": {
                    "$map": {
                        "input": "$delivery",
                        "in": {
                            "$mergeObjects": [
                                "$$this",
                                {
                                    name: _earlier(f"$$this.{name}")
                                    for name in ("first_due_at", "next_attempt_at")
                                },
                            ]
                        },
                    }
                },
            }
        },
        {"$unset": ["_clients", "_people", "_count", "_a", "_b", "_shift"]},
        {"$out": "notifications"},
    ]


def _random(below: Any) -> dict[str, Any]:
    return {"$toInt": {"$floor": {"$multiply": [{"$rand": {}}, below]}}}


def _earlier(moment: str) -> dict[str, Any]:
    """Return a time up to an hour earlier; missing times stay missing."""
    is_there = {"$eq": [{"$type": moment}, "date"]}
    return {"$cond": [is_there, {"$subtract": [moment, "$_shift"]}, "$$REMOVE"]}


def _accepted(new: Any) -> Document:
    from notifications import store

    (accepted,) = store.accept([new], now=new.created_at)
    if not isinstance(accepted, store.Accepted):
        raise TypeError("it was not accepted")
    return accepted.document


def _now() -> Any:
    from domain.time import utc_now

    return utc_now() - timedelta(seconds=1)
