"""S11: a hundred thousand timers that fall due in one second, among millions that wait."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from statistics import median
from typing import Any

from domain.time import utc_now
from notifyproject.db.collections import collection, database

from .. import mail, volume
from ..environment import Bench
from ..figures import Figure, Measure, Progress, at_most, compare
from .burst import Burst, measure_burst

SMALL_NAME, LARGE_NAME = "bench_timers_small", "bench_timers"
SMALL_WAITING = 10_000
ROUNDS = 20
CLAIMS_PER_ROUND = 5
TIMER = "timer"


@dataclass(frozen=True, kw_only=True)
class Timers:
    """``count`` scheduled mails, due at random times within ``spread`` from ``start`` on."""

    count: int
    start: datetime
    spread: timedelta


def fill(groups: Sequence[Timers]) -> None:
    """Replace all notifications by timers of the stored form, which MongoDB makes."""
    with volume.rebuild_indexes_after("notifications"):
        database().aggregate(copies(stored_timer(), groups))


def copies(seed: Mapping[str, Any], groups: Sequence[Timers]) -> list[dict[str, Any]]:
    """Return the aggregation: each copy has its own ID, recipient, client, and time."""
    seeds = [
        {**seed, "_count": one.count, "_start": one.start, "_ms": _milliseconds(one.spread)}
        for one in groups
    ]
    number = {"$add": [{"$multiply": ["$_a", 1_000]}, "$_b"]}
    due = {"$add": ["$_start", _random("$_ms")]}
    due_ms = {"$toString": {"$toLong": "$_due"}}
    address = {"$concat": [f"{TIMER}.", due_ms, ".", {"$toString": "$_n"}, "@example.com"]}
    clients = list(volume.CLIENTS)
    times = dict.fromkeys(("first_due_at", "next_attempt_at"), "$_due")
    in_delivery = {"$mergeObjects": ["$$this", times]}
    return [
        {"$documents": seeds},
        {"$unset": "_id"},
        {"$set": {"_a": {"$range": [0, {"$ceil": {"$divide": ["$_count", 1_000]}}]}}},
        {"$unwind": "$_a"},
        {"$set": {"_b": {"$range": [0, 1_000]}}},
        {"$unwind": "$_b"},
        {"$set": {"_n": number, "_due": due}},
        {
            "$set": {
                "client_id": {"$arrayElemAt": [clients, {"$mod": ["$_n", len(clients)]}]},
                "user_id": {"$concat": ["user-", {"$toString": "$_n"}]},
                "recipient.email": address,
                # Otherwise equal mails would share requests.
                "content.subject": {"$concat": ["Order ", {"$toString": "$_n"}]},
                **dict.fromkeys(("due_at", "scheduled_at"), "$_due"),
                "delivery": {"$map": {"input": "$delivery", "in": in_delivery}},
            }
        },
        {"$unset": ["_a", "_b", "_n", "_due", "_count", "_start", "_ms"]},
        {"$out": "notifications"},
    ]


def _milliseconds(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def _random(below: str) -> dict[str, Any]:
    return {"$toLong": {"$floor": {"$multiply": [{"$rand": {}}, below]}}}


def stored_timer() -> Mapping[str, Any]:
    """Return the document of a scheduled mail, as the service stores it."""
    from notifications.store import acceptance
    from notifications.store.acceptance import Accepted

    at, now = utc_now() + timedelta(days=1), utc_now()
    new = replace(mail.new_notification(1, at=now), send_at=at, scheduled_at=at)
    (accepted,) = acceptance.accept([new], now=now)
    if not isinstance(accepted, Accepted):
        raise TypeError("it was not accepted")
    return accepted.document


def measure_timers(
    bench: Bench, *, waiting: int, due: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure sweeps and claims among the timers, then send those that fall due."""
    with ExitStack() as stack:
        past = utc_now() - timedelta(minutes=1)
        for name, count, due_count in (
            (SMALL_NAME, SMALL_WAITING, SMALL_WAITING),
            (LARGE_NAME, waiting, due),
        ):
            stack.enter_context(bench.database(name))
            began, later = time.monotonic(), utc_now() + timedelta(days=1)
            fill(
                [
                    Timers(count=count, start=later, spread=timedelta(days=28)),
                    Timers(count=due_count, start=past, spread=timedelta(seconds=1)),
                ]
            )
            seconds = time.monotonic() - began
            log_progress(f"{count:,} waiting and {due_count:,} due: filled in {seconds:.0f} s")
        yield from _measure_sweeps_and_claims(bench, waiting=waiting, due=due)
        bench.use_database(LARGE_NAME)
        burst = Burst(
            key="S11",
            kind=TIMER,
            count=due,
            label=f"{due:,} due in one second",
            prepare=partial(postpone, past),
        )
        yield from measure_burst(bench, burst, log_progress=log_progress)


def _measure_sweeps_and_claims(bench: Bench, *, waiting: int, due: int) -> Iterator[Figure]:
    sweeps: dict[str, list[float]] = {SMALL_NAME: [], LARGE_NAME: []}
    claims: dict[str, list[float]] = {SMALL_NAME: [], LARGE_NAME: []}
    for _ in range(ROUNDS):
        for name, found in sweeps.items():
            bench.use_database(name)
            found.append(volume.time_sweep())
            claims[name].append(median(volume.time_claim() for _ in range(CLAIMS_PER_ROUND)))
    for what, times in (("sweep", sweeps), ("claim", claims)):
        yield compare(
            ours=times[LARGE_NAME],
            floor=times[SMALL_NAME],
            key=f"S11 {what}",
            label=f"a {what}, {waiting:,} timers waiting, {due:,} due",
            unit="ms",
            goals=(at_most(1.2, Measure.FLOOR),),
            note=f"floor: the same with {SMALL_WAITING:,} waiting and {SMALL_WAITING:,} due",
        )


def postpone(past: datetime, due_at: datetime) -> None:
    """Let the timers that fell due from ``past`` on fall due from ``due_at`` on."""
    shift = _milliseconds(due_at - past)

    def later(moment: str) -> dict[str, Any]:
        return {"$add": [moment, shift]}

    parts = {"$split": ["$recipient.email", "."]}
    due_ms = {"$toString": {"$add": [{"$toLong": {"$arrayElemAt": [parts, 1]}}, shift]}}
    number = {"$arrayElemAt": [parts, 2]}
    in_delivery = {name: later(f"$$this.{name}") for name in ("first_due_at", "next_attempt_at")}
    changes = {
        **{name: later(f"${name}") for name in ("due_at", "scheduled_at")},
        "recipient.email": {"$concat": [f"{TIMER}.", due_ms, ".", number, ".com"]},
        "delivery": {
            "$map": {"input": "$delivery", "in": {"$mergeObjects": ["$$this", in_delivery]}}
        },
    }
    limit = past + timedelta(seconds=2)
    collection("notifications").update_many({"due_at": {"$lt": limit}}, [{"$set": changes}])
