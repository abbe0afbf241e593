"""Analysis of a run's records: lost notifications, duplicates, and illegal transitions."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from operator import attrgetter

from domain.channels import Channel
from domain.states import OPEN, TRANSITIONS, DeliveryStatus

from .evidence import Evidence, Request, Step

S = DeliveryStatus
INITIAL_STATUSES = frozenset({S.PENDING, S.DELIVERED, S.SUPPRESSED})
REMOVED = "gone"
"""The status of a step that removed a notification or a delivery."""
OPEN_NAMES = frozenset(status.value for status in OPEN)
Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The broken guarantees of a run. Each text names the delivery, key, or channel."""

    acknowledged: int
    """The number of notifications whose acceptance the client received."""
    lost: tuple[str, ...]
    """Acknowledged notifications that are not stored or not final."""
    split: tuple[str, ...]
    """Idempotency keys that created more notifications than were requested."""
    double: tuple[str, ...]
    """Further copies that the provider accepted after an outcome that was known."""
    double_unknown: tuple[str, ...]
    """Further copies that the provider accepted after an unknown outcome."""
    illegal: tuple[str, ...]
    """Transitions that :data:`domain.states.TRANSITIONS` lacks, and unrecorded or unstored ones."""
    unbalanced: tuple[str, ...]
    """Channels with another number of stored deliveries than of accepted deliveries."""
    in_flight: int
    """The number of sends that were in progress in workers when they were killed."""
    slowest_takeover: float | None
    """Seconds from a worker's end to the next step of its lease, at most; None without leases."""

    @property
    def is_clean(self) -> bool:
        """Whether the run kept the guarantees that apply to every scenario."""
        return not any((self.lost, self.split, self.double, self.illegal, self.unbalanced))


def analyze(evidence: Evidence) -> Analysis:
    """Find the broken guarantees in a run's records."""
    steps: dict[Key, list[Step]] = defaultdict(list)
    for step in evidence.steps:
        steps[step.notification_id, step.channel].append(step)
    copies = list(_copies(evidence))
    leased = [lease for kill in evidence.kills for lease in _leased_by(kill.worker, kill.at, steps)]
    takeovers = [seconds for _, seconds in leased if seconds is not None]
    return Analysis(
        acknowledged=len(acceptances(evidence)),
        lost=tuple(_lost(evidence)),
        split=tuple(_split(evidence)),
        double=tuple(name for name, is_after_unknown in copies if not is_after_unknown),
        double_unknown=tuple(name for name, is_after_unknown in copies if is_after_unknown),
        illegal=(*_illegal(steps), *_unrecorded(evidence, steps)),
        unbalanced=tuple(_unbalanced(evidence)),
        in_flight=sum(status == S.SENDING for status, _ in leased),
        slowest_takeover=max(takeovers, default=None),
    )


def waits(evidence: Evidence, since: Mapping[str, datetime]) -> list[float]:
    """Return the sorted seconds from ``since`` (times by ID) to each first request, if any."""
    first: dict[str, datetime] = {}
    for request in evidence.requests:
        first.setdefault(request.notification_id, request.at)
    return sorted(
        (first[notification_id] - at).total_seconds()
        for notification_id, at in since.items()
        if notification_id in first
    )


def waits_since_accepted(evidence: Evidence, name: str) -> list[float]:
    """Return the sorted seconds from acceptance to first request of the load with this name."""
    accepted_at = acceptances(evidence)
    ids = {
        answer.notification_id for answer in evidence.answers if answer.key.startswith(f"{name}-")
    }
    return waits(
        evidence,
        {
            notification_id: at
            for notification_id, at in accepted_at.items()
            if notification_id in ids
        },
    )


def acceptances(evidence: Evidence) -> dict[str, datetime]:
    """Return the time of the first 202 for each notification, by ID."""
    accepted_at: dict[str, datetime] = {}
    for answer in evidence.answers:
        if answer.is_accepted and answer.notification_id is not None:
            accepted_at.setdefault(answer.notification_id, answer.at)
    return accepted_at


def longest_gap(
    evidence: Evidence, *, since: datetime | None = None, until: datetime | None = None
) -> float | None:
    """Return the longest time without an acceptance, in seconds; None without two acceptances.

    With ``since`` and ``until``, the time from the first to the last of these moments counts.
    """
    moments = [answer.at for answer in evidence.answers if answer.is_accepted]
    if since is not None and until is not None:
        moments = [since, *(at for at in moments if since <= at <= until), until]
    times = sorted(moments)
    return max(((b - a).total_seconds() for a, b in pairwise(times)), default=None)


def final_statuses(evidence: Evidence) -> dict[str, int]:
    """Count the deliveries at the end of a run by status."""
    found = Counter(
        status for document in evidence.stored for status in document.deliveries.values()
    )
    return dict(sorted(found.items()))


def _lost(evidence: Evidence) -> Iterator[str]:
    stored = {document.notification_id: document for document in evidence.stored}
    for notification_id in sorted(acceptances(evidence)):
        if notification_id not in stored:
            yield f"{notification_id}: not stored"
            continue
        for channel, status in stored[notification_id].deliveries.items():
            if status in OPEN_NAMES:
                yield f"{notification_id}.{channel}: {status}"


def _split(evidence: Evidence) -> Iterator[str]:
    created: dict[str, set[str]] = defaultdict(set)
    requested: dict[str, set[int]] = defaultdict(set)
    for answer in evidence.answers:
        requested[answer.key].add(answer.item)
        if answer.is_accepted and answer.notification_id:
            created[answer.key].add(answer.notification_id)
    for document in evidence.stored:
        if document.key is not None:
            created[document.key].add(document.notification_id)
    for key, ids in created.items():
        if len(ids) > max(len(requested[key]), 1):
            yield f"{key}: {', '.join(sorted(ids))}"


def _copies(evidence: Evidence) -> Iterator[tuple[str, bool]]:
    """Yield the accepted copies after each first one, and whether the previous was unknown."""
    attempts = (attempt for attempt in evidence.attempts if attempt.status == S.UNKNOWN)
    unknown_attempts: set[tuple[str, str, int, str | None]] = {
        (attempt.notification_id, attempt.channel, attempt.number, attempt.device_id)
        for attempt in attempts
    }
    # A late worker overwrites an unknown attempt with the outcome, but the recorded step remains.
    unknown_attempts |= {
        (step.notification_id, step.channel, step.attempt, None)
        for step in evidence.steps
        if step.status == S.UNKNOWN
    }
    accepted: dict[tuple[str, str, str | None], list[Request]] = defaultdict(list)
    for request in evidence.requests:
        if request.accepted:
            accepted[request.notification_id, request.channel, request.device_id].append(request)
    for (notification_id, channel, device_id), some in accepted.items():
        for earlier, later in pairwise(sorted(some, key=lambda r: (r.at, r.attempt))):
            attempt = (notification_id, channel, earlier.attempt)
            is_unknown = bool(unknown_attempts & {(*attempt, None), (*attempt, device_id)})
            is_after_unknown = is_unknown and earlier.attempt != later.attempt
            yield f"{notification_id}.{channel}.{later.attempt}", is_after_unknown


def _illegal(steps: dict[Key, list[Step]]) -> Iterator[str]:
    for (notification_id, channel), some in steps.items():
        name = f"{notification_id}.{channel}"
        if some[0].status not in INITIAL_STATUSES:
            yield f"{name}: begins as {some[0].status}"
        for before, after in pairwise(some):
            is_removal = REMOVED in (before.status, after.status)
            if before.status != after.status and (
                is_removal or S(after.status) not in TRANSITIONS[S(before.status)]
            ):
                yield f"{name}: {before.status} to {after.status}"


def _unrecorded(evidence: Evidence, steps: dict[Key, list[Step]]) -> Iterator[str]:
    """Yield deliveries whose stored status has no recorded step, or that were sent unstored."""
    stored = {
        (document.notification_id, c): s
        for document in evidence.stored
        for c, s in document.deliveries.items()
    }
    for (notification_id, channel), status in stored.items():
        recorded = steps.get((notification_id, channel))
        if recorded is None or recorded[-1].status != status:
            yield f"{notification_id}.{channel}: no recorded step to {status}"
    for request in evidence.requests:
        if (request.notification_id, request.channel) not in stored:
            yield f"{request.notification_id}.{request.channel}: sent and not stored"


def _unbalanced(evidence: Evidence) -> Iterator[str]:
    """Yield the channels with different numbers of accepted and stored deliveries."""
    answers = [
        answer for answer in evidence.answers if answer.is_accepted and answer.notification_id
    ]
    acknowledged = {answer.notification_id: answer.channels for answer in answers}
    accepted = Counter(channel for channels in acknowledged.values() for channel in channels)
    known = {status.value for status in DeliveryStatus}
    stored: Counter[str] = Counter()
    for document in evidence.stored:
        stored.update(channel for channel, status in document.deliveries.items() if status in known)
        # A stored notification without an acknowledgement counts as accepted.
        if document.notification_id not in acknowledged:
            accepted.update(document.deliveries.keys())
    for channel in Channel:
        if accepted[channel] != stored[channel]:
            yield f"{channel}: accepted {accepted[channel]}, open and final {stored[channel]}"


def _leased_by(
    worker: str, at: datetime, steps: dict[Key, list[Step]]
) -> Iterator[tuple[str, float | None]]:
    """Yield, for each delivery that an ended worker had leased, its status and takeover seconds."""
    for some in steps.values():
        index = bisect_right(some, at, key=attrgetter("at")) - 1
        if index < 0 or some[index].worker != worker or some[index].status not in OPEN_NAMES:
            continue
        after = some[index + 1 :]
        yield some[index].status, (after[0].at - at).total_seconds() if after else None
