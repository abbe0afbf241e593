"""The Celery application. Messages only start work: MongoDB has the state."""

import os
import sys
from typing import Any

from celery import Celery, signals

from .platform import valkey_transport

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.local")

app = Celery("notifyproject", task_cls="notifyproject.platform.clock_check:ClockCheckedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
valkey_transport.install()


@signals.setup_logging.connect
def _skip_celery_logging(**_: Any) -> None:
    """Keep the settings' logging: with a receiver of this signal, Celery configures none."""


@signals.beat_init.connect
@signals.worker_init.connect
def _refuse_unsafe_settings(**_: Any) -> None:
    from django.core.management.base import SystemCheckError

    from .platform.process import refuse_unsafe_settings

    try:
        refuse_unsafe_settings()
    except SystemCheckError as error:
        # Celery logs any other exception of a receiver, and the process continues.
        raise SystemExit(str(error)) from error


@signals.beat_init.connect
@signals.worker_init.connect
def _wait_for_right_clock(**_: Any) -> None:
    """Wait until the clock is right: beat would keep the times of a clock that is ahead."""
    from .platform import clock_check

    clock_check.wait_until_right()


@signals.worker_init.connect
def _tune_process(**_: Any) -> None:
    from .platform import memory

    # Switches between threads cost a tenth of the throughput. Fewer suffice, because a thread that
    # waits for a provider releases the GIL by itself.
    sys.setswitchinterval(0.05)
    memory.limit_heaps()


@signals.worker_ready.connect
def _finish_start(sender: Any, **_: Any) -> None:
    from .platform import memory, watchdog

    memory.freeze_gc()
    memory.start_releasing()
    on_message = watchdog.start(
        queues=tuple(sender.app.amqp.queues.consume_from), threads=sender.controller.concurrency
    )
    signals.task_received.connect(on_message, weak=False)


@signals.worker_process_init.connect
def _close_inherited_connections(**_: Any) -> None:
    """Drop the MongoDB connections of the parent process: sockets cannot be shared."""
    from django.db import connections

    connections["default"].close_pool()


@signals.worker_shutting_down.connect
def _request_shutdown(**_: Any) -> None:
    """End running batches after their current round. Their other deliveries are released."""
    from .platform import process

    process.request_shutdown()
