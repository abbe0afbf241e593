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
    one = begun()
    with ThreadPoolExecutor(8) as pool:
        while read(one)["status"] == "running":
            list(pool.map(lambda _: run_page(one), range(16)))
    assert notified_users(one) == names
    assert read(one)["accepted"] == 60


def test_two_workers_on_a_page_store_and_count_it_once() -> None:
    names = recipients(5)
    one = begun()
    slow = leased(one)
    run_page(one, at=LATER)
    send_page(slow, at=LATER)
    assert notified_users(one) == names[:3]
    assert (read(one)["accepted"], read(one)["cursor"]) == (3, names[2])
    run_to_completion(one, at=LATER)
    assert notified_users(one) == names
    assert read(one)["accepted"] == 5


def test_page_stored_concurrently_is_stored_once() -> None:
    names = recipients(3)
    one = begun()
    first = leased(one)
    second = leased(one, at=LATER)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda lease: send_page(lease, at=LATER), (first, second)))
    assert notified_users(one) == names
    assert read(one)["accepted"] == 3


def test_broadcasts_to_the_same_recipients_are_independent() -> None:
    names = recipients(2)
    one, other = begun(), begun()
    run_to_completion(one)
    run_to_completion(other)
    assert notified_users(one) == notified_users(other) == names


def test_worker_lost_before_the_cursor_sends_no_copy(lose_after_insert: pytest.MonkeyPatch) -> None:
    names = recipients(5)
    one = begun()
    with pytest.raises(Lost):
        run_page(one)
    assert notified_users(one) == names[:3]
    assert "cursor" not in read(one)
    assert not run_page(one, at=LATER - SECOND), "the lease holds"
    lose_after_insert.undo()
    run_to_completion(one, at=LATER)
    assert notified_users(one) == names
    done = read(one)
    assert (done["status"], done["accepted"], done["skipped"]) == ("completed", 5, {})


def test_recipient_who_mutes_later_stays_counted(lose_after_insert: pytest.MonkeyPatch) -> None:
    names = recipients(2)
    one = begun()
    with pytest.raises(Lost):
        run_page(one)
    mute = {"preferences": {"marketing": {"muted": True}}}
    collection("recipients").update_one({"_id": names[0]}, {"$set": mute})
    lose_after_insert.undo()
    run_to_completion(one, at=LATER)
    assert (read(one)["accepted"], read(one)["skipped"]) == (2, {})


def test_waiting_for_backpressure_is_no_failure(settings: Any) -> None:
    recipients(4)
    settings.BULK_PENDING_LIMIT = 0
    one = begun()
    run_page(one)
    for wait in range(1, 10):
        backlog.clear()
        run_page(one, at=NOON + wait * backlog.RETRY_AFTER)
    assert (read(one)["status"], read(one)["is_waiting"]) == ("running", True)


def test_pause_takes_effect_after_the_current_page() -> None:
    names = recipients(5)
    one = begun()
    lease = leased(one)
    assert control.pause(one, now=NOON)["status"] == "paused"
    send_page(lease)
    assert notified_users(one) == names[:3]
    assert (read(one)["status"], read(one)["accepted"]) == ("paused", 3)
    assert not run_page(one)
    control.resume(one, now=NOON)
    run_to_completion(one)
    assert notified_users(one) == names
    assert read(one)["accepted"] == 5


def test_pause_during_the_last_page_ends_by_resuming() -> None:
    recipients(2)
    one = begun()
    lease = leased(one)
    control.pause(one, now=NOON)
    send_page(lease)
    assert (read(one)["status"], read(one)["accepted"]) == ("paused", 2)
    control.resume(one, now=NOON)
    run_to_completion(one)
    assert (read(one)["status"], read(one)["accepted"]) == ("completed", 2)
