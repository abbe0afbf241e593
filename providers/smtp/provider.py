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

from ..contract import NotAttemptedError, Receipt, SendRequest, SendResult, account_of, is_expired
from ..http import UNUSABLE, excerpt
from ..mail import File, ascii_email, fetch_attachments, reply_to, unsubscribe_headers
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
    outbound: SendRequest, *, sender: str, default_reply_to: str | None, files: Sequence[File]
) -> Mail:
    """Return a mail; raises ValueError or MessageError if it cannot be one."""
    message = outbound.message
    name, address = parseaddr(sender)
    address = ascii_email(address)
    recipient = ascii_email(outbound.recipient)
    message_id = f"<{outbound.reference}@{address.partition('@')[2]}>"
    answers_to = reply_to(message, default=default_reply_to)
    mail = EmailMultiAlternatives(
        subject=message.subject or "",
        body=message.text,
        from_email=formataddr((name, address)),
        to=[formataddr((outbound.recipient_name or "", recipient))],
        reply_to=[formataddr(answers_to)] if answers_to else None,
        headers={"Message-ID": message_id},
    )
    if message.html:
        mail.attach_alternative(message.html, "text/html")
    for file in files:
        mail.attach(_part(file))
    whole = mail.message()
    for header, value in unsubscribe_headers(message).items():
        EmailPart.__setitem__(whole, header, _Unfolded(value))
    raw = whole.as_bytes(linesep="\r\n")
    return Mail(message_id=message_id, sender=address, recipient=recipient, raw=raw)


class _Unfolded(Header):
    """A header on one line: where a long URL is cut, some mail programs see two."""

    def encode(self, *_args: Any, **_options: Any) -> str:
        """Return the header as it is, however wide a line should be."""
        return str(self)


def _part(file: File) -> MIMEBase:
    """Return a file as it is, byte for byte: as a text, its line ends would be changed."""
    part = MIMEBase(*file.content_type.split("/", 1))
    part.set_payload(file.content)
    encoders.encode_base64(part)
    part.add_header("Content-Disposition", "attachment", filename=file.filename)
    return part


CLOSING = 421
"""The server closes the connection, whatever was asked."""
REPLIES = range(400, 600)
"""Codes by which a server refuses; any other in their place is no answer."""
_ENHANCED = re.compile(r"[45]\.\d{1,3}\.\d{1,3}\b", re.ASCII)
STEPS: Mapping[type[Exception], str] = {
    smtplib.SMTPSenderRefused: "sender",
    smtplib.SMTPRecipientsRefused: "recipient",
    smtplib.SMTPDataError: "mail",
}
"""What the server refused, by smtplib's error; any other reply is about the connection."""
ANSWERS: Sequence[ResponseRule] = (
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
        return account_of(
            self.name, str(self.options.get("host")), str(self.options.get("username"))
        )

    def send(self, outbound: SendRequest, *, timeout: float) -> SendResult:
        """Hand one email to the server; see :class:`providers.contract.Provider`."""
        deadline = Deadline.after(timeout)
        attachments = outbound.message.attachments
        with fetch_attachments(attachments, hosts=self.attachment_hosts, timeout=timeout) as files:
            mail = self._mail(outbound, files)
            if is_expired(outbound, now=self.clock()):
                raise NotAttemptedError
            self._deliver(mail, deadline)
        return SendResult(provider_id=mail.message_id, answer=ProviderResponse(status=250))

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return nothing: a mail server sends no webhooks."""
        return []

    def _deliver(self, mail: Mail, deadline: Deadline) -> None:
        connection = self._connection()
        is_good = False
        try:
            _hand_over(connection, mail, deadline)
            is_good = True
        except (OSError, ValueError) as error:
            raise _classify(
                error, message_left=connection.message_left, deadline=deadline
            ) from error
        finally:
            if not is_good:
                # Whatever it was: an answer that is still to come would be the next mail's.
                connection.forget()

    def _mail(self, outbound: SendRequest, files: Sequence[File]) -> Mail:
        try:
            return build_mail(
                outbound, sender=self.sender, default_reply_to=self.reply_to, files=files
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


def _hand_over(connection: Connection, mail: Mail, deadline: Deadline) -> None:
    """Hand over a mail, on a new connection if the server has closed the one it had kept."""

    def hand_over() -> None:
        connection.hand_over(
            mail.raw, sender=mail.sender, recipient=mail.recipient, deadline=deadline
        )

    connection.forget_if_idle()
    was_open = connection.is_open
    try:
        hand_over()
    except OSError as error:
        if not (was_open and _is_closed(error)) or connection.message_left:
            raise
        connection.forget()
        hand_over()


def _is_closed(error: OSError) -> bool:
    """Return whether the server has closed the connection, with or without a word."""
    reply = _reply(error)
    if reply is not None:
        return reply[0] == CLOSING
    return isinstance(error, smtplib.SMTPServerDisconnected | ConnectionError)


def _classify(error: Exception, *, message_left: bool, deadline: Deadline) -> ProviderError:
    reply = _reply(error)
    if reply is not None:
        return _refused(*reply, error=error, message_left=message_left)
    if message_left:
        return TransientError(
            "The mail server fell silent while it was taking the message.",
            code=FailureCode.TIMEOUT if deadline.is_expired else FailureCode.CONNECTION_LOST,
            ambiguous=True,
        )
    if isinstance(error, smtplib.SMTPNotSupportedError) or type(error) is smtplib.SMTPException:
        # The latter: no way to log in that both sides know.
        return ProviderUnavailableError("The mail server does not support what is configured.")
    if not isinstance(error, OSError):
        return ProviderUnavailableError(UNUSABLE)
    reason = "No connection to the mail server."
    if isinstance(error, ssl.SSLError):
        reason = "No secure connection to the mail server."
    elif deadline.is_expired:
        reason = "The mail server fell silent before it had the message."
    return TransientError(reason, code=FailureCode.CONNECTION_FAILED)


def _reply(error: Exception) -> tuple[int, str] | None:
    """Return what the server said, if that is what went wrong."""
    code: int
    words: bytes | str
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        ((code, words),) = error.recipients.values()
    elif isinstance(error, smtplib.SMTPResponseException):
        code, words = error.smtp_code, error.smtp_error
    else:
        return None
    return code, words.decode(errors="replace") if isinstance(words, bytes) else words


def _refused(code: int, words: str, *, error: Exception, message_left: bool) -> ProviderError:
    """Return the class of a refusal: 4yz may work later, 5yz will not."""
    enhanced = _ENHANCED.match(words)
    answer = ProviderResponse(status=code, code=enhanced and enhanced[0], excerpt=excerpt(words))
    is_answer = code in REPLIES and not (message_left and type(error) not in STEPS)
    if not is_answer:
        # Nonsense. In place of the answer to a whole mail it tells nothing.
        return TransientError(
            f"The mail server gave an answer that is none. ({code})",
            code=FailureCode.PROVIDER_ERROR,
            answer=answer,
            ambiguous=message_left,
        )
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return ProviderUnavailableError(
            f"The mail server does not accept our credentials. ({code})", answer=answer
        )
    step = STEPS.get(type(error), "connection")
    return classify(
        ANSWERS, answer=answer, fields=[f"{step} {answer.code or ''}"], retry_after=None
    )
