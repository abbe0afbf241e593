"""Checks of a provider's values by a real call that sends no message."""

import json
import smtplib
import ssl
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import jwt
from django.core.mail.utils import DNS_NAME

from domain.mailboxes import parse_mailbox

from ..platform import service_account
from ..platform.smtp import COMPLETED, SMTP, SMTPOverTLS
from ..settings.base import ehlo_name
from ..settings.variables import Environment

TIMEOUT = 10.0
"""Seconds for each step of a call."""
MAX_RESPONSE = 1024 * 1024
FCM_SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
GOOGLE_AUDIENCE = "https://oauth2.googleapis.com/token"
JWT_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"


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
    sender = parse_mailbox(values.EMAIL_FROM).address
    mail = {
        "personalizations": [{"to": [{"email": sender}]}],
        "from": {"email": sender},
        "subject": "Set-up",
        "content": [{"type": "text/plain", "value": "Set-up"}],
        "mail_settings": {"sandbox_mode": {"enable": True}},
    }
    url = f"{values.SENDGRID_URL or 'https://api.sendgrid.com'}/v3/mail/send"
    status, _ = _post_json("SendGrid", url, mail, token=values.SENDGRID_API_KEY, timeout=timeout)
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
    account = read_service_account(values.FCM_CREDENTIALS)
    now = datetime.now(UTC)
    claims = {
        "iss": account.get("client_email"),
        "aud": GOOGLE_AUDIENCE,
        "scope": FCM_SCOPE,
        "iat": now,
        "exp": now + timedelta(minutes=10),
    }
    try:
        assertion = jwt.encode(claims, account.get("private_key", ""), algorithm="RS256")
    except (ValueError, TypeError, jwt.PyJWTError) as error:
        raise RejectedError("The service account has no valid private key.") from error
    form = urlencode({"grant_type": JWT_GRANT, "assertion": assertion}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    token_url = account.get("token_uri") or GOOGLE_AUDIENCE
    status, answer = _request("Google", "POST", token_url, form, headers, timeout=timeout)
    if status != HTTPStatus.OK or not isinstance(answer.get("access_token"), str):
        raise RejectedError(f"Google rejected the service account with {status}.")
    project = values.FCM_PROJECT_ID or account.get("project_id", "")
    url = f"{values.FCM_URL.rstrip('/')}/v1/projects/{quote(project)}/messages:send"
    message = {"validate_only": True, "message": {"topic": "set-up", "data": {"set-up": "1"}}}
    status, _ = _post_json("FCM", url, message, token=answer["access_token"], timeout=timeout)
    if status != HTTPStatus.OK:
        raise RejectedError(f"FCM responded with {status} for the project {project}.")


def try_whatsapp(values: Environment, *, timeout: float = TIMEOUT) -> None:
    """Read the templates of the business account. Raises CheckError."""
    url = (
        f"{values.WHATSAPP_URL.rstrip('/')}/{values.WHATSAPP_API_VERSION}/"
        f"{quote(values.WHATSAPP_BUSINESS_ACCOUNT_ID)}/message_templates?limit=1"
    )
    headers = {"Authorization": f"Bearer {values.WHATSAPP_TOKEN}"}
    status, _ = _request("WhatsApp", "GET", url, None, headers, timeout=timeout)
    if status != HTTPStatus.OK:
        raise RejectedError(f"WhatsApp responded with {status}: check token and account ID.")


CHECKS: Mapping[str, Callable[..., None]] = {
    "sendgrid": try_sendgrid,
    "smtp": try_smtp,
    "fcm": try_fcm,
    "whatsapp": try_whatsapp,
}


def read_service_account(source: str) -> dict[str, Any]:
    """Read a service account from a path or JSON text. Raises RejectedError."""
    try:
        return service_account.read(source)
    except service_account.OtherFileError as error:
        raise RejectedError(str(error)) from error
    except (OSError, ValueError, RecursionError) as error:
        raise RejectedError(
            f"The service account can't be read: {type(error).__name__}."
        ) from error


def _post_json(
    name: str, url: str, body: Mapping[str, Any], *, token: str, timeout: float
) -> tuple[int, dict[str, Any]]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    return _request(name, "POST", url, json.dumps(body).encode(), headers, timeout=timeout)


def _request(
    name: str,
    method: str,
    url: str,
    body: bytes | None,
    headers: Mapping[str, str],
    *,
    timeout: float,
) -> tuple[int, dict[str, Any]]:
    """Return status and JSON object of a response. Raises CheckError."""
    try:
        parts = urlsplit(url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        with closing(kind(parts.hostname or "", parts.port, timeout=timeout)) as connection:
            connection.request(method, target, body=body, headers=dict(headers))
            response = connection.getresponse()
            content = response.read(MAX_RESPONSE)
    except TimeoutError as error:
        raise TimedOutError(f"{name} didn't respond in time.") from error
    except (OSError, HTTPException, ValueError) as error:
        # ValueError: a character that a header can't have, as in a pasted token.
        raise UnreachableError(f"No connection to {name}: {type(error).__name__}.") from error
    try:
        found = json.loads(content)
    except ValueError:
        found = {}
    return response.status, found if isinstance(found, dict) else {}
