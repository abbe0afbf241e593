"""A connection to a mail server that keeps to a time limit and knows how far a mail has come."""

import io
import smtplib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.mail.backends.smtp import EmailBackend

from notifyproject.platform.egress import Deadline, DeadlineReader

from ..http import CONNECT_TIMEOUT

MAX_REPLY = 64 * 1024
"""Bytes that are read of one reply, however many lines it has."""
MAX_IDLE = 60.0
"""Seconds after which an unused connection is not trusted: firewalls forget it without a word."""


class _TrackedSMTP(smtplib.SMTP):
    """A connection that notes when the mail itself begins to leave, and keeps to its deadline."""

    def __init__(self, *args: Any, deadline: Deadline, **options: Any) -> None:
        self.deadline = deadline
        self.has_sent_data = False
        self._reader: DeadlineReader | None = None
        super().__init__(*args, **options)

    def send(self, s: Any) -> None:
        if self.deadline.is_expired:
            raise smtplib.SMTPServerDisconnected("the time limit is over")
        if self.sock is not None:
            self.sock.settimeout(self.deadline.remaining())
        # Commands are text; nothing but the mail is bytes.
        self.has_sent_data = self.has_sent_data or isinstance(s, bytes)
        super().send(s)

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self._reader = DeadlineReader(self.sock, self._time_left)
            self.file = io.BufferedReader(self._reader)
        if self._reader is not None:
            self._reader.allowance = MAX_REPLY
        return super().getreply()

    def _time_left(self) -> float:
        # Of the send it is in now: the connection outlives a deadline.
        return self.deadline.remaining()


class _TrackedSMTPOverTLS(_TrackedSMTP, smtplib.SMTP_SSL):
    pass


class Connection(EmailBackend):
    """Django's way to a mail server; one for each thread, kept open between mails."""

    connection: Any
    _partial_connection: Any
    deadline: Deadline
    last_used = 0.0

    @property
    def connection_class(self) -> Callable[..., smtplib.SMTP]:
        """What Django opens a connection with."""
        return partial(
            _TrackedSMTPOverTLS if self.use_ssl else _TrackedSMTP, deadline=self.deadline
        )

    @property
    def is_open(self) -> bool:
        """Whether there is a connection that may still be good."""
        return self.connection is not None

    @property
    def has_sent_data(self) -> bool:
        """Whether the mail last handed over may be with the server."""
        return self.connection is not None and self.connection.has_sent_data

    def send_mail(self, mail: bytes, *, sender: str, recipient: str, deadline: Deadline) -> None:
        """Give the server one mail, over a new connection if there is none; raises OSError."""
        self.deadline = deadline
        self.timeout = min(CONNECT_TIMEOUT, deadline.remaining())
        self.open()
        self.connection.deadline, self.connection.has_sent_data = deadline, False
        self.connection.sendmail(sender, [recipient], mail)
        self.last_used = time.monotonic()

    def drop_if_idle(self) -> None:
        """Drop a connection that nobody has used for long."""
        if self.is_open and time.monotonic() - self.last_used > MAX_IDLE:
            self.drop()

    def drop(self) -> None:
        """Drop the connection, or half of one, without a word: nobody knows its state."""
        for connection in (self.connection, self._partial_connection):
            if connection is not None:
                connection.close()
        self.connection = self._partial_connection = None
