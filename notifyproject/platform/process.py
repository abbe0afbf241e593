"""Process lifecycle: checks at startup, the shutdown flag, and the worker's name."""

import gc
import os
import socket
from functools import cache
from threading import Event

from django.core import checks
from django.core.management.base import SystemCheckError
from django.urls import reverse

from . import broker


def refuse_unsafe_settings() -> None:
    """Raise SystemCheckError if a setting would lose or misdirect notifications."""
    found = checks.run_checks(tags=[checks.Tags.security])
    serious = [one for one in found if one.is_serious() and not one.is_silenced()]
    if serious:
        lines = ["It does not start with these settings:", *map(str, serious)]
        raise SystemCheckError("\n".join(lines))


def preload() -> None:
    """Load what the first call would wait for: views, their libraries, the broker's driver.

    Half a second to a second of work, and a caller of each new process had to wait for it.
    """
    # To know one address, Django loads the views behind all of them.
    reverse("admin:index")
    broker.load_driver()


def freeze_gc() -> None:
    """Have the garbage collector leave alone what is loaded, and look at the rest less often.

    It need not go through all of Django in the midst of a call, nor look at every 700 objects of
    one that makes a hundred thousand: that was a quarter of the CPU of a bulk call.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)


_shutdown_requested = Event()


def request_shutdown() -> None:
    """Ask this process to stop; what was claimed and not begun is given back."""
    _shutdown_requested.set()


def is_shutting_down() -> bool:
    """Return whether it has been asked."""
    return _shutdown_requested.is_set()


def clear_shutdown() -> None:
    """Go on after all; for tests, whose process outlives many workers."""
    _shutdown_requested.clear()


def pause(seconds: float) -> None:
    """Sleep. Unlike ``time.sleep``, this works under libfaketime, as in fault scenario 17."""
    Event().wait(seconds)


@cache
def worker_name() -> str:
    """Return the name this process signs its claims with."""
    return f"{socket.gethostname()}:{os.getpid()}"
