"""Process lifecycle: checks at startup, the shutdown flag, and the worker's name."""

import os
import socket
from functools import cache
from importlib import import_module
from threading import Event

import structlog
from django.conf import settings
from django.core import checks
from django.core.management.base import SystemCheckError
from django.urls import reverse

from . import broker

log = structlog.get_logger(__name__)


def refuse_unsafe_settings() -> None:
    """Raise SystemCheckError for settings that would lose or misdirect notifications.

    On a server, insecure settings raise it, too. Warnings are logged.
    """
    found = checks.run_checks(
        tags=[checks.Tags.security], include_deployment_checks=settings.DEPLOY_CHECKS_AT_START
    )
    heeded = [message for message in found if not message.is_silenced()]
    serious = [message for message in heeded if message.is_serious()]
    if serious:
        lines = ["The process does not start with these settings:", *map(str, serious)]
        raise SystemCheckError("\n".join(lines))
    for message in heeded:
        log.warning("setting_warning", check=message.id, problem=message.msg)


def preload() -> None:
    """Load views, libraries, and the broker's driver, so that no request waits 0.5-1 s for them."""
    # Django loads all views to resolve one URL.
    reverse("admin:index")
    broker.load_driver()
    # The first notification of a type with a schema needs it.
    import_module("jsonschema_rs")


_shutdown_requested = Event()


def request_shutdown() -> None:
    """Request a graceful shutdown: a batch releases the claims that it has not started."""
    _shutdown_requested.set()


def is_shutting_down() -> bool:
    """Return whether a shutdown was requested."""
    return _shutdown_requested.is_set()


def clear_shutdown() -> None:
    """Clear the shutdown request: for tests, which run many workers in one process."""
    _shutdown_requested.clear()


def pause(seconds: float) -> None:
    """Sleep. Unlike ``time.sleep``, this works under libfaketime, as in fault scenario 17."""
    Event().wait(seconds)


@cache
def worker_name() -> str:
    """Return the name of this process in leases and attempts."""
    return f"{socket.gethostname()}:{os.getpid()}"
