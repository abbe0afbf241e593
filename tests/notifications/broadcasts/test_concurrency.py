"""Several workers at one broadcast, and workers that are lost in the middle of a page."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from notifications.broadcasts import control, repository, runner
from notifications.broadcasts.documents import BroadcastLease
from notifications.queueing import backlog, fair_queue
from notifyproject.db.collections import collection
from tests.support.factories.broadcasts import begun, read, recipients, run_page, run_to_completion
from tests.support.factories.broadcasts import reached_user_ids as told
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("db", "broker", "pages_of_three")

SECOND = timedelta(seconds=1)
LATER = NOON + repository.LEASE


class Lost(Exception):
    """Stands for the end of a process."""


def taken(broadcast_id: Any, *, at: Any = NOON) -> BroadcastLease:
    """Return a worker's turn, as it has it before it does anything."""
    turn = repository.acquire_lease(broadcast_id, worker="worker", now=at)
    assert turn is not None
    return turn


def finish(turn: BroadcastLease, *, at: Any = NOON) -> None:
    """Let a worker do the page that it has the turn for."""
    runner._send_page(turn, lambda: at)


@pytest.fixture
def lost_behind_the_insert(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let workers be lost when a page is stored, before anybody hears of it."""

    def lose(*_: Any, **__: Any) -> None:
        raise Lost

    with monkeypatch.context() as patch:
        patch.setattr(fair_queue, "enqueue_wakeups", lose)
        yield patch


# Several at once.


def test_workers_that_all_come_at_once_tell_nobody_twice_and_count_everybody_once() -> None:
    names = recipients(60)
    one = begun()
    with ThreadPoolExecutor(8) as pool:
        while read(one)["status"] == "running":
            list(pool.map(lambda _: run_page(one), range(16)))
    assert told(one) == names
    assert read(one)["accepted"] == 60


def test_only_one_of_many_has_the_turn() -> None:
    recipients(3)
    one = begun()
    with ThreadPoolExecutor(8) as pool:
        turns = list(
            pool.map(lambda _: repository.acquire_lease(one, worker="worker", now=NOON), range(16))
        )
    assert sum(turn is not None for turn in turns) == 1


def test_two_that_are_at_the_same_page_store_it_once_and_one_counts_it() -> None:
    names = recipients(5)
    one = begun()
    slow = taken(one)
    run_page(one, at=LATER)
    finish(slow, at=LATER)
    assert told(one) == names[:3]
    assert (read(one)["accepted"], read(one)["cursor"]) == (3, names[2])
    run_to_completion(one, at=LATER)
    assert told(one) == names
    assert read(one)["accepted"] == 5


def test_a_page_that_both_store_at_the_same_moment_is_stored_once() -> None:
    names = recipients(3)
    one = begun()
    first = taken(one)
    second = taken(one, at=LATER)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda turn: finish(turn, at=LATER), (first, second)))
    assert told(one) == names
    assert read(one)["accepted"] == 3


def test_other_broadcasts_to_the_same_people_are_others() -> None:
    names = recipients(2)
    one, other = begun(), begun()
    run_to_completion(one)
    run_to_completion(other)
    assert told(one) == told(other) == names


# Lost on the way.


def test_who_is_lost_between_the_insert_and_the_cursor_has_doubled_nobody(
    lost_behind_the_insert: pytest.MonkeyPatch,
) -> None:
    names = recipients(5)
    one = begun()
    with pytest.raises(Lost):
        run_page(one)
    assert told(one) == names[:3]
    assert "cursor" not in read(one)
    assert not run_page(one, at=LATER - SECOND), "the lease holds"
    lost_behind_the_insert.undo()
    run_to_completion(one, at=LATER)
    assert told(one) == names
    done = read(one)
    assert (done["status"], done["accepted"], done["skipped"]) == ("completed", 5, {})


def test_who_has_muted_it_between_the_two_tries_was_told_by_the_first(
    lost_behind_the_insert: pytest.MonkeyPatch,
) -> None:
    names = recipients(2)
    one = begun()
    with pytest.raises(Lost):
        run_page(one)
    mute = {"preferences": {"marketing": {"muted": True}}}
    collection("recipients").update_one({"_id": names[0]}, {"$set": mute})
    lost_behind_the_insert.undo()
    run_to_completion(one, at=LATER)
    assert (read(one)["accepted"], read(one)["skipped"]) == (2, {})


def test_a_page_that_stops_every_worker_ends_the_broadcast(
    lost_behind_the_insert: pytest.MonkeyPatch,
) -> None:
    recipients(3)
    one = begun()
    for turn in range(runner.MAX_CLAIMS):
        with pytest.raises(Lost):
            run_page(one, at=NOON + turn * repository.LEASE)
    assert read(one)["status"] == "running"
    run_page(one, at=NOON + runner.MAX_CLAIMS * repository.LEASE)
    assert (read(one)["status"], read(one)["failure_code"]) == ("failed", "stuck")


def test_a_wait_for_room_is_no_failure(settings: Any) -> None:
    recipients(4)
    settings.BULK_PENDING_LIMIT = 0
    one = begun()
    run_page(one)
    for wait in range(1, 2 * runner.MAX_CLAIMS):
        backlog.clear()
        run_page(one, at=NOON + wait * backlog.RETRY_AFTER)
    assert (read(one)["status"], read(one)["is_waiting"]) == ("running", True)


# A pause in the middle.


def test_a_pause_during_a_page_lets_the_page_end_and_holds_the_next() -> None:
    names = recipients(5)
    one = begun()
    turn = taken(one)
    assert control.pause(one, now=NOON)["status"] == "paused"
    finish(turn)
    assert told(one) == names[:3]
    assert (read(one)["status"], read(one)["accepted"]) == ("paused", 3)
    assert not run_page(one)
    control.resume(one, now=NOON)
    run_to_completion(one)
    assert told(one) == names
    assert read(one)["accepted"] == 5


def test_a_pause_during_the_last_page_is_ended_by_resuming() -> None:
    recipients(2)
    one = begun()
    turn = taken(one)
    control.pause(one, now=NOON)
    finish(turn)
    assert (read(one)["status"], read(one)["accepted"]) == ("paused", 2)
    control.resume(one, now=NOON)
    run_to_completion(one)
    assert (read(one)["status"], read(one)["accepted"]) == ("completed", 2)
