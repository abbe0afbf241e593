"""The Celery application. Messages only start work: MongoDB has the state."""

import os
import sys
from collections.abc import Mapping
from typing import Any

import click
from celery import Celery, signals
from django.conf import settings

from .platform import refusal, valkey_transport
from .settings.base import urgent_queue_names

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.local")
# Celery's run of all system checks, whose result it ignores, loads the console and the API.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

with refusal.shown_alone():
    # Celery would read them later, and show a refusal below a traceback.
    _ = settings.INSTALLED_APPS

app = Celery("notifyproject", task_cls="notifyproject.platform.clock_check:ClockCheckedTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
valkey_transport.install()
app.user_options["worker"].add(
    click.Option(
        ("--urgent",),
        is_flag=True,
        help="Serve only the service queue and the critical queue of each channel.",
    )
)


@signals.celeryd_init.connect
def _select_urgent_queues(options: Mapping[str, Any], **_: Any) -> None:
    if options.get("urgent"):
        app.amqp.queues.select(urgent_queue_names())


@signals.setup_logging.connect
def _skip_celery_logging(**_: Any) -> None:
    """Keep the settings' logging: with a receiver of this signal, Celery configures none."""


# Beat's scheduler does the same, because Celery makes it before it sends beat_init.
@signals.worker_init.connect
def _refuse_unsafe_settings(**_: Any) -> None:
    # Celery logs any exception of a receiver but SystemExit, and the process continues.
    from .platform.process import refuse_unsafe_settings

    with refusal.shown_alone():
        refuse_unsafe_settings()


@signals.worker_init.connect
def _wait_for_right_clock(**_: Any) -> None:
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
