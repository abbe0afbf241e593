"""The Celery application. Its messages are hints: docs/reference/states.md says what decides."""

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
"""The name of an option in glibc's malloc.h."""

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.local")

app = Celery("notifyproject", task_cls="notifyproject.countdowns:ClockCheckedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def _skip_celery_logging(**_: Any) -> None:
    """Stop Celery from configuring logging: the settings have."""


@beat_init.connect
@worker_init.connect
def _refuse_unsafe_settings(**_: Any) -> None:
    """End the process if a setting would lose or misdirect notifications."""
    from django.core.management.base import SystemCheckError

    from .platform.process import refuse_unsafe_settings

    try:
        refuse_unsafe_settings()
    except SystemCheckError as error:
        # What else a signal's receiver raises is logged, and the process goes on.
        raise SystemExit(str(error)) from error


@worker_init.connect
def _check_clock(**_: Any) -> None:
    """Compare clocks before the first message is taken: one for later waits by ours."""
    from . import clock

    clock.check_clock()


@worker_init.connect
def _lengthen_switch_interval(**_: Any) -> None:
    """Let a thread keep the interpreter for longer before others ask for it.

    A worker's threads wait for providers and give it up by themselves every fraction of a
    millisecond; dozens that ask for it two hundred times a second cost a tenth of what is sent.
    """
    sys.setswitchinterval(0.05)


@worker_init.connect
def _limit_malloc_arenas(**_: Any) -> None:
    """Let threads share two of glibc's heaps: what is freed in one serves nobody in another.

    A worker with 32 threads has 190 MB after 10,000 emails instead of 206.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_ARENA_MAX, 2)


@worker_ready.connect
def _freeze_gc(**_: Any) -> None:
    """Keep the garbage collector from going through all that is loaded, over and over."""
    from .platform.process import freeze_gc

    freeze_gc()


@worker_ready.connect
def _start_watchdog(sender: Any, **_: Any) -> None:
    """End the process when another is to take its place: it hears nothing, or is too large."""
    from .platform import watchdog

    on_message = watchdog.start(
        queues=tuple(sender.app.amqp.queues.consume_from), threads=sender.controller.concurrency
    )
    task_received.connect(on_message, weak=False)


@worker_process_init.connect
def _close_inherited_connections(**_: Any) -> None:
    """Drop MongoDB connections a forked worker process has inherited: sockets cannot be shared."""
    from django.db import connections

    connections["default"].close_pool()


@worker_shutting_down.connect
def _request_shutdown(**_: Any) -> None:
    """Let a running batch end after the round that is under way; the rest is given back."""
    from .platform import process

    process.request_shutdown()
