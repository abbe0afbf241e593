"""SMTP connections with a deadline, which track whether message data was sent."""

import io
import smtplib
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from django.core.mail.backends.smtp import EmailBackend

from notifyproject.platform.egress import Deadline, DeadlineReader
from notifyproject.platform.smtp import SMTP, SMTPOverTLS

from ..http import CONNECT_TIMEOUT

MAX_REPLY = 64 * 1024
MAX_IDLE = 60.0
"""Seconds until an idle connection is dropped, since firewalls forget it silently."""


class _TrackedSMTP(SMTP):
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
        # Commands are str; only message data is bytes.
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
        # Read each time: the connection outlives one send's deadline.
        return self.deadline.remaining()


class _TrackedSMTPOverTLS(_TrackedSMTP, SMTPOverTLS):
    pass


class Connection(EmailBackend):
    """One thread's SMTP connection, on Django's backend. It stays open between emails."""

    connection: Any
    _partial_connection: Any
    deadline: Deadline
    last_used = 0.0

    def __init__(self, *, ehlo_name: str = "", **options: Any) -> None:
        """Take Django's options, and the name that EHLO gives; empty: that of the machine."""
        super().__init__(**options)
        self._ehlo_name = ehlo_name

    @property
    def connection_class(self) -> Callable[..., smtplib.SMTP]:
        """The class with which Django opens a connection."""
        return partial(
            _TrackedSMTPOverTLS if self.use_ssl else _TrackedSMTP,
            deadline=self.deadline,
            ehlo_name=self._ehlo_name,
        )

    @property
    def is_open(self) -> bool:
        """Whether a connection exists. The server may have dropped it."""
        return self.connection is not None

    @property
    def is_greeted(self) -> bool:
        """Whether the server has sent its greeting. Login or TLS may still be missing."""
        return self.is_open or self._partial_connection is not None

    @property
    def has_sent_data(self) -> bool:
        """Whether data of the last email may have reached the server."""
        return self.connection is not None and self.connection.has_sent_data

    def send_mail(self, mail: bytes, *, sender: str, recipient: str, deadline: Deadline) -> None:
        """Send one email, after connecting if necessary. Raises OSError."""
        self.deadline = deadline
        self.timeout = min(CONNECT_TIMEOUT, deadline.remaining())
        self.open()
        self.connection.deadline, self.connection.has_sent_data = deadline, False
        self.connection.sendmail(sender, [recipient], mail)
        self.last_used = time.monotonic()

    def drop_if_idle(self) -> None:
        """Drop the connection if it was idle for more than MAX_IDLE seconds."""
        if self.is_open and time.monotonic() - self.last_used > MAX_IDLE:
            self.drop()

    def drop(self) -> None:
        """Drop the connection without QUIT, because its state is unknown."""
        for connection in (self.connection, self._partial_connection):
            if connection is not None:
                connection.close()
        self.connection = self._partial_connection = None
