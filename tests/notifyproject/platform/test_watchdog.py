"""The worker watchdog: recycles a worker that is too large, done, or stuck."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
import redis

from notifyproject.platform import watchdog
from notifyproject.platform.watchdog import (
    MAX_SILENCE,
    SAMPLE_SECONDS,
    WorkerLimits,
    WorkerSample,
    memory_megabytes,
)
from tests.support.waiting import LIMIT

ENDS_ITSELF = """
import time
from django.conf import settings
settings.configure(WORKER_MAX_TASKS=0, WORKER_MAX_MEMORY_MB=0)
from notifyproject.platform import watchdog
watchdog.SAMPLE_SECONDS, watchdog.MAX_SILENCE = 0.01, 0.05
watchdog.count_waiting = lambda queues: 1
watchdog.clock_check.is_wrong = lambda: False
watchdog.start(queues=["email.normal"], threads=4)
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
    return WorkerSample(waiting=waiting, has_free_thread=has_room, megabytes=megabytes)


def end_after(seconds: float, seen: WorkerSample) -> str | None:
    """Return what a worker is told that is looked at every few seconds."""
    watch = Watch()
    life = WorkerLimits(clock=watch)
    life.recycle_reason(seen)
    ends = watch.now + seconds
    while watch.now + SAMPLE_SECONDS < ends:
        watch.now += SAMPLE_SECONDS
        assert life.recycle_reason(seen) is None
    watch.now = ends
    return life.recycle_reason(seen)


def test_it_hears_nothing_when_it_has_taken_nothing_for_too_long() -> None:
    assert end_after(MAX_SILENCE, look()) == "receives_nothing"


def test_it_is_given_some_time() -> None:
    assert end_after(MAX_SILENCE - 1, look()) is None


def test_an_empty_queue_is_no_sign() -> None:
    assert end_after(10 * MAX_SILENCE, look(waiting=0)) is None


def test_a_process_that_was_frozen_has_not_gone_deaf() -> None:
    watch = Watch()
    life = WorkerLimits(clock=watch)
    life.recycle_reason(look())
    watch.now += 10 * MAX_SILENCE
    assert life.recycle_reason(look()) is None


def test_a_worker_whose_threads_are_all_busy_is_not_deaf() -> None:
    assert end_after(10 * MAX_SILENCE, look(has_room=False)) is None


def test_each_message_that_comes_begins_the_time_anew() -> None:
    watch = Watch()
    life = WorkerLimits(clock=watch)
    for _ in range(10):
        for _ in range(int(MAX_SILENCE / SAMPLE_SECONDS) - 1):
            watch.now += SAMPLE_SECONDS
            assert life.recycle_reason(look()) is None
        life.record_message()


def test_a_queue_that_was_empty_in_between_begins_the_time_anew() -> None:
    watch = Watch()
    life = WorkerLimits(clock=watch)
    for waiting in (3, 0, 3):
        for _ in range(int(MAX_SILENCE / SAMPLE_SECONDS) - 1):
            assert life.recycle_reason(look(waiting=waiting)) is None
            watch.now += SAMPLE_SECONDS


def test_it_ends_when_it_has_grown_too_large() -> None:
    life = WorkerLimits(max_megabytes=600)
    assert life.recycle_reason(look(megabytes=600)) is None
    assert life.recycle_reason(look(megabytes=601)) == "too_large"


def test_wrong_clock_recycles_the_worker() -> None:
    limits = WorkerLimits()
    assert limits.recycle_reason(look()) is None
    sample = replace(look(), is_clock_wrong=True)
    assert limits.recycle_reason(sample) == "clock_wrong"


def test_it_ends_when_it_has_done_enough() -> None:
    life = WorkerLimits(max_tasks=3)
    for _ in range(3):
        assert life.recycle_reason(look()) is None
        life.record_message()
    assert life.recycle_reason(look()) == "task_limit_reached"


def test_it_knows_what_it_has_in_memory() -> None:
    assert 10 < memory_megabytes() < 5_000


def test_a_worker_that_is_to_end_asks_its_process_to() -> None:
    command = [sys.executable, "-c", ENDS_ITSELF]
    ended = subprocess.run(command, check=False, capture_output=True, timeout=LIMIT)
    assert ended.returncode == SIGTERM
    assert b"worker_recycled" in ended.stdout + ended.stderr


def test_messages_are_counted_over_all_queues(broker: redis.Redis) -> None:
    broker.rpush("email.normal", "one", "two")
    broker.rpush("push.low", "three")
    broker.rpush("somebody.elses", "four")
    assert watchdog.count_waiting(["email.normal", "push.low", "sms.high"]) == 3


@pytest.mark.usefixtures("valkey_anew")
def test_without_the_broker_nothing_is_known_to_wait(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert watchdog.count_waiting(["email.normal"]) == 0
