"""The Celery application. Its messages are hints: docs/state_machine.md says what decides."""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging, worker_process_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.local")

app = Celery("notifyproject")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def _keep_our_logging(**_: Any) -> None:
    """Stop Celery from configuring logging: the settings have."""


@worker_process_init.connect
def _close_inherited_connections(**_: Any) -> None:
    """Drop MongoDB connections a forked worker process has inherited: sockets cannot be shared."""
    from django.db import connections

    connections["default"].close_pool()
