"""The Celery application. Its messages are wake-ups; MongoDB decides (docs/reference/states.md)."""

import ctypes
import os
import sys
from typing import Any

from celery import Celery
from celery.signals import (
    beat_init,
    setup_logging,
    task_received,
    worker_init,
    worker_process_init,
    worker_ready,
    worker_shutting_down,
)

M_ARENA_MAX = -8

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.local")

app = Celery("notifyproject", task_cls="notifyproject.platform.clock_check:ClockCheckedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def _skip_celery_logging(**_: Any) -> None:
    """Keep the logging configuration of the settings."""


@beat_init.connect
@worker_init.connect
def _refuse_unsafe_settings(**_: Any) -> None:
    from django.core.management.base import SystemCheckError

    from .platform.process import refuse_unsafe_settings

    try:
        refuse_unsafe_settings()
    except SystemCheckError as error:
        # Celery logs any other exception of a receiver, and the process continues.
        raise SystemExit(str(error)) from error


@beat_init.connect
@worker_init.connect
def _wait_for_right_clock(**_: Any) -> None:
    """Wait: beat would otherwise wait for the times that a fast clock has stored."""
    from .platform import clock_check

    clock_check.wait_until_right()


@worker_init.connect
def _lengthen_switch_interval(**_: Any) -> None:
    """Reduce switches between threads, which cost a tenth of the throughput: waiting ones yield."""
    sys.setswitchinterval(0.05)


@worker_init.connect
def _limit_malloc_arenas(**_: Any) -> None:
    """Limit glibc to two heaps, between which memory is not reused: 190 MB instead of 206 MB."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_ARENA_MAX, 2)


@worker_ready.connect
def _freeze_gc(**_: Any) -> None:
    from .platform.process import freeze_gc

    freeze_gc()


@worker_ready.connect
def _start_watchdog(sender: Any, **_: Any) -> None:
    from .platform import watchdog

    on_message = watchdog.start(
        queues=tuple(sender.app.amqp.queues.consume_from), threads=sender.controller.concurrency
    )
    task_received.connect(on_message, weak=False)


@worker_process_init.connect
def _close_inherited_connections(**_: Any) -> None:
    """Drop the MongoDB connections of the parent process: sockets cannot be shared."""
    from django.db import connections

    connections["default"].close_pool()


@worker_shutting_down.connect
def _request_shutdown(**_: Any) -> None:
    """End running batches after their current round; the rest is released."""
    from .platform import process

    process.request_shutdown()
