"""A worker that is too large, has done enough or takes no message ends, and only such a one."""

import subprocess
import sys

from notifyproject.platform.watchdog import LOOK, SILENCE, WorkerLimits, WorkerSample, megabytes
from tests.support.waiting import LIMIT

ENDS_ITSELF = """
import time
from django.conf import settings
settings.configure(WORKER_MAX_TASKS=0, WORKER_MAX_MEMORY_MB=0)
from notifyproject.platform import watchdog
watchdog.LOOK, watchdog.SILENCE = 0.01, 0.05
watchdog.count_waiting = lambda queues: 1
watchdog.begin(queues=["email.normal"], threads=4)
time.sleep(60)
"""
SIGTERM = -15


class Watch:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def look(*, waiting: int = 3, has_room: bool = True, megabytes: float = 150) -> WorkerSample:
    return WorkerSample(waiting=waiting, has_room=has_room, megabytes=megabytes)


def end_after(seconds: float, seen: WorkerSample) -> str | None:
    """Return what a worker is told that is looked at every few seconds."""
    watch = Watch()
    life = WorkerLimits(clock=watch)
    life.end(seen)
    ends = watch.now + seconds
    while watch.now + LOOK < ends:
        watch.now += LOOK
        assert life.end(seen) is None
    watch.now = ends
    return life.end(seen)


def test_it_hears_nothing_when_it_has_taken_nothing_for_too_long() -> None:
    assert end_after(SILENCE, look()) == "hears_nothing"


def test_it_is_given_some_time() -> None:
    assert end_after(SILENCE - 1, look()) is None


def test_an_empty_queue_is_no_sign() -> None:
    assert end_after(10 * SILENCE, look(waiting=0)) is None


def test_a_process_that_was_frozen_has_not_gone_deaf() -> None:
    watch = Watch()
    life = WorkerLimits(clock=watch)
    life.end(look())
    watch.now += 10 * SILENCE
    assert life.end(look()) is None


def test_a_worker_whose_threads_are_all_busy_is_not_deaf() -> None:
    assert end_after(10 * SILENCE, look(has_room=False)) is None


def test_each_message_that_comes_begins_the_time_anew() -> None:
    watch = Watch()
    life = WorkerLimits(clock=watch)
    for _ in range(10):
        for _ in range(int(SILENCE / LOOK) - 1):
            watch.now += LOOK
            assert life.end(look()) is None
        life.heard()


def test_a_queue_that_was_empty_in_between_begins_the_time_anew() -> None:
    watch = Watch()
    life = WorkerLimits(clock=watch)
    for waiting in (3, 0, 3):
        for _ in range(int(SILENCE / LOOK) - 1):
            assert life.end(look(waiting=waiting)) is None
            watch.now += LOOK


def test_it_ends_when_it_has_grown_too_large() -> None:
    life = WorkerLimits(max_megabytes=600)
    assert life.end(look(megabytes=600)) is None
    assert life.end(look(megabytes=601)) == "too_large"


def test_it_ends_when_it_has_done_enough() -> None:
    life = WorkerLimits(max_tasks=3)
    for _ in range(3):
        assert life.end(look()) is None
        life.heard()
    assert life.end(look()) == "enough_done"


def test_it_knows_what_it_has_in_memory() -> None:
    assert 10 < megabytes() < 5_000


def test_a_worker_that_is_to_end_asks_its_process_to() -> None:
    command = [sys.executable, "-c", ENDS_ITSELF]
    ended = subprocess.run(command, check=False, capture_output=True, timeout=LIMIT)
    assert ended.returncode == SIGTERM
    assert b"worker_ends_itself" in ended.stdout + ended.stderr
