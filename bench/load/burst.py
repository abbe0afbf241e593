"""Sends many mails that fall due together, with a little critical mail beside them."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.time import utc_now

from .. import posting
from ..environment import Bench
from ..figures import Figure, Progress, at_most
from ..processes import wait_until
from .sink import Arrival, Limits, LoadSink
from .stack import CRITICAL_PER_SECOND, CRITICAL_SCOPE, SteadyPosts, run_stack
from .tables import percentile_of

LEAD = timedelta(seconds=90)
"""Time from the preparation of the mails until the first falls due."""
WARM_UP = 15.0
"""Seconds of critical mail before the first falls due."""
DRAIN_SECONDS = 180
LATENCY = 0.1
"""Seconds after which the provider answers."""
CRITICAL = "critical"


@dataclass(frozen=True, kw_only=True)
class Burst:
    """Mails that fall due together, whose timed addresses have the kind ``kind``."""

    key: str
    """Of its figures."""
    kind: str
    count: int
    label: str
    """What falls due, such as "100,000 due in one second"."""
    prepare: Callable[[datetime], object]
    """Stores the mails; it gets the time at which the first falls due."""


def measure_burst(bench: Bench, burst: Burst, *, log_progress: Progress) -> Iterator[Figure]:
    """Measure when all mails have arrived, and the waits of critical mail meanwhile."""
    key = posting.create_key(CRITICAL_SCOPE)
    sink = LoadSink(
        folder=bench.fresh_folder("load-sink"), limits=Limits(latencies=((0.0, LATENCY),))
    )
    with sink.running():
        began = time.monotonic()
        due_at = (utc_now() + LEAD).replace(microsecond=0)
        burst.prepare(due_at)
        log_progress(f"{burst.count:,} prepared in {time.monotonic() - began:.0f} s")
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
                    lambda: sink.count(burst.kind) >= burst.count,
                    timeout=WARM_UP + 3 * DRAIN_SECONDS,
                    what=f"not all of {burst.key} was sent",
                    poll=1.0,
                )
            wait_until(
                lambda: sink.count(CRITICAL) >= posts.posted,
                timeout=30,
                what="the critical mails were not sent",
                poll=1.0,
            )
            arrivals = sink.arrivals()
    if posts.errors:
        raise RuntimeError(posts.errors[0])
    yield from _figures(burst, arrivals, due_at=due_at, posts=posts)


def _figures(
    burst: Burst, arrivals: Sequence[Arrival], *, due_at: datetime, posts: SteadyPosts
) -> Iterator[Figure]:
    mails = [one for one in arrivals if one.kind == burst.kind]
    last_at = max(one.at for one in mails)
    beside = during(arrivals, kind=CRITICAL, start=due_at, end=last_at)
    yield Figure(
        key=f"{burst.key} drain",
        label=f"{burst.label}: all at the provider after",
        unit="s",
        ours=last_at - due_at.timestamp(),
        goals=(at_most(DRAIN_SECONDS),),
        note=f"the programs of `make up`; the provider answers after {1000 * LATENCY:.0f} ms",
    )
    yield Figure(
        key=f"{burst.key} twice",
        label="… sent twice, or not due",
        unit="",
        ours=len(mails) - burst.count,
        goals=(at_most(0),),
    )
    yield Figure(
        key=f"{burst.key} critical",
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
