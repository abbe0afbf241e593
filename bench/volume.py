"""S4 and S5: the times of sweeps, claims, and inbox reads among millions of documents."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from statistics import median
from typing import Any

from bson import ObjectId

from domain.channels import Channel
from domain.states import Priority
from domain.time import utc_now
from notifyproject.db.collections import collection, database
from notifyproject.db.paging import cursor_of_document

from . import mail
from .environment import Bench
from .figures import Figure, Measure, Progress, at_most, compare, run_rounds

CLIENTS = tuple(ObjectId(f"{number:024x}") for number in range(1, 11))
READER = "reader"
"""A recipient with a full inbox, at the first client."""
FIRST_CLIENT = CLIENTS[0]
HOUR_MS = 3_600_000
Document = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class CopySpec:
    """A document to copy ``count`` times, for ``people`` recipients (None: its own)."""

    seed: Document
    count: int
    clients: Sequence[ObjectId] = CLIENTS
    people: int | None = None


def due_mails(count: int) -> CopySpec:
    """Return the copies of a due mail."""
    seed = _accepted(mail.new_notification(1, at=_now()))
    return CopySpec(seed=seed, count=count, people=200_000)


def sent_mails(count: int) -> CopySpec:
    """Return the copies of a sent mail."""
    from delivery import pipeline
    from delivery.runtime import SendingRuntime

    document = _accepted(mail.new_notification(1, at=_now()))
    pipeline.dispatch(SendingRuntime(), [document["_id"]], channel=Channel.EMAIL)
    stored = collection("notifications").find_one({"_id": document["_id"]})
    if stored is None or stored["status"] != "sent":
        raise RuntimeError("the mail was not sent")
    return CopySpec(seed=stored, count=count, people=200_000)


def inbox_items(count: int) -> CopySpec:
    """Return the copies of an unread item, all in the inbox of READER."""
    item = mail.new_notification(1, at=_now(), user_id=READER, in_app=True)
    return CopySpec(seed=_accepted(item), count=count, clients=[FIRST_CLIENT])


def fill(parts: Sequence[CopySpec]) -> None:
    """Replace all notifications by copies, which MongoDB makes."""
    with rebuild_indexes_after("notifications"):
        database().aggregate(_copies(parts))


@contextmanager
def rebuild_indexes_after(*names: str) -> Iterator[None]:
    """Drop collections, and rebuild their indexes after the block, so that its inserts are fast."""
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
    """Return the aggregation that copies: each copy has its own ID, recipient, client, and time."""
    seeds = [
        {**part.seed, "_clients": list(part.clients), "_people": part.people, "_count": part.count}
        for part in parts
    ]
    thousands = {"$range": [0, {"$ceil": {"$divide": ["$_count", 1_000]}}]}
    other_user = {"$concat": ["user-", {"$toString": _random("$_people")}]}
    times = ("first_due_at", "next_attempt_at")
    delivery = {name: _earlier(f"$$this.{name}") for name in times}
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
                "user_id": {"$cond": [{"$eq": ["$_people", None]}, "$user_id", other_user]},
                **{name: _earlier(f"${name}") for name in ("created_at", "due_at", "inbox_at")},
                "delivery": {
                    "$map": {"input": "$delivery", "in": {"$mergeObjects": ["$$this", delivery]}}
                },
            }
        },
        {"$unset": ["_clients", "_people", "_count", "_a", "_b", "_shift"]},
        {"$out": "notifications"},
    ]


def _random(below: Any) -> dict[str, Any]:
    return {"$toInt": {"$floor": {"$multiply": [{"$rand": {}}, below]}}}


def _earlier(moment: str) -> dict[str, Any]:
    """Return an expression for a time that is up to an hour earlier; missing if it is no time."""
    is_there = {"$eq": [{"$type": moment}, "date"]}
    return {"$cond": [is_there, {"$subtract": [moment, "$_shift"]}, "$$REMOVE"]}


def _accepted(new: Any) -> Document:
    from notifications.store import acceptance
    from notifications.store.acceptance import Accepted

    (accepted,) = acceptance.accept([new], now=new.created_at)
    if not isinstance(accepted, Accepted):
        raise TypeError("it was not accepted")
    return accepted.document


def _now() -> Any:
    return utc_now() - timedelta(seconds=1)


INBOX_SIZE = 5_000
PAGE = 20
REPEATS = 50
DEEP_PAGE = 100
"""The number of a late page, which ``skip`` would reach only by reading all pages before."""


def measure_inbox(*, rounds: int) -> Iterator[Figure]:
    """Measure S5: an inbox page with its JSON, as in the API. The floor is pymongo's query."""
    from notifications.inbox import feed
    from notifications.store.inbox import Inbox

    inbox = Inbox(client_id=FIRST_CLIENT, user_id=READER)
    visible = inbox.match(is_archived=False)
    last_before = _find_with_pymongo(visible).limit(0).skip(DEEP_PAGE * PAGE).next()
    cursor = cursor_of_document(last_before, feed.NEWEST_FIRST)
    beyond = inbox.match(is_archived=False, since={"$lt": last_before["inbox_at"]})
    unread = inbox.match(is_archived=False, is_read=False)
    notifications = collection("notifications")
    reads: dict[str, tuple[str, Callable[[], Any], Callable[[], Any]]] = {
        "S5 page": (
            "the feed's first page, as JSON",
            lambda: _render_page(feed.page(inbox, limit=PAGE)),
            lambda: list(_find_with_pymongo(visible)),
        ),
        "S5 deep": (
            f"its page {DEEP_PAGE}, as JSON",
            lambda: _render_page(feed.page(inbox, limit=PAGE, cursor=cursor)),
            lambda: list(_find_with_pymongo(beyond)),
        ),
        "S5 counts": (
            f"how many of {INBOX_SIZE:,} are unread, and unseen",
            lambda: feed.counts(inbox),
            lambda: notifications.count_documents(unread, hint=feed.INDEX),
        ),
    }
    for key, (label, ours, floor) in reads.items():
        runs = {"ours": partial(_milliseconds, ours), "floor": partial(_milliseconds, floor)}
        found = run_rounds(runs, rounds=rounds)
        yield compare(
            **found,
            key=key,
            label=label,
            unit="ms",
            goals=(at_most(2.0, Measure.FLOOR),),
            note="floor: pymongo's find, or count_documents, with the same filter and index",
        )


def _render_page(part: Any) -> bytes:
    from api.http import paging
    from api.http.rendering import encode
    from api.inbox.schemas import InboxList, inbox_item
    from api.inbox.views import LIST
    from notifications.inbox.feed import NEWEST_FIRST

    now = utc_now()
    results = [inbox_item(document, now=now) for document in part.documents]
    links = paging.page_links(part, list_name=LIST, order=NEWEST_FIRST)
    return encode(InboxList(results=results, **links))


def _milliseconds(run: Callable[[], Any]) -> float:
    started = time.perf_counter()
    for _ in range(REPEATS):
        run()
    return 1000 * (time.perf_counter() - started) / REPEATS


def _find_with_pymongo(query: dict[str, Any]) -> Any:
    from notifications.inbox.feed import INDEX, NEWEST_FIRST

    found = collection("notifications").find(query).sort(NEWEST_FIRST)
    return found.hint(INDEX).limit(PAGE + 1)


SMALL_COUNT = 10_000
SMALL_NAME, DUE_NAME, STORED_NAME = "bench_small", "bench_due", "bench_stored"
CLAIMS_PER_ROUND = 5
"""Claims in each round, of which the median counts."""


def measure_sweeps_and_claims(
    bench: Bench, *, due: int, rounds: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure S4: sweeps and claims. The database STORED_NAME must be filled."""
    bench.use_database(STORED_NAME)
    stored = int(collection("notifications").estimated_document_count())
    with ExitStack() as stack:
        for name, count in ((SMALL_NAME, SMALL_COUNT), (DUE_NAME, due)):
            stack.enter_context(bench.database(name))
            began = time.monotonic()
            fill([due_mails(count)])
            log_progress(f"{count:,} due: filled in {time.monotonic() - began:.0f} s")
        names = (SMALL_NAME, DUE_NAME, STORED_NAME)
        sweeps: Mapping[str, list[float]] = {name: [] for name in names}
        claims: Mapping[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in names:
                bench.use_database(name)
                sweeps[name].append(time_sweep())
                claims[name].append(median(time_claim() for _ in range(CLAIMS_PER_ROUND)))
    for what, found in (("sweep", sweeps), ("claim of 100", claims)):
        yield _figure(what, f"{due:,} due", found[DUE_NAME], found[SMALL_NAME])
        yield _figure(what, f"{stored:,} stored", found[STORED_NAME], found[SMALL_NAME])


def _figure(what: str, size: str, big: Sequence[float], small: Sequence[float]) -> Figure:
    return compare(
        ours=big,
        floor=small,
        key=f"S4 {what.split(maxsplit=1)[0]} {size.split()[1]}",
        label=f"a {what}, {size}",
        unit="ms",
        goals=(at_most(1.2, Measure.FLOOR),),
        note=f"floor: the same at {SMALL_COUNT:,} due",
    )


def time_sweep() -> float:
    """Return the milliseconds of a sweep."""
    from delivery import sweeper

    started = time.perf_counter()
    sweeper.sweep(now=utc_now())
    return 1000 * (time.perf_counter() - started)


def time_claim() -> float:
    """Return the milliseconds in which FIRST_CLIENT's next batch is found and claimed."""
    from delivery import worker
    from notifications.queueing import fair_queue
    from notifications.store import leases

    size = worker.batch_size()
    now = utc_now()
    started = time.perf_counter()
    queue = fair_queue.FairQueue(FIRST_CLIENT, Channel.EMAIL, Priority.NORMAL)
    found = fair_queue.due(queue, until=now, now=now, limit=size + 1)
    ids = [due.notification_id for due in found[:size]]
    claims = leases.claim(ids=ids, channel=Channel.EMAIL, worker="bench", now=now)
    milliseconds = 1000 * (time.perf_counter() - started)
    if len(claims) != size:
        raise RuntimeError(f"{len(claims)} claims instead of {size}")
    leases.release(claims, now=now + timedelta(milliseconds=1))
    return milliseconds
