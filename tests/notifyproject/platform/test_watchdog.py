"""The worker watchdog: recycles a worker that is too large, finished, or stuck."""

import subprocess
import sys
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
watchdog.start(queues=["email.normal"], threads=4)
time.sleep(60)
"""

SIGTERM = -15


class Watch:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def look(*, waiting: int = 3, has_room: bool = True, megabytes: float = 150) -> WorkerSample:
    return WorkerSample(waiting=waiting, has_free_thread=has_room, megabytes=megabytes)


def end_after(seconds: float, seen: WorkerSample) -> str | None:
    """Sample a worker until this time. Return the reason to recycle it, if any."""
    watch = Watch()
    life = WorkerLimits(clock=watch)
    life.recycle_reason(seen)
    ends = watch.now + seconds
    while watch.now + SAMPLE_SECONDS < ends:
        watch.now += SAMPLE_SECONDS
        assert life.recycle_reason(seen) is None
    watch.now = ends
    return life.recycle_reason(seen)


def test_silent_worker_is_recycled() -> None:
    assert end_after(MAX_SILENCE, look()) == "receives_nothing"


def test_worker_is_not_recycled_before_the_limit() -> None:
    assert end_after(MAX_SILENCE - 1, look()) is None


def test_empty_queue_is_no_silence() -> None:
    assert end_after(10 * MAX_SILENCE, look(waiting=0)) is None


def test_frozen_process_is_not_recycled() -> None:
    watch = Watch()
    life = WorkerLimits(clock=watch)
    life.recycle_reason(look())
    watch.now += 10 * MAX_SILENCE
    assert life.recycle_reason(look()) is None


def test_busy_worker_is_not_recycled() -> None:
    assert end_after(10 * MAX_SILENCE, look(has_room=False)) is None


def test_message_restarts_the_silence() -> None:
    watch = Watch()
    life = WorkerLimits(clock=watch)
    for _ in range(10):
        for _ in range(int(MAX_SILENCE / SAMPLE_SECONDS) - 1):
            watch.now += SAMPLE_SECONDS
            assert life.recycle_reason(look()) is None
        life.record_message()


def test_empty_queue_restarts_the_silence() -> None:
    watch = Watch()
    life = WorkerLimits(clock=watch)
    for waiting in (3, 0, 3):
        for _ in range(int(MAX_SILENCE / SAMPLE_SECONDS) - 1):
            assert life.recycle_reason(look(waiting=waiting)) is None
            watch.now += SAMPLE_SECONDS


def test_large_worker_is_recycled() -> None:
    life = WorkerLimits(max_megabytes=600)
    assert life.recycle_reason(look(megabytes=600)) is None
    assert life.recycle_reason(look(megabytes=601)) == "too_large"


def test_worker_is_recycled_after_its_last_task() -> None:
    life = WorkerLimits(max_tasks=3)
    for _ in range(3):
        assert life.recycle_reason(look()) is None
        life.record_message()
    assert life.recycle_reason(look()) == "task_limit_reached"


def test_memory_is_measured() -> None:
    assert 10 < memory_megabytes() < 5_000


def test_recycled_worker_gets_sigterm() -> None:
    command = [sys.executable, "-c", ENDS_ITSELF]
    ended = subprocess.run(command, check=False, capture_output=True, timeout=LIMIT)
    assert ended.returncode == SIGTERM
    assert b"worker_recycled" in ended.stdout + ended.stderr


def test_waiting_messages_are_counted_over_all_queues(broker: redis.Redis) -> None:
    broker.rpush("email.normal", "one", "two")
    broker.rpush("push.low", "three")
    broker.rpush("somebody.elses", "four")
    assert watchdog.count_waiting(["email.normal", "push.low", "sms.high"]) == 3


@pytest.mark.usefixtures("valkey_anew")
def test_waiting_count_without_a_broker_is_zero(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert watchdog.count_waiting(["email.normal"]) == 0
