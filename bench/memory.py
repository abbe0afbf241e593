"""S8: the memory of a worker, after a drain and under a steady load."""

import time
from collections.abc import Callable, Iterator

from . import draining, environment, mail
from .environment import Bench
from .figures import Figure, at_most, median

LOAD = 100
"""Emails a second."""


def measure_memory(
    bench: Bench, *, count: int, minutes: float, log_progress: Callable[[str], None]
) -> Iterator[Figure]:
    """Measure S8."""
    from delivery import sweeper
    from domain.time import utc_now

    with environment.run_worker(bench, environment={"WORKER_THREADS": "32"}) as worker:
        mail.store_due(count, at=utc_now())
        sweeper.sweep(now=utc_now())
        environment.wait_for(draining.is_all_final, timeout=draining.TIMEOUT)
        drained = environment.resident_megabytes(worker.pid)
        log_progress(f"after {count:,} emails: {drained:.0f} MB")
        samples = []
        until = time.monotonic() + 60 * minutes
        while (began := time.monotonic()) < until:
            mail.store_due(LOAD, at=utc_now())
            sweeper.sweep(now=utc_now())
            samples.append(environment.resident_megabytes(worker.pid))
            time.sleep(max(began + 1 - time.monotonic(), 0))
        log_progress(f"under load: {min(samples):.0f} to {max(samples):.0f} MB")
    quarter = max(len(samples) // 4, 1)
    yield Figure(
        key="S8 memory",
        label=f"a worker with 32 threads after {count:,} emails",
        unit="MB",
        ours=max(drained, *samples),
        goals=(at_most(200),),
        note="the most of the samples taken each second",
    )
    before, after = median(samples[quarter : 2 * quarter]), median(samples[-quarter:])
    yield Figure(
        key="S8 growth",
        label=f"its growth in {minutes:g} min at {LOAD}/s",
        unit="%",
        ours=100 * (after / before - 1),
        goals=(at_most(5),),
        note="the last quarter of the time against the second",
    )
