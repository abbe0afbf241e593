"""S4: the time of a sweep and of a claim with a million due, or millions stored."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta

from . import volume
from .environment import Bench
from .figures import Figure, Measure, Progress, at_most, compare, median

SMALL_COUNT = 10_000
SMALL_NAME, DUE_NAME, STORED_NAME = "bench_small", "bench_due", "bench_stored"
CLAIMS_PER_ROUND = 5
"""The median of each round counts."""


def measure_sweeps_and_claims(
    bench: Bench, *, due: int, rounds: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure S4; the database of stored notifications is already filled."""
    from notifyproject.db.collections import collection

    bench.use_database(STORED_NAME)
    stored = int(collection("notifications").estimated_document_count())
    sizes = {SMALL_NAME: SMALL_COUNT, DUE_NAME: due}
    with ExitStack() as stack:
        for name, count in sizes.items():
            stack.enter_context(bench.database(name))
            began = time.monotonic()
            volume.fill([volume.due_mails(count)])
            log_progress(f"{count:,} due: filled in {time.monotonic() - began:.0f} s")
        names = (SMALL_NAME, DUE_NAME, STORED_NAME)
        sweeps: Mapping[str, list[float]] = {name: [] for name in names}
        claims: Mapping[str, list[float]] = {name: [] for name in names}
        for _ in range(rounds):
            for name in names:
                bench.use_database(name)
                sweeps[name].append(_time_sweep())
                claims[name].append(median(_time_claim() for _ in range(CLAIMS_PER_ROUND)))
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


def _time_sweep() -> float:
    from delivery import sweeper
    from domain.time import utc_now

    started = time.perf_counter()
    sweeper.sweep(now=utc_now())
    return 1000 * (time.perf_counter() - started)


def _time_claim() -> float:
    """Return the milliseconds in which a worker finds and claims a batch."""
    from delivery import worker
    from domain.states import Channel, Priority
    from domain.time import utc_now
    from notifications import store
    from notifications.queueing import fair_queue

    size = worker.batch_size()
    now = utc_now()
    started = time.perf_counter()
    found = fair_queue.due(
        client_id=volume.FIRST_CLIENT,
        channel=Channel.EMAIL,
        priority=Priority.NORMAL,
        until=now,
        now=now,
        limit=size + 1,
    )
    ids = [one.notification_id for one in found[:size]]
    claims = store.claim(ids=ids, channel=Channel.EMAIL, worker="bench", now=now)
    milliseconds = 1000 * (time.perf_counter() - started)
    if len(claims) != size:
        raise RuntimeError(f"{len(claims)} claims instead of {size}")
    store.release(claims, now=now + timedelta(milliseconds=1))
    return milliseconds
