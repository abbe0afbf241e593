"""Timers that MongoDB copies have the form that the service stores and claims."""

from datetime import timedelta

import pytest

from bench.load import sink, timers
from bench.load.timers import Timers
from domain.states import Channel, Priority
from domain.time import utc_now
from notifications.queueing import fair_queue
from notifications.queueing.fair_queue import FairQueue
from notifyproject.db.collections import collection, database

pytestmark = pytest.mark.usefixtures("db")
HOUR = timedelta(hours=1)


def test_copies_are_due_in_their_second_and_found_by_the_queue() -> None:
    now = utc_now().replace(microsecond=0)
    groups = [
        Timers(count=1_000, start=now - HOUR, spread=timedelta(seconds=1)),
        Timers(count=2_000, start=now + HOUR, spread=timedelta(days=28)),
    ]
    database().aggregate(timers.copies(timers.stored_timer(), groups))
    stored = collection("notifications")
    due = list(stored.find({"due_at": {"$lt": now}}))
    assert stored.count_documents({"due_at": {"$gte": now + HOUR}}) == 2_000
    assert len(due) == 1_000
    assert max(one["due_at"] for one in due) < now - HOUR + timedelta(seconds=1)
    for one in due[:10]:
        (delivery,) = one["delivery"]
        assert delivery["next_attempt_at"] == delivery["first_due_at"] == one["due_at"]
        found = sink.TIMED_ADDRESS.search(f'"{one["recipient"]["email"]}"'.encode())
        assert found is not None
        assert int(found[2]) == round(one["due_at"].timestamp() * 1000)
    queue = FairQueue(due[0]["client_id"], Channel.EMAIL, Priority.NORMAL)
    assert len(fair_queue.due(queue, until=now, now=now, limit=1_000)) == 100


def test_postponed_timers_keep_their_order() -> None:
    past = utc_now().replace(microsecond=0) - HOUR
    groups = [Timers(count=1_000, start=past, spread=timedelta(seconds=1))]
    database().aggregate(timers.copies(timers.stored_timer(), groups))
    stored = collection("notifications")
    before = {one["_id"]: one["due_at"] for one in stored.find()}
    due_at = past + 3 * HOUR
    timers.postpone(past, due_at)
    for one in stored.find():
        assert one["due_at"] == before[one["_id"]] + (due_at - past)
        address = f'"{one["recipient"]["email"]}"'.encode()
        found = sink.TIMED_ADDRESS.search(address)
        assert found is not None
        assert int(found[2]) == round(one["due_at"].timestamp() * 1000)
