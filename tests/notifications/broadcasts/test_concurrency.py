"""Concurrent and lost workers of a broadcast."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from notifications.broadcasts import control, repository
from notifications.queueing import backlog, fair_queue
from notifyproject.db.collections import collection
from tests.support.factories.broadcasts import (
    begun,
    leased,
    notified_users,
    read,
    recipients,
    run_page,
    run_to_completion,
    send_page,
)
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("db", "broker", "pages_of_three")

SECOND = timedelta(seconds=1)
LATER = NOON + repository.LEASES.length


class Lost(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def lose_after_insert(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """End workers after they have stored a page and before they publish its wake-ups."""

    def lose(*_: Any, **__: Any) -> None:
        raise Lost

    with monkeypatch.context() as patch:
        patch.setattr(fair_queue, "enqueue_wakeups", lose)
        yield patch


def test_concurrent_workers_notify_and_count_each_recipient_once() -> None:
    names = recipients(60)
    broadcast_id = begun()
    with ThreadPoolExecutor(8) as pool:
        while read(broadcast_id)["status"] == "running":
            list(pool.map(lambda _: run_page(broadcast_id), range(16)))
    assert notified_users(broadcast_id) == names
    assert read(broadcast_id)["accepted"] == 60


def test_two_workers_on_a_page_store_and_count_it_once() -> None:
    names = recipients(5)
    broadcast_id = begun()
    slow = leased(broadcast_id)
    run_page(broadcast_id, at=LATER)
    send_page(slow, at=LATER)
    assert notified_users(broadcast_id) == names[:3]
    assert (read(broadcast_id)["accepted"], read(broadcast_id)["cursor"]) == (3, names[2])
    run_to_completion(broadcast_id, at=LATER)
    assert notified_users(broadcast_id) == names
    assert read(broadcast_id)["accepted"] == 5


def test_page_stored_concurrently_is_stored_once() -> None:
    names = recipients(3)
    broadcast_id = begun()
    first = leased(broadcast_id)
    second = leased(broadcast_id, at=LATER)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda lease: send_page(lease, at=LATER), (first, second)))
    assert notified_users(broadcast_id) == names
    assert read(broadcast_id)["accepted"] == 3


def test_worker_lost_before_the_cursor_sends_no_copy(lose_after_insert: pytest.MonkeyPatch) -> None:
    names = recipients(5)
    broadcast_id = begun()
    with pytest.raises(Lost):
        run_page(broadcast_id)
    assert notified_users(broadcast_id) == names[:3]
    assert "cursor" not in read(broadcast_id)
    assert not run_page(broadcast_id, at=LATER - SECOND), "the lease holds"
    lose_after_insert.undo()
    run_to_completion(broadcast_id, at=LATER)
    assert notified_users(broadcast_id) == names
    done = read(broadcast_id)
    assert (done["status"], done["accepted"], done["skipped"]) == ("completed", 5, {})


def test_recipient_who_mutes_later_stays_counted(lose_after_insert: pytest.MonkeyPatch) -> None:
    names = recipients(2)
    broadcast_id = begun()
    with pytest.raises(Lost):
        run_page(broadcast_id)
    mute = {"preferences": {"marketing": {"muted": True}}}
    collection("recipients").update_one({"_id": names[0]}, {"$set": mute})
    lose_after_insert.undo()
    run_to_completion(broadcast_id, at=LATER)
    assert (read(broadcast_id)["accepted"], read(broadcast_id)["skipped"]) == (2, {})


def test_waiting_for_backpressure_is_no_failure(settings: Any) -> None:
    recipients(4)
    settings.BULK_PENDING_LIMIT = 0
    broadcast_id = begun()
    run_page(broadcast_id)
    for wait in range(1, 10):
        backlog.clear()
        run_page(broadcast_id, at=NOON + wait * backlog.RETRY_AFTER)
    assert (read(broadcast_id)["status"], read(broadcast_id)["is_waiting"]) == ("running", True)


def test_pause_takes_effect_after_the_current_page() -> None:
    names = recipients(5)
    broadcast_id = begun()
    lease = leased(broadcast_id)
    assert control.pause(broadcast_id, now=NOON)["status"] == "paused"
    send_page(lease)
    assert notified_users(broadcast_id) == names[:3]
    assert (read(broadcast_id)["status"], read(broadcast_id)["accepted"]) == ("paused", 3)
    assert not run_page(broadcast_id)
    control.resume(broadcast_id, now=NOON)
    run_to_completion(broadcast_id)
    assert notified_users(broadcast_id) == names
    assert read(broadcast_id)["accepted"] == 5


def test_pause_during_the_last_page_ends_by_resuming() -> None:
    recipients(2)
    broadcast_id = begun()
    lease = leased(broadcast_id)
    control.pause(broadcast_id, now=NOON)
    send_page(lease)
    assert (read(broadcast_id)["status"], read(broadcast_id)["accepted"]) == ("paused", 2)
    control.resume(broadcast_id, now=NOON)
    run_to_completion(broadcast_id)
    assert (read(broadcast_id)["status"], read(broadcast_id)["accepted"]) == ("completed", 2)
