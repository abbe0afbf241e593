"""The sweep: what is to be told is found without any hint, and what cannot be told ends."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
import redis
from django.core.management import call_command

from callbacks import outbox, subscriptions, worker
from callbacks.events import CallbackState, Event, EventType
from callbacks.worker import SweepReport
from domain.states import DeliveryStatus
from notifyproject.db.collections import collection
from notifyproject.platform import broker as platform_broker
from notifyproject.platform import process
from tests.support.factories.notifications import CLIENT, NOON, settled
from tests.support.fakes.callback_receiver import Receiver, called_back, receiving

pytestmark = pytest.mark.usefixtures("db", "broker")

HOUR = timedelta(hours=1)


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.CALLBACK_LOOPBACK = True
    with receiving() as one:
        yield one


def tell() -> None:
    """Record a message to the app."""
    event = Event(id="evt_1", client_id=CLIENT, type=EventType.DELIVERY_SENT, at=NOON, data={})
    outbox.store_messages([event], now=NOON)


def call() -> int:
    return worker.run_round(CLIENT, clock=lambda: NOON)


def statuses() -> list[str]:
    return [document["status"] for document in collection("callback_messages").find()]


def test_the_sweep_finds_what_no_hint_reached(receiver: Receiver, broker: redis.Redis) -> None:
    called_back(receiver.url)
    tell()
    assert worker.sweep(now=NOON) == SweepReport(woken=1, unpublished=0)
    assert broker.llen("callbacks") == 1


def held(_: Receiver) -> None:
    worker.acquire_lease(CLIENT, now=NOON)


def later(_: Receiver) -> None:
    collection("callback_messages").update_many({}, {"$set": {"next_try_at": NOON + HOUR}})


def left_alone(_: Receiver) -> None:
    collection("callbacks").update_one({}, {"$set": {"open_until": NOON + HOUR}})


@pytest.mark.parametrize("state", [held, later, left_alone])
def test_the_sweep_leaves_what_is_not_to_be_sent_now(
    state: Callable[[Receiver], None], receiver: Receiver, broker: redis.Redis
) -> None:
    called_back(receiver.url)
    tell()
    state(receiver)
    assert worker.sweep(now=NOON) == SweepReport(woken=0, unpublished=0)
    assert broker.llen("callbacks") == 0


def test_the_sweep_ends_what_has_nowhere_to_go(receiver: Receiver) -> None:
    called_back(receiver.url)
    tell()
    subscriptions.remove(CLIENT)
    assert worker.sweep(now=NOON) == SweepReport(woken=0, unpublished=0)
    assert statuses() == ["failed"]


def test_without_the_key_of_its_secret_nothing_is_sent_and_nothing_goes_round(
    receiver: Receiver, broker: redis.Redis, settings: Any
) -> None:
    called_back(receiver.url)
    tell()
    settings.FIELD_ENCRYPTION_KEYS = {"other": b"x" * 48}
    assert call() == 0
    assert broker.llen("callbacks") == 0
    assert statuses() == ["pending"]
    assert subscriptions.get(CLIENT)["state"] == CallbackState.ACTIVE


def test_where_this_machine_may_not_be_called_it_is_not(receiver: Receiver, settings: Any) -> None:
    called_back(receiver.url)
    tell()
    settings.CALLBACK_LOOPBACK = False
    assert call() == 0
    assert receiver.requests == []


def test_without_a_broker_it_says_so_and_a_process_can_call_by_itself(
    receiver: Receiver,
) -> None:
    called_back(receiver.url)
    tell()
    platform_broker._health.record_failure()
    assert worker.sweep(now=NOON) == SweepReport(woken=0, unpublished=1)
    assert worker.run_inline(clock=lambda: NOON) == 1
    assert statuses() == ["delivered"]


def test_a_process_that_stops_begins_nothing_and_gives_back_what_it_has(receiver: Receiver) -> None:
    called_back(receiver.url)
    tell()
    assert worker.run_round(CLIENT, clock=lambda: NOON, is_shutting_down=lambda: True) == 0
    assert receiver.requests == []
    assert call() == 1


def test_the_sweeper_without_beat_tells_apps_too(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: process.clear_shutdown())
    called_back(receiver.url)
    settled(DeliveryStatus.FAILED, has_callback=True)
    platform_broker._health.record_failure()
    call_command("sweeper", once=True, deliver=True, stdout=StringIO())
    told = sorted(request.body["type"] for request in receiver.requests)
    assert told == ["delivery.failed", "notification.completed"]
    assert statuses() == ["delivered"] * 2
