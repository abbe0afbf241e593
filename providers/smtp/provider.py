"""Email by SMTP: MIME messages, and the class of each reply. Django opens the connection."""

import os
import re
import smtplib
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from email import encoders
from email.errors import MessageError
from email.header import Header
from email.message import Message as EmailPart
from email.mime.base import MIMEBase
from email.utils import formataddr, parseaddr
from functools import cached_property
from typing import Any

from django.core.mail import EmailMultiAlternatives

from domain.errors import (
    FailureCode,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    TransientError,
)
from notifyproject.platform.egress import Deadline

from ..contract import NotAttemptedError, Receipt, SendRequest, SendResult, account_name, is_expired
from ..http import INVALID_CONFIGURATION, excerpt
from ..mail import AttachmentFile, ascii_email, fetch_attachments, reply_to, unsubscribe_headers
from ..response_rules import ResponseKind, ResponseRule, classify
from .connection import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A mail as it goes over the wire."""

    message_id: str
    sender: str
    recipient: str
    raw: bytes


def build_mail(
    request: SendRequest,
    *,
    sender: str,
    default_reply_to: str | None,
    files: Sequence[AttachmentFile],
) -> Mail:
    """Return a mail; raises ValueError or MessageError if it cannot be one."""
    message = request.message
    name, address = parseaddr(sender)
    address = ascii_email(address)
    recipient = ascii_email(request.recipient)
    message_id = f"<{request.reference}@{address.partition('@')[2]}>"
    reply_address = reply_to(message, default=default_reply_to)
    mail = EmailMultiAlternatives(
        subject=message.subject or "",
        body=message.text,
        from_email=formataddr((name, address)),
        to=[formataddr((request.recipient_name or "", recipient))],
        reply_to=[formataddr(reply_address)] if reply_address else None,
        headers={"Message-ID": message_id},
    )
    if message.html:
        mail.attach_alternative(message.html, "text/html")
    for file in files:
        mail.attach(_build_part(file))
    mime_message = mail.message()
    for header, value in unsubscribe_headers(message).items():
        EmailPart.__setitem__(mime_message, header, _UnfoldedHeader(value))
    raw = mime_message.as_bytes(linesep="\r\n")
    return Mail(message_id=message_id, sender=address, recipient=recipient, raw=raw)


class _UnfoldedHeader(Header):
    """A header on one line: where a long URL is cut, some mail programs see two."""

    def encode(self, *_args: Any, **_options: Any) -> str:
        """Return the header as it is, however wide a line should be."""
        return str(self)


def _build_part(file: AttachmentFile) -> MIMEBase:
    """Return a file as it is, byte for byte: as a text, its line ends would be changed."""
    part = MIMEBase(*file.content_type.split("/", 1))
    part.set_payload(file.content)
    encoders.encode_base64(part)
    part.add_header("Content-Disposition", "attachment", filename=file.filename)
    return part


SERVICE_CLOSING = 421
"""The server closes the connection, whatever was asked."""
ERROR_REPLIES = range(400, 600)
"""Codes by which a server refuses; any other in their place is no answer."""
_ENHANCED = re.compile(r"[45]\.\d{1,3}\.\d{1,3}\b", re.ASCII)
SMTP_STEPS: Mapping[type[Exception], str] = {
    smtplib.SMTPSenderRefused: "sender",
    smtplib.SMTPRecipientsRefused: "recipient",
    smtplib.SMTPDataError: "mail",
}
"""What the server refused, by smtplib's error; any other reply is about the connection."""
RESPONSE_RULES: Sequence[ResponseRule] = (
    ResponseRule(
        statuses=range(400, 500),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.PROVIDER_ERROR,
        reason="The mail server cannot take it now.",
    ),
    ResponseRule(
        statuses=(530, 534, 535, 538),
        kind=ResponseKind.UNAVAILABLE,
        reason="The mail server wants another login or encryption than is configured.",
    ),
    ResponseRule(
        statuses=range(500, 600),
        field="connection.*",
        kind=ResponseKind.UNAVAILABLE,
        reason="The mail server does not want to talk to us.",
    ),
    ResponseRule(
        # All but 552: the mail is too big, as its sender's announcement says.
        statuses=(*range(500, 552), *range(553, 600)),
        field="sender.*",
        kind=ResponseKind.UNAVAILABLE,
        reason="The mail server takes nothing from the sender that is configured.",
    ),
    ResponseRule(
        # 5.7.x is a policy's refusal, of us for the most part, and says nothing of the mailbox.
        statuses=(550, 551, 553),
        field=r"recipient (?!5\.7\.).*",
        kind=ResponseKind.INVALID_RECIPIENT,
        reason="The mail server has no such mailbox.",
    ),
    ResponseRule(
        statuses=range(500, 600),
        kind=ResponseKind.PERMANENT,
        reason="The mail server refused the message.",
    ),
)


@dataclass(frozen=True, kw_only=True)
class SMTP:
    """A mail server. One connection for each thread, kept open between messages."""

    sender: str
    """``Name <address>``."""
    options: Mapping[str, Any] = field(repr=False)
    """Host, port, username, password, use_tls, use_ssl of Django's backend."""
    reply_to: str | None = None
    """``Name <address>`` that answers go to, unless a message says otherwise."""
    attachment_hosts: AbstractSet[str] = frozenset()
    """Hosts that attachments are fetched from; of no others."""
    clock: Callable[[], datetime]
    name: str = "smtp"

    _local: threading.local = field(default_factory=threading.local, repr=False)

    @cached_property
    def account(self) -> str:
        """The account whose health and rate the mails share."""
        return account_name(
            self.name, str(self.options.get("host")), str(self.options.get("username"))
        )

    def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Hand one email to the server; see :class:`providers.contract.Provider`."""
        deadline = Deadline.after(timeout)
        attachments = request.message.attachments
        with fetch_attachments(attachments, hosts=self.attachment_hosts, timeout=timeout) as files:
            encoded = self._build_mail(request, files)
            if is_expired(request, now=self.clock()):
                raise NotAttemptedError
            self._deliver(encoded, deadline)
        return SendResult(provider_id=encoded.message_id, response=ProviderResponse(status=250))

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return nothing: a mail server sends no webhooks."""
        return []

    def _deliver(self, mail: Mail, deadline: Deadline) -> None:
        connection = self._connection()
        has_succeeded = False
        try:
            _send_with_reconnect(connection, mail, deadline)
            has_succeeded = True
        except (OSError, ValueError) as error:
            raise _classify_error(
                error, has_sent_data=connection.has_sent_data, deadline=deadline
            ) from error
        finally:
            if not has_succeeded:
                # Whatever it was: an answer that is still to come would be the next mail's.
                connection.drop()

    def _build_mail(self, request: SendRequest, files: Sequence[AttachmentFile]) -> Mail:
        try:
            return build_mail(
                request, sender=self.sender, default_reply_to=self.reply_to, files=files
            )
        except (ValueError, MessageError) as error:
            raise PermanentError(
                "The message cannot be made into a mail.", code=FailureCode.RENDER_FAILED
            ) from error

    def _connection(self) -> Connection:
        """Return this thread's connection; a forked child does not share its parent's."""
        process_id = os.getpid()
        if getattr(self._local, "process_id", None) != process_id:
            self._local.process_id = process_id
            self._local.connection = Connection(fail_silently=False, **self.options)
        return self._local.connection


def _send_with_reconnect(connection: Connection, mail: Mail, deadline: Deadline) -> None:
    """Hand over a mail, on a new connection if the server has closed the one it had kept."""

    def send() -> None:
        connection.send_mail(
            mail.raw, sender=mail.sender, recipient=mail.recipient, deadline=deadline
        )

    connection.drop_if_idle()
    was_open = connection.is_open
    try:
        send()
    except OSError as error:
        if not (was_open and _is_connection_closed(error)) or connection.has_sent_data:
            raise
        connection.drop()
        send()


def _is_connection_closed(error: OSError) -> bool:
    """Return whether the server has closed the connection, with or without a word."""
    reply = _parse_reply(error)
    if reply is not None:
        return reply[0] == SERVICE_CLOSING
    return isinstance(error, smtplib.SMTPServerDisconnected | ConnectionError)


def _classify_error(error: Exception, *, has_sent_data: bool, deadline: Deadline) -> ProviderError:
    reply = _parse_reply(error)
    if reply is not None:
        return _classify_reply(*reply, error=error, has_sent_data=has_sent_data)
    if has_sent_data:
        return TransientError(
            "The mail server fell silent while it was taking the message.",
            code=FailureCode.TIMEOUT if deadline.is_expired else FailureCode.CONNECTION_LOST,
            is_ambiguous=True,
        )
    if isinstance(error, smtplib.SMTPNotSupportedError) or type(error) is smtplib.SMTPException:
        # The latter: no way to log in that both sides know.
        return ProviderUnavailableError("The mail server does not support what is configured.")
    if not isinstance(error, OSError):
        return ProviderUnavailableError(INVALID_CONFIGURATION)
    reason = "No connection to the mail server."
    if isinstance(error, ssl.SSLError):
        reason = "No secure connection to the mail server."
    elif deadline.is_expired:
        reason = "The mail server fell silent before it had the message."
    return TransientError(reason, code=FailureCode.CONNECTION_FAILED)


def _parse_reply(error: Exception) -> tuple[int, str] | None:
    """Return what the server said, if that is what went wrong."""
    code: int
    text: bytes | str
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        ((code, text),) = error.recipients.values()
    elif isinstance(error, smtplib.SMTPResponseException):
        code, text = error.smtp_code, error.smtp_error
    else:
        return None
    return code, text.decode(errors="replace") if isinstance(text, bytes) else text


def _classify_reply(
    code: int, text: str, *, error: Exception, has_sent_data: bool
) -> ProviderError:
    """Return the class of a refusal: 4yz may work later, 5yz will not."""
    enhanced = _ENHANCED.match(text)
    response = ProviderResponse(status=code, code=enhanced and enhanced[0], excerpt=excerpt(text))
    is_valid_reply = code in ERROR_REPLIES and not (has_sent_data and type(error) not in SMTP_STEPS)
    if not is_valid_reply:
        # Nonsense. In place of the answer to a whole mail it tells nothing.
        return TransientError(
            f"The mail server gave an answer that is none. ({code})",
            code=FailureCode.PROVIDER_ERROR,
            response=response,
            is_ambiguous=has_sent_data,
        )
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return ProviderUnavailableError(
            f"The mail server does not accept our credentials. ({code})", response=response
        )
    step = SMTP_STEPS.get(type(error), "connection")
    return classify(
        RESPONSE_RULES,
        response=response,
        fields=[f"{step} {response.code or ''}"],
        retry_after=None,
    )
