"""The verdict over a run: what was lost, sent twice, or went a way there is none. Pure."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from operator import attrgetter

from domain.states import OPEN, TRANSITIONS, Channel, DeliveryStatus

from .evidence import Evidence, Request, Step

S = DeliveryStatus
FIRST = frozenset({S.PENDING, S.DELIVERED, S.SUPPRESSED})
"""What a delivery may be when it is accepted."""
GONE = "gone"
"""The status of a step that removed a notification, or a delivery from it."""
OPEN_NAMES = frozenset(status.value for status in OPEN)
Key = tuple[str, str]
"""A delivery: its notification and channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a run's notifications. Each finding names the delivery it is about."""

    acknowledged: int
    """Notifications that a client was told were accepted."""
    lost: tuple[str, ...]
    """Acknowledged, and not stored or not final."""
    split: tuple[str, ...]
    """Idempotency keys that made more than one notification."""
    double: tuple[str, ...]
    """Copies the provider took though the one before was not on record as unknown."""
    double_unknown: tuple[str, ...]
    """Copies the provider took after the one before was on record as unknown."""
    illegal: tuple[str, ...]
    """Steps that :data:`domain.states.TRANSITIONS` does not have."""
    unbalanced: tuple[str, ...]
    """Channels in which accepted is not open and final together."""
    in_flight: int
    """Sends that were under way in workers when they were killed."""
    slowest_recovery: float | None
    """Most seconds from a worker's end to the next step of what it held; None: it held nothing."""

    @property
    def is_clean(self) -> bool:
        """Whether what is promised in every scenario was kept."""
        return not any((self.lost, self.split, self.double, self.illegal, self.unbalanced))


def judge(evidence: Evidence) -> Verdict:
    """Return the verdict over a run."""
    steps = _by_delivery(evidence.steps)
    copies = list(_copies(evidence, steps))
    held = [one for kill in evidence.kills for one in _held(kill.worker, kill.at, steps)]
    recoveries = [seconds for _, seconds in held if seconds is not None]
    return Verdict(
        acknowledged=len(acceptances(evidence)),
        lost=tuple(_lost(evidence)),
        split=tuple(_split(evidence)),
        double=tuple(name for name, is_excused in copies if not is_excused),
        double_unknown=tuple(name for name, is_excused in copies if is_excused),
        illegal=(*_illegal(steps), *_unseen(evidence, steps), *_strays(evidence)),
        unbalanced=tuple(_unbalanced(evidence)),
        in_flight=sum(status == S.SENDING for status, _ in held),
        slowest_recovery=max(recoveries, default=None),
    )


def waits(evidence: Evidence, since: Mapping[str, datetime]) -> list[float]:
    """Return the seconds from a moment of each notification to the first request about it.

    ``since`` has the moments by id. What nobody asked the provider for is left out.
    """
    first: dict[str, datetime] = {}
    for request in evidence.requests:
        first.setdefault(request.notification_id, request.at)
    return sorted((first[one] - at).total_seconds() for one, at in since.items() if one in first)


def waits_since_accepted(evidence: Evidence, name: str) -> list[float]:
    """Return the seconds from acceptance to the first request about what a load of a name sent."""
    told = acceptances(evidence)
    ours = {
        one.notification_id
        for one in evidence.answers
        if one.notification_id is not None and one.key.startswith(f"{name}-")
    }
    return waits(evidence, {one: told[one] for one in ours})


def acceptances(evidence: Evidence) -> dict[str, datetime]:
    """Return when each notification was first acknowledged, by id."""
    told: dict[str, datetime] = {}
    for answer in evidence.answers:
        if answer.is_accepted and answer.notification_id is not None:
            told.setdefault(answer.notification_id, answer.at)
    return told


def final_statuses(evidence: Evidence) -> dict[str, int]:
    """Return how many deliveries ended in each status."""
    found = Counter(status for one in evidence.stored for status in one.deliveries.values())
    return dict(sorted(found.items()))


def _by_delivery(steps: Iterable[Step]) -> dict[Key, list[Step]]:
    found: dict[Key, list[Step]] = defaultdict(list)
    for step in steps:
        found[step.notification_id, step.channel].append(step)
    return dict(found)


def _lost(evidence: Evidence) -> Iterator[str]:
    stored = {one.notification_id: one for one in evidence.stored}
    for notification_id in sorted(acceptances(evidence)):
        if notification_id not in stored:
            yield f"{notification_id}: not stored"
            continue
        for channel, status in stored[notification_id].deliveries.items():
            if status in OPEN_NAMES:
                yield f"{notification_id}.{channel}: {status}"


def _split(evidence: Evidence) -> Iterator[str]:
    """Return the keys that made more notifications than were asked for with them."""
    made: dict[str, set[str]] = defaultdict(set)
    asked: dict[str, set[int]] = defaultdict(set)
    for answer in evidence.answers:
        asked[answer.key].add(answer.item)
        if answer.is_accepted and answer.notification_id:
            made[answer.key].add(answer.notification_id)
    for one in evidence.stored:
        if one.key is not None:
            made[one.key].add(one.notification_id)
    for key, ids in made.items():
        if len(ids) > max(len(asked[key]), 1):
            yield f"{key}: {', '.join(sorted(ids))}"


def _copies(evidence: Evidence, steps: dict[Key, list[Step]]) -> Iterator[tuple[str, bool]]:
    """Return each copy beyond a delivery's first, and whether the one before was in doubt."""
    doubted: set[tuple[str, str, int, str | None]] = {
        (a.notification_id, a.channel, a.number, a.device_id)
        for a in evidence.attempts
        if a.status == S.UNKNOWN
    }
    # A worker that comes back late writes into its record what it has learned by then.
    doubted |= {
        (step.notification_id, step.channel, step.attempt, None)
        for some in steps.values()
        for step in some
        if step.status == S.UNKNOWN
    }
    taken: dict[tuple[str, str, str | None], list[Request]] = defaultdict(list)
    for request in evidence.requests:
        if request.accepted:
            taken[request.notification_id, request.channel, request.device_id].append(request)
    for (notification_id, channel, device_id), some in taken.items():
        for earlier, later in pairwise(sorted(some, key=lambda r: (r.at, r.attempt))):
            attempt = (notification_id, channel, earlier.attempt)
            is_in_doubt = (*attempt, None) in doubted or (*attempt, device_id) in doubted
            is_excused = is_in_doubt and earlier.attempt != later.attempt
            yield f"{notification_id}.{channel}.{later.attempt}", is_excused


def _illegal(steps: dict[Key, list[Step]]) -> Iterator[str]:
    for (notification_id, channel), some in steps.items():
        name = f"{notification_id}.{channel}"
        if some[0].status not in FIRST:
            yield f"{name}: begins as {some[0].status}"
        for before, after in pairwise(some):
            if before.status != after.status and not _is_allowed(before.status, after.status):
                yield f"{name}: {before.status} to {after.status}"


def _is_allowed(before: str, after: str) -> bool:
    if GONE in (before, after):
        return False
    return DeliveryStatus(after) in TRANSITIONS[DeliveryStatus(before)]


def _unseen(evidence: Evidence, steps: dict[Key, list[Step]]) -> Iterator[str]:
    """Return the deliveries whose steps do not lead to what is stored: the record has a gap."""
    for one in evidence.stored:
        for channel, status in one.deliveries.items():
            seen = steps.get((one.notification_id, channel))
            if seen is None or seen[-1].status != status:
                yield f"{one.notification_id}.{channel}: nobody saw it become {status}"


def _strays(evidence: Evidence) -> Iterator[str]:
    """Return the requests about what is not stored: a provider got what nobody accepted."""
    known = {(one.notification_id, c) for one in evidence.stored for c in one.deliveries}
    for request in evidence.requests:
        if (request.notification_id, request.channel) not in known:
            yield f"{request.notification_id}.{request.channel}: sent and not stored"


def _unbalanced(evidence: Evidence) -> Iterator[str]:
    """Compare what was accepted with what is open and final, for each channel.

    A notification that is stored and whose client never learned of it is accepted, too.
    """
    told = {
        a.notification_id: a.channels
        for a in evidence.answers
        if a.is_accepted and a.notification_id
    }
    accepted = Counter(channel for channels in told.values() for channel in channels)
    known = {status.value for status in DeliveryStatus}
    there: Counter[str] = Counter()
    for one in evidence.stored:
        there.update(channel for channel, status in one.deliveries.items() if status in known)
        if one.notification_id not in told:
            accepted.update(one.deliveries.keys())
    for channel in Channel:
        if accepted[channel] != there[channel]:
            yield f"{channel}: accepted {accepted[channel]}, open and final {there[channel]}"


def _held(
    worker: str, at: datetime, steps: dict[Key, list[Step]]
) -> Iterator[tuple[str, float | None]]:
    """Return what a worker held when it ended: the status, and the seconds to the next step."""
    for some in steps.values():
        place = bisect_right(some, at, key=attrgetter("at")) - 1
        if place < 0 or some[place].holder != worker or some[place].status not in OPEN_NAMES:
            continue
        after = some[place + 1 :]
        yield some[place].status, (after[0].at - at).total_seconds() if after else None
