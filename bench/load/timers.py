"""S11: a hundred thousand timers that fall due in one second, among millions that wait."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from domain.time import utc_now
from notifyproject.db.collections import collection, database

from .. import mail, posting, volume
from ..environment import Bench
from ..figures import Figure, Measure, Progress, at_most, compare
from ..processes import wait_until
from .sink import Arrival, Limits, LoadSink
from .stack import CRITICAL_PER_SECOND, CRITICAL_SCOPE, SteadyPosts, run_stack
from .tables import percentile_of

SMALL_NAME, LARGE_NAME = "bench_timers_small", "bench_timers"
SMALL_WAITING = 10_000
ROUNDS = 20
CLAIMS_PER_ROUND = 5
LEAD = timedelta(seconds=90)
"""Time from the preparation of the due timers until they fall due."""
WARM_UP = 15.0
"""Seconds of critical mail before the timers fall due."""
DRAIN_SECONDS = 180
LATENCY = 0.1
TIMER = "timer"
CRITICAL = "critical"


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
    from notifications import store

    at, now = utc_now() + timedelta(days=1), utc_now()
    new = replace(mail.new_notification(1, at=now), send_at=at, scheduled_at=at)
    (accepted,) = store.accept([new], now=now)
    if not isinstance(accepted, store.Accepted):
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
        yield from _measure_drain(bench, due=due, past=past, log_progress=log_progress)


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


def _measure_drain(
    bench: Bench, *, due: int, past: datetime, log_progress: Progress
) -> Iterator[Figure]:
    key = posting.create_key(CRITICAL_SCOPE)
    sink = LoadSink(
        folder=bench.fresh_folder("load-sink"), limits=Limits(latencies=((0.0, LATENCY),))
    )
    with sink.running():
        began = time.monotonic()
        due_at = postpone(past)
        log_progress(f"{due:,} timers set anew in {time.monotonic() - began:.0f} s")
        with run_stack(bench, "web", "worker", "urgent", "beat", SENDGRID_URL=sink.url) as stack:
            posts = SteadyPosts(
                url=stack.addresses.web,
                key=key,
                kind=CRITICAL,
                priority="critical",
                per_second=CRITICAL_PER_SECOND,
            )
            late = (utc_now() - due_at).total_seconds()
            if late > -WARM_UP:
                raise RuntimeError(f"the programs were ready {late + WARM_UP:.0f} s too late")
            time.sleep(-late - WARM_UP)
            with posts:
                wait_until(
                    lambda: _count(sink, TIMER) >= due,
                    timeout=WARM_UP + 3 * DRAIN_SECONDS,
                    what="the timers were not sent",
                    poll=1.0,
                )
            wait_until(
                lambda: _count(sink, CRITICAL) >= posts.posted,
                timeout=30,
                what="the critical mails were not sent",
                poll=1.0,
            )
            arrivals = sink.arrivals()
    if posts.errors:
        raise RuntimeError(posts.errors[0])
    timers = [one for one in arrivals if one.kind == TIMER]
    beside = during(arrivals, kind=CRITICAL, start=due_at, end=max(one.at for one in timers))
    yield Figure(
        key="S11 drain",
        label=f"{due:,} due in one second: all at the provider after",
        unit="s",
        ours=max(one.at for one in timers) - due_at.timestamp(),
        goals=(at_most(DRAIN_SECONDS),),
        note=f"the programs of `make up`; the provider answers after {1000 * LATENCY:.0f} ms",
    )
    yield Figure(
        key="S11 twice",
        label="… sent twice, or not due",
        unit="",
        ours=len(timers) - due,
        goals=(at_most(0),),
    )
    yield Figure(
        key="S11 critical",
        label=f"… POST → provider of {len(beside)} critical mails beside them, p99",
        unit="s",
        ours=percentile_of(beside, 99),
        goals=(at_most(1),),
        note=f"p50 {percentile_of(beside, 50):.2f} s; of the POST alone, "
        f"p50 {percentile_of(posts.took, 50):.2f} s and p99 {percentile_of(posts.took, 99):.2f} s",
    )


def during(
    arrivals: Sequence[Arrival], *, kind: str, start: datetime, end: float
) -> Sequence[float]:
    """Return the waits of mails of a kind that were due between two times."""
    return [
        one.wait for one in arrivals if one.kind == kind and start.timestamp() <= one.due_at <= end
    ]


def postpone(past: datetime) -> datetime:
    """Let the due timers fall due a little later from now; return the new time."""
    due_at = (utc_now() + LEAD).replace(microsecond=0)
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
    return due_at


def _count(sink: LoadSink, kind: str) -> int:
    return sum(one.kind == kind for one in sink.arrivals())
