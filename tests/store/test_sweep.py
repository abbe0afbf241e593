"""The sweep: finds what no hint reached, by the real broker."""

import base64
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId

from notifications import recovery, store, types
from notifications.recovery import BATCH, HORIZON, LANE_CAP, SweepReport
from notifications.states import Channel, DeliveryStatus, Priority
from notifications.store import LEASE
from notifyproject.db.collections import collection
from notifyproject.settings.base import queue_names
from tests import factories
from tests.factories import NOON, accepted, claimed, new, started

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


def sweep(now: Any = NOON) -> SweepReport:
    return recovery.sweep(now=now)


def messages(broker: redis.Redis, queue: str) -> list[dict[str, Any]]:
    """Return the messages that wait in a queue, the oldest first."""
    raw = broker.lrange(queue, 0, -1)
    assert isinstance(raw, list)
    return [json.loads(message) for message in reversed(raw)]


def arguments(message: dict[str, Any]) -> tuple[list[str], str]:
    """Return what a message says: ids, and a channel."""
    args, kwargs, _ = json.loads(base64.b64decode(message["body"]))
    assert kwargs == {}
    ids, channel = args
    return ids, channel


def hinted(broker: redis.Redis, queue: str = "email.normal") -> list[ObjectId]:
    return [ObjectId(i) for m in messages(broker, queue) for i in arguments(m)[0]]


def waiting(broker: redis.Redis) -> dict[str, int]:
    """Return how many messages wait in each queue that has some."""
    depths = {name: int(broker.llen(name)) for name in queue_names()}
    return {name: depth for name, depth in depths.items() if depth}


# What it hints at.


def test_what_is_due_is_hinted_at_by_id_and_channel(broker: redis.Redis) -> None:
    document = accepted()
    assert sweep() == SweepReport(hinted=1, unpublished=0, rescued=0, resolved=0)
    (message,) = messages(broker, "email.normal")
    assert arguments(message) == ([str(document["_id"])], "email")
    assert message["headers"]["task"] == "notifications.deliver"
    assert message["headers"]["eta"] is None


def test_a_message_holds_ids_and_nothing_else(broker: redis.Redis) -> None:
    accepted(data={"code": "493817"})
    sweep()
    (message,) = messages(broker, "email.normal")
    text = str(message) + base64.b64decode(message["body"]).decode()
    for secret in ("ada", "example.com", "493817", "payment"):
        assert secret not in text


@pytest.mark.parametrize("priority", list(Priority))
@pytest.mark.parametrize("channel", [EMAIL, PUSH, WHATSAPP])
def test_each_channel_and_priority_has_a_queue(
    broker: redis.Redis, channel: Channel, priority: Priority
) -> None:
    document = accepted(channels=[channel], priority=priority)
    sweep()
    assert waiting(broker) == {f"{channel}.{priority}": 1}
    assert hinted(broker, f"{channel}.{priority}") == [document["_id"]]


def test_nothing_due_is_nothing_hinted(broker: redis.Redis) -> None:
    assert sweep().hinted == 0
    accepted(send_at=NOON + timedelta(hours=1))
    for status in (S.SENT, S.FAILED, S.UNKNOWN):
        factories.settled(status)
    claimed()
    assert sweep().hinted == 0
    assert waiting(broker) == {}


def test_each_channel_of_a_notification_is_hinted_at(broker: redis.Redis) -> None:
    accepted(channels=[EMAIL, WHATSAPP])
    assert sweep().hinted == 2
    assert waiting(broker) == {"email.normal": 1, "whatsapp.normal": 1}


@pytest.mark.parametrize(
    ("count", "sizes"), [(1, [1]), (BATCH, [50]), (BATCH + 1, [50, 1]), (120, [50, 50, 20])]
)
def test_a_hint_is_of_fifty_at_most(broker: redis.Redis, count: int, sizes: list[int]) -> None:
    store.accept([new() for _ in range(count)], now=NOON)
    assert sweep().hinted == count
    found = [len(arguments(m)[0]) for m in messages(broker, "email.normal")]
    assert found == sizes
    assert len(set(hinted(broker))) == count


def test_the_oldest_are_hinted_at_first(broker: redis.Redis) -> None:
    documents = [accepted(send_at=NOON - n * SECOND, created_at=NOON) for n in (1, 3, 2)]
    sweep()
    assert hinted(broker) == [documents[n]["_id"] for n in (1, 2, 0)]


def test_a_claim_that_came_to_nothing_is_hinted_at_when_its_lease_is_over(
    broker: redis.Redis,
) -> None:
    one = claimed()
    assert sweep(NOON + LEASE).hinted == 1
    assert hinted(broker) == [one.notification_id]


# Ahead.


def eta(message: dict[str, Any]) -> str:
    return str(message["headers"]["eta"])


def test_what_falls_due_before_the_next_sweep_is_hinted_at_ahead(broker: redis.Redis) -> None:
    accepted(send_at=NOON + 30 * SECOND)
    assert sweep().hinted == 1
    (message,) = messages(broker, "email.normal")
    assert message["headers"]["eta"] is not None


@pytest.mark.parametrize(
    ("ahead", "count"),
    [(HORIZON, 1), (HORIZON + timedelta(milliseconds=1), 0), (SECOND, 1), (2 * HORIZON, 0)],
)
def test_the_sweep_looks_a_minute_ahead(ahead: timedelta, count: int) -> None:
    accepted(send_at=NOON + ahead)
    assert sweep().hinted == count


def test_the_sweep_looks_a_whole_minute_ahead_at_any_part_of_a_second() -> None:
    now = NOON + timedelta(milliseconds=500)
    accepted(send_at=now + HORIZON - timedelta(milliseconds=100), created_at=now)
    assert sweep(now) == SweepReport(hinted=1, unpublished=0, rescued=0, resolved=0)


def test_what_falls_due_in_the_same_second_is_hinted_at_together(broker: redis.Redis) -> None:
    for milliseconds in (1, 500, 999, 1000):
        accepted(send_at=NOON + 9 * SECOND + timedelta(milliseconds=milliseconds))
    sweep()
    assert [len(arguments(m)[0]) for m in messages(broker, "email.normal")] == [4]


def test_what_is_due_and_what_will_be_are_hinted_at_apart(broker: redis.Redis) -> None:
    accepted()
    accepted(send_at=NOON + 9 * SECOND)
    sweep()
    assert [eta(m) == "None" for m in messages(broker, "email.normal")] == [True, False]


# Not too much.


def fill(broker: redis.Redis, queue: str, count: int) -> None:
    broker.rpush(queue, *[b"{}"] * count)


def test_a_full_queue_gets_no_more(broker: redis.Redis) -> None:
    fill(broker, "email.normal", LANE_CAP)
    accepted()
    assert sweep() == SweepReport(hinted=0, unpublished=1, rescued=0, resolved=0)
    assert broker.llen("email.normal") == LANE_CAP


def test_a_queue_is_filled_up_to_its_cap(broker: redis.Redis) -> None:
    fill(broker, "email.normal", LANE_CAP - 2)
    store.accept([new() for _ in range(3 * BATCH)], now=NOON)
    report = sweep()
    assert (report.hinted, report.unpublished) == (2 * BATCH, BATCH)
    assert broker.llen("email.normal") == LANE_CAP


def test_a_full_queue_holds_up_no_other(broker: redis.Redis) -> None:
    fill(broker, "email.normal", LANE_CAP)
    accepted(channels=[EMAIL, WHATSAPP])
    accepted(priority=Priority.CRITICAL)
    assert sweep().hinted == 2
    assert (broker.llen("whatsapp.normal"), broker.llen("email.critical")) == (1, 1)


# Lost workers, unknown outcomes.


def test_a_lost_send_is_rescued() -> None:
    one = started()
    assert sweep(NOON + LEASE).rescued == 1
    assert factories.read(one.notification_id)["delivery"][0]["status"] == "unknown"


@pytest.mark.parametrize(
    ("type_", "status", "hints_"),
    [("payment_confirmed", "pending", 1), ("marketing", "failed", 0)],
    ids=["twice is better than never", "twice is worse than never"],
)
def test_an_unknown_outcome_is_decided_by_its_type(
    broker: redis.Redis, type_: str, status: str, hints_: int
) -> None:
    document = factories.settled(S.UNKNOWN, type=type_)
    report = sweep(NOON + 5 * MINUTE)
    assert (report.resolved, report.hinted) == (1, hints_)
    assert factories.delivery(factories.read(document["_id"]))["status"] == status
    assert len(hinted(broker)) == hints_


def test_an_unknown_outcome_of_a_type_that_is_no_more_is_not_sent_twice() -> None:
    document = factories.settled(S.UNKNOWN)
    collection("notification_types").delete_one({"_id": "payment_confirmed"})
    types.forget()
    assert sweep(NOON + 5 * MINUTE).resolved == 1
    assert factories.delivery(factories.read(document["_id"]))["status"] == "failed"


def test_an_unknown_outcome_waits_for_its_receipt() -> None:
    factories.settled(S.UNKNOWN)
    assert sweep(NOON + 4 * MINUTE).resolved == 0


# Any number of sweepers.


def test_several_sweepers_at_once_change_each_thing_once() -> None:
    for _ in range(10):
        started()
        factories.settled(S.UNKNOWN)
    with ThreadPoolExecutor(4) as threads:
        reports = list(threads.map(lambda _: sweep(NOON + 10 * MINUTE), range(4)))
    assert sum(report.rescued for report in reports) == 10
    assert sum(report.resolved for report in reports) == 10


def test_a_sweep_leaves_word_that_it_was_there() -> None:
    assert recovery.last_sweep() is None
    sweep()
    assert recovery.last_sweep() == NOON
    sweep(NOON + MINUTE)
    assert recovery.last_sweep() == NOON + MINUTE
