"""A check of the mail server without a mail."""

import smtplib
import ssl
from typing import Any

from django.core.mail.utils import DNS_NAME

from domain.mailboxes import parse_mailbox
from notifyproject.platform.smtp import COMPLETED, SMTP, SMTPOverTLS
from notifyproject.settings.variables import Environment

from ..setup_check import TIMEOUT, RejectedError, TimedOutError, UnreachableError
from .variables import Settings


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Sign in to the mail server, and name the sender. Raises CheckError."""
    values = Settings.of(environment)
    place = f"{values.SMTP_HOST}:{values.SMTP_PORT}"
    context = ssl.create_default_context()
    options: dict[str, Any] = {
        "ehlo_name": values.ehlo_name(environment),
        "local_hostname": str(DNS_NAME),
        "timeout": timeout,
    }
    try:
        if values.SMTP_SECURITY == "tls":
            server: SMTP = SMTPOverTLS(
                values.SMTP_HOST, values.SMTP_PORT, context=context, **options
            )
        else:
            server = SMTP(values.SMTP_HOST, values.SMTP_PORT, **options)
        with server:
            server.ehlo()
            if values.SMTP_SECURITY == "starttls":
                server.starttls(context=context)
                server.ehlo()
            if values.SMTP_USER:
                server.login(values.SMTP_USER, values.SMTP_PASSWORD)
            code, _ = server.mail(parse_mailbox(environment.EMAIL_FROM).address)
            if code != COMPLETED:
                raise RejectedError(f"The mail server {place} rejected the sender with {code}.")
    except smtplib.SMTPAuthenticationError as error:
        raise RejectedError(
            f"The mail server {place} rejected user or password with {error.smtp_code}."
        ) from error
    except TimeoutError as error:
        raise TimedOutError(f"The mail server {place} didn't respond in time.") from error
    except (smtplib.SMTPServerDisconnected, OSError) as error:
        if isinstance(error, smtplib.SMTPResponseException | smtplib.SMTPNotSupportedError):
            raise RejectedError(f"The mail server {place} rejected the session.") from error
        if isinstance(error.__context__, TimeoutError):
            # smtplib reports a silent server as a closed connection.
            raise TimedOutError(f"The mail server {place} didn't respond in time.") from error
        raise UnreachableError(
            f"No connection to the mail server {place}: {type(error).__name__}."
        ) from error
