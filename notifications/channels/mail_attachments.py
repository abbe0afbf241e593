"""The attachments of a mail, fetched when it is sent and kept no longer than that.

All of it happens before the mail itself begins to leave: a file that cannot be had leaves no doubt
about the mail.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from notifyproject.outside.deadlines import Deadline

from ..attachments import MAX_BYTES, Attachment, host_of
from ..errors import FailureCode, PermanentError
from .mail_downloads import DownloadFailed, fetch

UNAVAILABLE = FailureCode.ATTACHMENT_UNAVAILABLE
FETCH_TIMEOUT = 10.0
"""Seconds for all attachments of a mail together; and at most two thirds of what a send has."""
AT_ONCE = 4
"""Mails with attachments that a process has in hand: one of 10 MB takes 50 MB while it is sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """An attachment that is here."""

    filename: str
    content_type: str
    content: bytes = field(repr=False)


@contextmanager
def fetched(
    attachments: Sequence[Attachment], *, hosts: AbstractSet[str], timeout: float
) -> Iterator[tuple[File, ...]]:
    """Give the files of a mail that has ``timeout`` seconds to be sent in.

    Raises DownloadFailed when they may be had later, PermanentError when they will not: one is not
    there, its host is not among ``hosts`` or is not public, or all of them are larger than 10 MB.
    """
    if not attachments:
        yield ()
        return
    seconds = max(0.0, min(FETCH_TIMEOUT, timeout * 2 / 3))
    deadline = Deadline.after(seconds)
    places = _places(os.getpid())
    if not places.acquire(timeout=seconds):
        raise DownloadFailed("Too many mails with attachments are being sent at once.")
    try:
        yield _fetch_all(attachments, hosts, deadline)
    finally:
        places.release()


def _fetch_all(
    attachments: Sequence[Attachment], hosts: AbstractSet[str], deadline: Deadline
) -> tuple[File, ...]:
    left = MAX_BYTES
    files = []
    for number, one in enumerate(attachments, start=1):
        try:
            content = _fetch(one, hosts, left, deadline)
        except PermanentError as error:
            reason = f"Attachment {number} cannot be sent: {error.reason}."
            raise PermanentError(reason, code=error.code) from error
        except DownloadFailed as error:
            reason = f"Attachment {number} could not be fetched: {error.reason}."
            raise DownloadFailed(reason) from error
        left -= len(content)
        files.append(File(filename=one.filename, content_type=one.content_type, content=content))
    return tuple(files)


def _fetch(one: Attachment, hosts: AbstractSet[str], left: int, deadline: Deadline) -> bytes:
    # It was looked at when the notification was accepted, by the settings of that day.
    if host_of(one.url) not in hosts:
        raise PermanentError("its host is not allowed here", code=UNAVAILABLE)
    return fetch(one.url, limit=left, deadline=deadline)


@cache
def _places(_process_id: int) -> threading.BoundedSemaphore:
    """Return this process's places for mails with attachments; a forked child has its own."""
    return threading.BoundedSemaphore(AT_ONCE)
