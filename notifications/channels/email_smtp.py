"""Email by SMTP, through Django's email backend."""

import smtplib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formataddr, parseaddr
from typing import Any

from django.core.mail import EmailMultiAlternatives
from django.core.mail.backends.smtp import EmailBackend

from ..errors import (
    Answer,
    ChannelUnavailable,
    FailureCode,
    InvalidRecipient,
    PermanentError,
    ProviderError,
    RecipientAction,
    TransientError,
)
from .base import Outbound, Receipt, SendResult
from .http import EXCERPT_LENGTH, redact

TEMPORARY = range(400, 500)
NO_SUCH_MAILBOX = (550, 551, 553)


class _WatchedSMTP(smtplib.SMTP):
    """A connection that notes when the message itself begins to leave."""

    message_left = False

    def data(self, msg: Any) -> tuple[int, bytes]:
        self.message_left = True
        return super().data(msg)


class _WatchedSMTPS(_WatchedSMTP, smtplib.SMTP_SSL):
    pass


class _Backend(EmailBackend):
    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        return _WatchedSMTPS if self.use_ssl else _WatchedSMTP


@dataclass(frozen=True, kw_only=True)
class SMTP:
    """A mail server. One connection for each thread, kept open between messages."""

    sender: str
    """``Name <address>``."""
    options: Mapping[str, Any]
    """Host, port, username, password, use_tls, use_ssl of Django's backend."""
    name: str = "smtp"
    _local: threading.local = field(default_factory=threading.local, repr=False)

    def send(self, outbound: Outbound, *, timeout: float) -> SendResult:
        """Hand one email to the server; see :class:`notifications.channels.base.Channel`."""
        backend = self._backend(timeout)
        reused = backend.connection is not None
        try:
            try:
                return self._send(backend, outbound)
            except (smtplib.SMTPServerDisconnected, ConnectionError):
                # The server had closed a connection that lay idle, before it got the message.
                if not reused or _message_left(backend):
                    raise
                self._forget(backend)
                return self._send(backend, outbound)
        except (smtplib.SMTPException, OSError) as error:
            left = _message_left(backend)
            self._forget(backend)
            raise _classify(error, message_left=left) from error

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return nothing: a mail server sends no webhooks."""
        return []

    def _send(self, backend: EmailBackend, outbound: Outbound) -> SendResult:
        backend.open()
        backend.connection.message_left = False
        message_id = f"<{outbound.reference}@{parseaddr(self.sender)[1].partition('@')[2]}>"
        mail = EmailMultiAlternatives(
            subject=outbound.message.subject or "",
            body=outbound.message.text,
            from_email=self.sender,
            to=[formataddr((outbound.recipient_name or "", outbound.recipient))],
            headers={"Message-ID": message_id},
        )
        if outbound.message.html:
            mail.attach_alternative(outbound.message.html, "text/html")
        backend.send_messages([mail])
        return SendResult(provider_id=message_id, answer=Answer(status=250))

    def _backend(self, timeout: float) -> EmailBackend:
        backend = getattr(self._local, "backend", None)
        if backend is None:
            backend = self._local.backend = _Backend(
                fail_silently=False, timeout=timeout, **self.options
            )
        return backend

    def _forget(self, backend: EmailBackend) -> None:
        """Drop a connection whose state nobody knows."""
        if backend.connection is not None:
            smtplib.SMTP.close(backend.connection)
            backend.connection = None
        self._local.backend = None


def _message_left(backend: EmailBackend) -> bool:
    return bool(getattr(backend.connection, "message_left", False))


def _classify(error: Exception, *, message_left: bool) -> ProviderError:
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return ChannelUnavailable(
            "The mail server does not accept our credentials.", answer=_answer(error)
        )
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        reply, text = next(iter(error.recipients.values()))
        return _refused(reply, text, of_recipient=True)
    if isinstance(error, smtplib.SMTPResponseException):
        return _refused(error.smtp_code, error.smtp_error, of_recipient=False)
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return ChannelUnavailable("The mail server does not support what is configured.")
    if message_left:
        # smtplib turns a timeout into a disconnection that says so.
        timed_out = isinstance(error, TimeoutError) or "timed out" in str(error)
        return TransientError(
            "The mail server fell silent while it was taking the message.",
            code=FailureCode.TIMEOUT if timed_out else FailureCode.CONNECTION_LOST,
            ambiguous=True,
        )
    return TransientError("No connection to the mail server.", code=FailureCode.CONNECTION_FAILED)


def _refused(code: int, text: bytes | str, *, of_recipient: bool) -> ProviderError:
    """Return the class of a reply the server gave: 4yz may work later, 5yz will not."""
    words = text.decode(errors="replace") if isinstance(text, bytes) else text
    answer = Answer(status=code, excerpt=redact(words[:EXCERPT_LENGTH]))
    if code in TEMPORARY:
        return TransientError(
            f"The mail server cannot take it now. ({code})",
            code=FailureCode.PROVIDER_ERROR,
            answer=answer,
        )
    if of_recipient and code in NO_SUCH_MAILBOX:
        return InvalidRecipient(
            f"The mail server has no such mailbox. ({code})",
            action=RecipientAction.SUSPECT,
            answer=answer,
        )
    return PermanentError(
        f"The mail server refused the message. ({code})", code=FailureCode.REJECTED, answer=answer
    )


def _answer(error: smtplib.SMTPResponseException) -> Answer:
    words = error.smtp_error
    text = words.decode(errors="replace") if isinstance(words, bytes) else words
    return Answer(status=error.smtp_code, excerpt=redact(text[:EXCERPT_LENGTH]))
