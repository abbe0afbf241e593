"""Whether this process has been asked to stop: then it begins nothing new, and ends what it has.

A batch may be minutes long behind a slow provider, and whoever stops a worker waits for seconds.
"""

from threading import Event

_asked = Event()


def ask() -> None:
    """Ask this process to stop; what was claimed and not begun is given back."""
    _asked.set()


def is_asked() -> bool:
    """Return whether it has been asked."""
    return _asked.is_set()


def forget() -> None:
    """Go on after all; for tests, whose process outlives many workers."""
    _asked.clear()
