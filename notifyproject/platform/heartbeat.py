"""Heartbeat of this process, which a container's health check reads."""

import time

import structlog
from django.conf import settings

from .. import healthcheck

log = structlog.get_logger(__name__)


def record(program: str) -> None:
    """Record that a program works: ``worker``, ``beat``, or ``sweeper``. Logs a failure."""
    try:
        healthcheck.write_heartbeat(program, directory=settings.HEARTBEAT_DIR, now=time.monotonic())
    except OSError as error:
        # The program works without it. A health check then reports that the heartbeat is missing.
        log.warning("heartbeat_not_written", program=program, reason=type(error).__name__)
