"""At all times and on every channel, the accepted deliveries are the open ones and the final ones.

Workers die at boundaries, providers fail, and people act; ``make chaos`` compares the same with
what real clients and providers have recorded.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta

import pytest
from bson import ObjectId

from delivery import pipeline, sweeper
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.states import OPEN, TRANSITIONS, DeliveryStatus
from notifications.actions import actions
from notifications.actions.actions import InvalidStateError
from notifyproject.db.collections import collection
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from recipients import service_windows
from tests.support.factories.notifications import NOON, accepted, arrive, device
from tests.support.fakes import provider as outcomes
from tests.support.fakes.provider import ScriptedProvider
from tests.support.samples import SEED

pytestmark = pytest.mark.usefixtures("db", "broker")

RANDOM = random.Random(SEED)
ROUNDS = 20
SENT_BY_WORKERS = tuple(channel for channel in Channel if not channel.is_inbox)
BOUNDARIES = (
    Boundary.CLAIM_WRITTEN,
    Boundary.RENDERED,
    Boundary.START_WRITTEN,
    Boundary.STARTED,
    Boundary.BATCH_SENT,
    Boundary.SETTLE_LOGGED,
    Boundary.SETTLED,
)
OUTCOMES: Sequence[Callable[[], outcomes.Outcome]] = (
    outcomes.accepted,
    outcomes.provider_error,
    outcomes.timeout,
    outcomes.refused,
    outcomes.unreachable,
)
REACHABLE = {status: {status} for status in DeliveryStatus}
"""The statuses that each status leads to, in any number of steps."""
for _ in DeliveryStatus:
    for reached in REACHABLE.values():
        reached |= {after for status in reached for after in TRANSITIONS[status]}


class LostWorkerError(BaseException):
    """Ends a worker at a boundary."""


class Deliveries:
    """Accepted notifications, what happens to them, and whether each delivery is still there."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = NOON
        self.ids: list[ObjectId] = []
        self._accepted: Counter[str] = Counter()
        self._statuses: dict[tuple[ObjectId, str], DeliveryStatus] = {}
        self._patch = patch

    def accept(self) -> None:
        document = accepted(channels=list(Channel), created_at=self.now, max_attempts=3)
        self.ids.append(document["_id"])
        self._accepted.update(delivery["channel"] for delivery in document["delivery"])

    def send(self) -> None:
        self._dispatch(RANDOM.choice(SENT_BY_WORKERS))

    def lose_worker(self) -> None:
        wanted = RANDOM.choice(BOUNDARIES)

        def reach(boundary: Boundary) -> None:
            if boundary is wanted:
                raise LostWorkerError

        with self._patch.context() as patch, suppress(LostWorkerError):
            patch.setattr(crash_points, "reach", reach)
            self.send()

    def retry(self) -> None:
        with suppress(InvalidStateError):
            actions.retry(notification_id=RANDOM.choice(self.ids), channels=None, now=self.now)

    def cancel(self) -> None:
        chosen = RANDOM.choice(self.ids)
        with suppress(InvalidStateError):
            actions.cancel(notification_id=chosen, channels=None, reason="x", now=self.now)

    def report(self) -> None:
        arrive(RANDOM.choice(self.ids), at=self.now)

    def sweep(self) -> None:
        sweeper.sweep(now=self.now)

    def finish(self) -> None:
        while self.open() and self.now < NOON + timedelta(days=2):
            self.now += timedelta(minutes=20)
            self.sweep()
            for channel in SENT_BY_WORKERS:
                self._dispatch(channel)
            self.check("finish")

    def check(self, event: str) -> None:
        """Compare the numbers per channel, and each delivery's status with its previous one."""
        found: Counter[str] = Counter()
        for document in collection("notifications").find():
            for delivery in document["delivery"]:
                key = document["_id"], delivery["channel"]
                status = DeliveryStatus(delivery["status"])
                before = self._statuses.setdefault(key, status)
                assert status in REACHABLE[before], (event, before, status)
                self._statuses[key] = status
                found[delivery["channel"]] += 1
        assert found == self._accepted, event

    def open(self) -> set[str]:
        """Return the channels that have open deliveries."""
        return {channel for (_, channel), status in self._statuses.items() if status in OPEN}

    def _dispatch(self, channel: Channel) -> None:
        pipeline.dispatch(SendingRuntime(), self.ids, channel=channel, clock=lambda: self.now)


def test_accepted_equals_open_plus_final_after_each_event(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcm.behave = lambda _request: RANDOM.choice(OUTCOMES)()
    device("phone")
    service_windows.record_inbound([("+351912345678", NOON)], now=NOON)
    deliveries = Deliveries(monkeypatch)
    events = (
        deliveries.send,
        deliveries.lose_worker,
        deliveries.retry,
        deliveries.cancel,
        deliveries.report,
        deliveries.sweep,
    )
    for _ in range(ROUNDS):
        deliveries.accept()
        for event in RANDOM.choices(events, weights=(2, 2, 1, 1, 1, 2), k=3):
            event()
            deliveries.check(event.__name__)
            deliveries.now += timedelta(seconds=RANDOM.choice((0, 5, 30)))
    deliveries.accept()
    deliveries.check("accept")
    assert deliveries.open() == {channel.value for channel in SENT_BY_WORKERS}

    fcm.always(outcomes.accepted)
    deliveries.finish()
    assert not deliveries.open()
