"""Whose fault it is that a token is another sender's: the device's, or our own project's.

FCM says SENDER_ID_MISMATCH of a token that belongs to another project than the one it is pushed by.
So it says the same of one app that was built with wrong keys, and of every device there is when the
service account is a wrong one. Which it is shows in what else the project was answered of late.

That is known to each process by itself. A new one is in doubt, which costs a wait and never a
device.
"""

import hashlib
from datetime import datetime, timedelta
from enum import StrEnum
from threading import Lock

PROVEN_FOR = timedelta(hours=1)
"""A project that has taken a push within this time is one that devices belong to."""
STRANGERS = 5
"""So many different devices in a row that are another sender's are no coincidence."""
SCOPE = "sender"
"""The circuit of a mismatch that nobody is to blame for: nothing else waits for it."""


class Blame(StrEnum):
    """Who is the wrong one."""

    DEVICE = "device"
    PROJECT = "project"
    NOBODY = "nobody"
    """It cannot be told yet."""


class Sender:
    """What a process has been answered of late for one account. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._accepted_at: datetime | None = None
        self._strangers: set[bytes] = set()
        """Devices that were another sender's since."""

    def accepted(self, *, now: datetime) -> None:
        """Note that the project has taken a push."""
        with self._lock:
            self._accepted_at = max(now, self._accepted_at or now)
            self._strangers.clear()

    def refused(self, token: str, *, now: datetime) -> Blame:
        """Note that a token is said to be another sender's, and return whose fault that is."""
        with self._lock:
            if len(self._strangers) < STRANGERS:
                self._strangers.add(hashlib.sha256(token.encode()).digest())
            if len(self._strangers) >= STRANGERS:
                return Blame.PROJECT
            at = self._accepted_at
        return Blame.DEVICE if at is not None and now - at <= PROVEN_FOR else Blame.NOBODY
