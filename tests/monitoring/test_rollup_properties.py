"""The figures after anything, in any order: what a recount says, with roll-ups in between."""

import random
from datetime import datetime, timedelta

import pytest

from analytics.models import Interval
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from monitoring import rollup
from notifications import store
from notifications.store import AttemptReference, DeliveryReceipt
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.mongo.metrics_recount import recounted, stored

pytestmark = pytest.mark.usefixtures("db")

S = DeliveryStatus
STEPS = 120
DAY = timedelta(days=1)


class Chance:
    """Steps that may happen to notifications, chosen by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now = factories.NOON - timedelta(hours=10)
        self.documents: list[store.Document] = []

    def step(self) -> None:
        """Let some time pass and something happen."""
        self.now += timedelta(seconds=self.chance.choice([1, 20, 61, 200, 900]))
        steps = (self.accept, self.attempt, self.attempt, self.attempt, self.report, self.operate)
        self.chance.choice(steps)()
        if self.chance.random() < 0.3:
            rollup.run(now=self.now + timedelta(milliseconds=1))

    def accept(self) -> None:
        channels = self.chance.choice([(Channel.EMAIL,), (Channel.EMAIL, Channel.IN_APP)])
        is_test = self.chance.random() < 0.1
        document = factories.accepted(
            created_at=self.now, channels=channels, is_test=is_test, max_attempts=9
        )
        self.documents.append(document)

    def attempt(self) -> None:
        ids = [document["_id"] for document in self.documents]
        claims = store.claim(ids=ids, channel=Channel.EMAIL, worker="w", now=self.now)
        for one in claims[:3]:
            provider = self.chance.choice(["sendgrid", "smtp"])
            begun = factories.start(one, at=self.now, provider=provider)
            fate = self.chance.choice([S.SENT, S.SENT, S.PENDING, S.FAILED, S.UNKNOWN, None, None])
            if fate is None:
                store.return_unsent([begun], now=self.now)
            else:
                at = self.now + timedelta(seconds=self.chance.choice([0, 2, 30]))
                store.settle([factories.settlement(begun, fate, at=at)], now=at)
        store.release(claims[3:], now=self.now)

    def report(self) -> None:
        if not self.documents:
            return
        document = factories.read(self.chance.choice(self.documents)["_id"])
        number = factories.delivery(document)["attempt_count"]
        status = self.chance.choice([S.SENT, S.DELIVERED, S.READ, S.FAILED])
        ago = timedelta(seconds=self.chance.choice([0, 5, 400]))
        store.apply_receipt(
            DeliveryReceipt(
                reference=AttemptReference(document["_id"], Channel.EMAIL, number),
                status=status,
                at=max(self.now - ago, document["created_at"]),
                provider="sendgrid",
                code=FailureCode.BOUNCED if status is S.FAILED else None,
            ),
            now=self.now,
        )

    def operate(self) -> None:
        if not self.documents:
            return
        which, channels = self.chance.choice(self.documents)["_id"], [Channel.EMAIL]
        if self.chance.random() < 0.7:
            store.reopen(notification_id=which, channels=channels, extra_attempts=4, now=self.now)
        else:
            store.cancel(notification_id=which, channels=channels, reason="No.", now=self.now)


def finish(now: datetime) -> datetime:
    """Roll up until nothing is due any more."""
    while collection("metrics_due").count_documents({}):
        now += timedelta(hours=1)
        assert rollup.run(now=now) is not None
    return now


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happens_the_figures_are_what_a_recount_says(seed: int) -> None:
    chance = Chance(seed)
    for _ in range(STEPS):
        chance.step()
    rollup.run(now=chance.now + timedelta(minutes=1))
    finish(chance.now)

    start = (factories.NOON - DAY).replace(hour=0)
    end = start + 3 * DAY
    wanted = +recounted(start, end)
    assert len(wanted) > 10
    for interval in Interval:
        assert stored(interval, start, end) == wanted, interval
