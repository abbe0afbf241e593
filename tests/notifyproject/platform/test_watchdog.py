"""The watchdog recycles a worker that exceeds its memory limit, or is stuck."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from notifyproject import healthcheck
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
import sys
import time
from django.conf import settings
settings.configure(WORKER_MAX_MEMORY_MB=0, HEARTBEAT_DIR=sys.argv[1])
from notifyproject.platform import watchdog
watchdog.SAMPLE_SECONDS, watchdog.MAX_SILENCE = 0.01, 0.05
watchdog.count_waiting = lambda queues: 1
watchdog.clock_check.is_wrong = lambda: False
watchdog._report = lambda queues, started_at: time.sleep(60)  # a MongoDB that hangs
watchdog.start(queues=["email.normal"], threads=4)
time.sleep(60)
"""

SIGTERM = -15


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def sample(
    *, waiting: int = 3, has_free_thread: bool = True, megabytes: float = 150
) -> WorkerSample:
    return WorkerSample(waiting=waiting, has_free_thread=has_free_thread, megabytes=megabytes)


def reason_after(seconds: float, seen: WorkerSample) -> str | None:
    """Sample a worker until this time. Return the reason to recycle it, if any."""
    clock = Clock()
    life = WorkerLimits(clock=clock)
    life.recycle_reason(seen)
    ends = clock.now + seconds
    while clock.now + SAMPLE_SECONDS < ends:
        clock.now += SAMPLE_SECONDS
        assert life.recycle_reason(seen) is None
    clock.now = ends
    return life.recycle_reason(seen)


@pytest.mark.parametrize(
    ("seconds", "seen", "reason"),
    [
        (MAX_SILENCE, sample(), "receives_nothing"),
        (MAX_SILENCE - 1, sample(), None),
        (10 * MAX_SILENCE, sample(waiting=0), None),
        (10 * MAX_SILENCE, sample(has_free_thread=False), None),
    ],
    ids=["silent", "not yet", "empty queue", "busy"],
)
def test_only_a_worker_silent_for_long_is_recycled(
    seconds: float, seen: WorkerSample, reason: str | None
) -> None:
    assert reason_after(seconds, seen) == reason


def test_frozen_process_is_not_recycled() -> None:
    clock = Clock()
    life = WorkerLimits(clock=clock)
    life.recycle_reason(sample())
    clock.now += 10 * MAX_SILENCE
    assert life.recycle_reason(sample()) is None


def test_message_restarts_the_silence() -> None:
    clock = Clock()
    life = WorkerLimits(clock=clock)
    for _ in range(10):
        for _ in range(int(MAX_SILENCE / SAMPLE_SECONDS) - 1):
            clock.now += SAMPLE_SECONDS
            assert life.recycle_reason(sample()) is None
        life.record_message()


def test_empty_queue_restarts_the_silence() -> None:
    clock = Clock()
    life = WorkerLimits(clock=clock)
    for waiting in (3, 0, 3):
        for _ in range(int(MAX_SILENCE / SAMPLE_SECONDS) - 1):
            assert life.recycle_reason(sample(waiting=waiting)) is None
            clock.now += SAMPLE_SECONDS


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (sample(megabytes=600), None),
        (sample(megabytes=601), "too_large"),
        (replace(sample(), is_clock_wrong=True), "clock_wrong"),
    ],
)
def test_large_worker_and_wrong_clock_are_recycled(seen: WorkerSample, reason: str | None) -> None:
    assert WorkerLimits(max_megabytes=600).recycle_reason(seen) == reason


def test_process_size_is_measured() -> None:
    assert 10 < memory_megabytes() < 5_000


def test_recycled_worker_gets_sigterm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEARTBEAT_DIR", str(tmp_path))
    command = [sys.executable, "-c", ENDS_ITSELF, str(tmp_path)]
    ended = subprocess.run(command, check=False, capture_output=True, timeout=LIMIT)
    assert ended.returncode == SIGTERM
    assert b"worker_recycled" in ended.stdout + ended.stderr
    assert healthcheck.main(["worker"]) is None


def test_waiting_messages_are_counted_over_all_queues(broker: redis.Redis) -> None:
    broker.rpush("email.normal", "one", "two")
    broker.rpush("push.low", "three")
    broker.rpush("somebody.elses", "four")
    assert watchdog.count_waiting(["email.normal", "push.low", "sms.high"]) == 3


@pytest.mark.usefixtures("valkey_anew")
def test_waiting_count_without_a_broker_is_zero(settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert watchdog.count_waiting(["email.normal"]) == 0
