"""What needs a person now, in words. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from monitoring.dashboard import WorkSummary
from monitoring.failure_groups import FailureCounts

from .explanations import CHANNELS, code_words, explain
from .sentences import span

SWEEP_OVERDUE = timedelta(minutes=3)
"""The sweep runs four times a minute."""
WORK_OVERDUE = timedelta(minutes=5)
"""A worker takes what is due within seconds."""
MANY_FAILURES = 10
"""Failures of one cause in a day that are worth a look."""
RECENT = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """Something a person should do."""

    tone: str
    """``danger``: nothing goes on without it. ``warning``: it should be looked at."""
    text: str
    advice: str
    list_query: str | None = None
    """Where to see it: the query of the list of failures."""


def concerns(*, backlog: WorkSummary, failures: FailureCounts, now: datetime) -> list[Concern]:
    """Return what needs a person, the most urgent first."""
    found = [*_standstill(backlog, now), *_causes(failures, now)]
    return sorted(found, key=lambda concern: concern.tone != "danger")


def _standstill(backlog: WorkSummary, now: datetime) -> Iterator[Concern]:
    sweep = backlog.last_sweep
    if sweep is None or now - sweep > SWEEP_OVERDUE:
        ago = f"for {span((now - sweep).total_seconds())}" if sweep else "yet"
        yield Concern(
            tone="danger",
            text=f"No sweep {ago}: what no hint reaches waits.",
            advice="Is beat running, and a worker? Sends that need no sweep go on.",
        )
    oldest = backlog.oldest_due_at
    if oldest is not None and now - oldest > WORK_OVERDUE:
        yield Concern(
            tone="danger",
            text=f"Work has been due for {span((now - oldest).total_seconds())}.",
            advice="Are the workers alive, and do they keep up? Look at their logs.",
        )


def _causes(failures: FailureCounts, now: datetime) -> Iterator[Concern]:
    for group in failures.groups:
        known = explain(group.code)
        recent = now - group.last_at <= RECENT
        if not (known.is_ours or (recent and group.count >= MANY_FAILURES)):
            continue
        times = "time" if group.count == 1 else "times"
        yield Concern(
            tone="danger" if known.is_ours and recent else "warning",
            text=f"{CHANNELS[group.channel]} failed {group.count:,} {times} in 24 hours: "
            f"{known.meaning} ({code_words(group.code).lower()}).",
            advice=known.advice,
            list_query=f"channel={group.channel.value}&code={group.code}",
        )
