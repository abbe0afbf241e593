"""Email by SMTP: sends messages and classifies replies. Django opens connections."""

import os
import smtplib
import ssl
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from domain.errors import (
    FailureCode,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    Reach,
    TransientError,
)
from notifyproject.platform import event_loop
from notifyproject.platform.egress import Deadline

from ..contract import NotAttemptedError, SendRequest, SendResult, account_name, is_expired
from ..http import INVALID_CONFIGURATION, excerpt
from ..mail import SenderScopes, cannot_build, fetch_attachments
from ..mail_replies import Reply, Step, Subject
from ..mime import Mail, build_mail
from .connection import Connection
from .replies import ERROR_REPLIES, TEMPORARY, classify_reply

SERVICE_CLOSING = 421
"""Reply to any command from a server that closes the connection."""
OUT_OF_STEP = frozenset({500, 502, 503})
"""Replies of a server that takes a command for one of an earlier email."""
TLS_OF_ANOTHER_KIND = frozenset({"WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST"})
"""OpenSSL's reasons if the server answers without TLS."""
MAX_TLS_PROBLEM = 120
"""Characters of OpenSSL's text about a certificate."""
STEPS: Mapping[type[Exception], Step] = {
    smtplib.SMTPAuthenticationError: Step.LOGIN,
    smtplib.SMTPSenderRefused: Step.SENDER,
    smtplib.SMTPRecipientsRefused: Step.RECIPIENT,
    smtplib.SMTPDataError: Step.MESSAGE,
}
"""The step that a server refused, by smtplib's error. Any other error is the connection's."""


@dataclass(frozen=True, kw_only=True)
class SMTP(SenderScopes):
    """An SMTP server. Connections stay open between messages; the last used is used first."""

    sender: str
    """``Name <address>``."""
    options: Mapping[str, Any] = field(repr=False)
    reply_to: str | None = None
    attachment_hosts: AbstractSet[str] = frozenset()
    clock: Callable[[], datetime]
    name: str = "smtp"

    _idle: defaultdict[int, deque[Connection]] = field(
        default_factory=lambda: defaultdict(deque), repr=False
    )
    """Idle connections of each process: a forked child must not use its parent's."""

    @property
    def clears_soft_bounces(self) -> bool:
        """True: no receipt will show that an address takes messages."""
        return True

    @cached_property
    def account(self) -> str:
        """The account's name, with a hash of the host and user name."""
        return account_name(
            self.name, str(self.options.get("host")), str(self.options.get("username"))
        )

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one email in a thread; see :class:`providers.contract.Provider`."""
        deadline = Deadline.after(timeout)
        return await event_loop.run_blocking(self._send, request, deadline, pool=self.name)

    def _send(self, request: SendRequest, deadline: Deadline) -> SendResult:
        attachments, timeout = request.message.attachments, deadline.remaining()
        with fetch_attachments(attachments, hosts=self.attachment_hosts, timeout=timeout) as files:
            try:
                encoded = build_mail(
                    request, sender=self.sender, default_reply_to=self.reply_to, files=files
                )
            except ValueError as error:
                raise cannot_build() from error
            if is_expired(request, now=self.clock()):
                raise NotAttemptedError
            self._deliver(encoded, deadline, scope=request.scope)
        return SendResult(
            provider_id=encoded.message_id,
            response=ProviderResponse(status=250),
        )

    def _deliver(self, mail: Mail, deadline: Deadline, *, scope: str | None) -> None:
        idle = self._idle[os.getpid()]
        connection = idle.pop() if idle else Connection(fail_silently=False, **self.options)
        try:
            _send_with_reconnect(connection, mail, deadline)
        except BaseException as error:
            has_sent_data, is_greeted = connection.has_sent_data, connection.is_greeted
            # A late reply would otherwise count for the next email.
            connection.drop()
            if isinstance(error, OSError | ValueError):
                raise _classify_error(
                    error,
                    has_sent_data=has_sent_data,
                    is_greeted=is_greeted,
                    deadline=deadline,
                    scope=scope,
                ) from error
            raise
        idle.append(connection)


def _send_with_reconnect(connection: Connection, mail: Mail, deadline: Deadline) -> None:

    def send() -> None:
        connection.send_mail(
            mail.raw, sender=mail.sender, recipient=mail.recipient, deadline=deadline
        )

    connection.drop_if_idle()
    was_open = connection.is_open
    try:
        send()
    except OSError as error:
        reply = _parse_reply(error)
        is_dropped = isinstance(error, smtplib.SMTPServerDisconnected | ConnectionError)
        is_ended = _is_about_session(*reply, error=error) if reply is not None else is_dropped
        if not (was_open and is_ended) or connection.has_sent_data:
            raise
        connection.drop()
        send()


def _is_about_session(code: int, text: str, *, error: Exception) -> bool:
    """Return whether a refusal may concern only the kept connection.

    Then it isn't about the message or the account.
    """
    if code == SERVICE_CLOSING:
        return True
    if not isinstance(error, smtplib.SMTPSenderRefused):
        return False
    # The first command finds the server's farewell, in whatever words: it waited too long, or had
    # enough messages. Of a limit of the account it says so.
    is_temporary = code in TEMPORARY or code in OUT_OF_STEP
    subject = Reply(step=Step.SENDER, status=code, text=text).subject
    return is_temporary and subject is not Subject.ACCOUNT


def _classify_error(
    error: Exception,
    *,
    has_sent_data: bool,
    is_greeted: bool,
    deadline: Deadline,
    scope: str | None,
) -> ProviderError:
    reply = _parse_reply(error)
    if reply is not None:
        return _classify_reply(*reply, error=error, has_sent_data=has_sent_data, scope=scope)
    if has_sent_data:
        return TransientError(
            "The SMTP server stopped responding while it received the message.",
            code=FailureCode.TIMEOUT if deadline.is_expired else FailureCode.CONNECTION_LOST,
            is_ambiguous=True,
        )
    if isinstance(error, smtplib.SMTPNotSupportedError) or type(error) is smtplib.SMTPException:
        # A plain SMTPException means that no authentication method is supported by both sides.
        return ProviderUnavailableError("The SMTP server lacks a configured feature.")
    if not isinstance(error, OSError):
        return ProviderUnavailableError(INVALID_CONFIGURATION)
    reason = "No connection to the SMTP server."
    if isinstance(error, ssl.SSLError):
        reason = f"TLS connection to the SMTP server failed. {_tls_problem(error)}".rstrip()
    elif is_greeted and deadline.is_expired:
        reason = "The SMTP server stopped responding before the message was sent."
    elif deadline.is_expired and isinstance(error, smtplib.SMTPServerDisconnected):
        reason = "No greeting of the SMTP server. A port such as 465 sends none without TLS."
    return TransientError(reason, code=FailureCode.CONNECTION_FAILED)


def _tls_problem(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"Its certificate isn't accepted: {error.verify_message[:MAX_TLS_PROBLEM]}."
    if error.reason in TLS_OF_ANOTHER_KIND:
        return "Its port may be one of STARTTLS, such as 587."
    return ""


def _parse_reply(error: Exception) -> tuple[int, str] | None:
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
    code: int, text: str, *, error: Exception, has_sent_data: bool, scope: str | None
) -> ProviderError:
    """Return the error for a reply other than an acceptance."""
    step = STEPS.get(type(error), Step.CONNECTION)
    reply = Reply(step=step, status=code, text=text)
    if code in ERROR_REPLIES and not (has_sent_data and step is Step.CONNECTION):
        return classify_reply(reply, scope=scope)
    # After a whole message, an invalid reply is ambiguous.
    return TransientError(
        f"The SMTP server sent an invalid reply. ({code})",
        code=FailureCode.PROVIDER_ERROR,
        response=ProviderResponse(status=code, code=reply.enhanced_code, excerpt=excerpt(text)),
        is_ambiguous=has_sent_data,
        # The recipient's server may have written it.
        reach=Reach.RECIPIENT if step is Step.RECIPIENT else Reach.ACCOUNT,
    )
