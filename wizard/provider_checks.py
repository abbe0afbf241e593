"""Checks of a provider's values by a real call that sends no message."""

import smtplib
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import msgspec
from django.core.mail.utils import DNS_NAME

from domain.errors import FailureCode, ProviderError, TransientError
from domain.mailboxes import parse_mailbox
from domain.time import utc_now
from notifyproject.platform import event_loop
from notifyproject.platform.smtp import COMPLETED, SMTP, SMTPOverTLS
from notifyproject.settings.base import ehlo_name
from notifyproject.settings.variables import Environment
from providers import http_client
from providers.contract import Message, SendRequest
from providers.fcm import credentials
from providers.http import Request
from providers.sendgrid.provider import SendGrid

TIMEOUT = 10.0
"""Seconds for each step of a call."""


class CheckError(Exception):
    """A provider didn't accept the values. The message has the reason and no secret."""


class RejectedError(CheckError):
    """The provider responded, and rejected the values."""


class UnreachableError(CheckError):
    """There is no connection to the provider."""


class TimedOutError(CheckError):
    """The provider didn't respond in time."""


def try_sendgrid(values: Environment, *, timeout: float = TIMEOUT) -> None:
    """Let SendGrid validate a mail in its sandbox mode. Raises CheckError."""
    provider = SendGrid(
        api_key=values.SENDGRID_API_KEY,
        base_url=values.SENDGRID_URL or "https://api.sendgrid.com",
        sender=values.EMAIL_FROM,
        webhook_public_key="",
        clock=utc_now,
    )
    sender = parse_mailbox(values.EMAIL_FROM).address
    message = Message(subject="Set-up", text="Set-up")
    request = SendRequest(reference="set-up", recipient=sender, message=message, category="")
    body = provider.body(request) | {"mail_settings": {"sandbox_mode": {"enable": True}}}
    url = f"{provider.base_url}/v3/mail/send"
    status = _call("SendGrid", url, body, token=provider.api_key, timeout=timeout)
    if status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
        raise RejectedError(f"SendGrid responded with {status}: check the key and the sender.")


def try_smtp(values: Environment, *, timeout: float = TIMEOUT) -> None:
    """Sign in to the mail server, and name the sender. Raises CheckError."""
    place = f"{values.SMTP_HOST}:{values.SMTP_PORT}"
    context = ssl.create_default_context()
    options: dict[str, Any] = {
        "ehlo_name": ehlo_name(values),
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
            code, _ = server.mail(parse_mailbox(values.EMAIL_FROM).address)
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


def try_fcm(values: Environment, *, timeout: float = TIMEOUT) -> None:
    """Get an access token, and let FCM validate a message. Raises CheckError."""
    source = values.FCM_CREDENTIALS
    with _explained("Google"):
        token = event_loop.run(credentials.fetch_token(source, clock=utc_now, timeout=timeout))
    project = values.FCM_PROJECT_ID or credentials.read_service_account(source).project_id
    url = f"{values.FCM_URL.rstrip('/')}/v1/projects/{quote(project)}/messages:send"
    message = {"validate_only": True, "message": {"topic": "set-up", "data": {"set-up": "1"}}}
    status = _call("FCM", url, message, token=token.value, timeout=timeout)
    if status != HTTPStatus.OK:
        raise RejectedError(f"FCM responded with {status} for the project {project}.")


def try_whatsapp(values: Environment, *, timeout: float = TIMEOUT) -> None:
    """Read the templates of the business account. Raises CheckError."""
    url = (
        f"{values.WHATSAPP_URL.rstrip('/')}/{values.WHATSAPP_API_VERSION}/"
        f"{quote(values.WHATSAPP_BUSINESS_ACCOUNT_ID)}/message_templates?limit=1"
    )
    status = _call("WhatsApp", url, None, token=values.WHATSAPP_TOKEN, timeout=timeout)
    if status != HTTPStatus.OK:
        raise RejectedError(f"WhatsApp responded with {status}: check token and account ID.")


CHECKS: Mapping[str, Callable[..., None]] = {
    "sendgrid": try_sendgrid,
    "smtp": try_smtp,
    "fcm": try_fcm,
    "whatsapp": try_whatsapp,
}


def _call(
    name: str, url: str, body: Mapping[str, Any] | None, *, token: str, timeout: float
) -> int:
    """Return the status of a response. Raises CheckError."""
    request = Request(
        url=url,
        body=None if body is None else msgspec.json.encode(body),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        timeout=timeout,
    )
    with _explained(name):
        return event_loop.run(http_client.send(request)).status


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Raise an error of a provider's client as a CheckError."""
    try:
        yield
    except ProviderError as error:
        # The fetch of a token has its own error, and the transport's as the cause.
        cause = error.__cause__ if isinstance(error.__cause__, TransientError) else error
        if isinstance(cause, TransientError):
            if cause.code is FailureCode.TIMEOUT:
                raise TimedOutError(f"{name} didn't respond in time.") from error
            raise UnreachableError(f"No connection to {name}. {cause.reason}") from error
        raise RejectedError(error.reason) from error
