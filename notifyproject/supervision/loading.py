"""Loads the code of all programs into their parent, before it forks them."""

from collections.abc import Sequence
from importlib import import_module

import django

from ..platform import memory, refusal

MODULES = (
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.thread",
    "celery.worker.consumer",
    "django_celery_beat.schedulers",
    "gunicorn.app.wsgiapp",
    "gunicorn.arbiter",
    "notifyproject.platform.consumer",
    "notifyproject.platform.watchdog",
    "notifyproject.serving.stream_worker",
    "notifyproject.serving.worker",
    # With the views, and the driver of the broker. Settings that a program refuses end the parent.
    "notifyproject.wsgi",
    "api.inbox.stream.app",
    "tasks.beat",
    "tasks.tasks",
)
"""What the programs import by themselves. Loading it opens no connection, and starts no thread."""


def load(others: Sequence[str] = ()) -> None:
    """Load MODULES and others, as objects that no garbage collection looks at.

    A collection writes to the objects that it looks at, and each process would get a copy of them.
    """
    with memory.loading(), refusal.shown_alone():
        django.setup()
        from ..celery import app

        app.loader.import_default_modules()
        for name in (*MODULES, *others):
            import_module(name)
