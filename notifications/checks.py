"""System checks of settings that would lose or misdirect notifications."""

import re
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

from domain.content import attachment_host
from domain.mailboxes import parse_mailbox
from domain.time import utc_now

from .validation import (
    InvalidLinkError,
    check_public_url,
)

_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*", re.ASCII)
_PROJECT = re.compile(r"[a-z0-9][a-z0-9.:-]{2,60}[a-z0-9]", re.ASCII)
_NUMBER_ID = re.compile(r"\d{5,20}", re.ASCII)
_WORD = re.compile(r"[!-~]+", re.ASCII)
"""Characters allowed in a header: no whitespace, no line breaks, ASCII only."""


def provider_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return warnings about missing settings for sending live messages and for receipts."""
    uses_sendgrid = "sendgrid" in settings.EMAIL_PROVIDERS
    where = "to the sandbox" if settings.SENDGRID_URL else "nowhere"
    findings = (
        (
            uses_sendgrid and settings.SENDGRID_API_KEY == "SG.sandbox",
            f"Mail goes {where}: SENDGRID_API_KEY is not set.",
            "Set it, or EMAIL_PROVIDER=smtp and SMTP_HOST.",
        ),
        (
            uses_sendgrid and not settings.SENDGRID_WEBHOOK_PUBLIC_KEY,
            "SendGrid's webhooks are refused: SENDGRID_WEBHOOK_PUBLIC_KEY is not set.",
            "Without them, bounces are not noticed. Copy the key from SendGrid.",
        ),
        (
            not settings.PUBLIC_URL.startswith("https://"),
            "PUBLIC_URL is not https: mail programs show no unsubscribe button.",
            "One-click unsubscribe requires an https link (RFC 8058).",
        ),
        (
            settings.WHATSAPP_TOKEN and not settings.WHATSAPP_APP_SECRET,
            "WhatsApp's webhooks are refused: WHATSAPP_APP_SECRET is not set.",
            "Without them, no service window opens and no receipt arrives.",
        ),
        (
            _is_mailbox(settings.EMAIL_FROM)
            and parse_mailbox(settings.EMAIL_FROM).domain == "example.com",
            "Mail comes from example.com: EMAIL_FROM is not set.",
            "Set it to an address that the mail provider may send from.",
        ),
    )
    return [
        checks.Warning(message, hint=hint, id=f"notifications.W{number:03}")
        for number, (is_found, message, hint) in enumerate(findings, start=1)
        if is_found
    ]


def celery_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for settings with which the messages of a killed worker would be lost."""
    problems: list[checks.CheckMessage] = []
    if not settings.CELERY_TASK_ACKS_LATE:
        problems.append(_error("CELERY_TASK_ACKS_LATE must be enabled.", None, 1))
    if settings.CELERY_TASK_CREATE_MISSING_QUEUES:
        message = "CELERY_TASK_CREATE_MISSING_QUEUES must be disabled: no worker consumes them."
        problems.append(_error(message, None, 2))
    return problems


def mail_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for invalid senders and attachment hosts."""
    problems: list[checks.CheckMessage] = []
    for number, name in enumerate(("EMAIL_FROM", "EMAIL_REPLY_TO"), start=3):
        if (text := getattr(settings, name)) is not None and not _is_mailbox(text):
            hint = "Use one address: ada@example.com, or Ada <ada@example.com>."
            problems.append(_error(f"{name} is not an address: {text!r}.", hint, number))
    if wrong := sorted(host for host in settings.ATTACHMENT_HOSTS if not _is_host(host)):
        message = f"ATTACHMENT_HOSTS contains invalid public host names: {', '.join(wrong)}."
        hint = (
            "Use names such as files.example.com, separated by commas: no https://, no port, "
            "no path, no asterisk."
        )
        problems.append(_error(message, hint, 5))
    return problems


def service_urls(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for invalid base URLs of this service and of providers."""
    names = ("PUBLIC_URL", "SENDGRID_URL", "FCM_URL", "WHATSAPP_URL", "SANDBOX_URL")
    may_be_empty = ("SENDGRID_URL", "SANDBOX_URL")
    return [
        _error(
            f"{name} is not a base URL: {url!r}.",
            "Use a URL such as https://notify.example.com, without a user, a query, or a fragment.",
            number,
        )
        for number, name in enumerate(names, start=6)
        if not _is_base_url(url := getattr(settings, name)) and (url or name not in may_be_empty)
    ]


def push_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for invalid Firebase settings."""
    problems: list[checks.CheckMessage] = []
    project = settings.FCM_PROJECT_ID
    if project and not _PROJECT.fullmatch(project):
        hint = "Use the project ID, such as my-shop-1a2b3; if empty, the service account's own."
        problems.append(_error(f"FCM_PROJECT_ID is not a project ID: {project!r}.", hint, 11))
    names = ("FCM_CREDENTIALS", "SANDBOX_FCM_CREDENTIALS")
    for number, (name, needs_project) in enumerate(
        zip(names, (not project, True), strict=True), start=12
    ):
        if not (source := getattr(settings, name)):
            continue
        # Imported here: Google's libraries take half a second, and few installations need them.
        from providers.fcm import credentials

        try:
            account = credentials.read_service_account(source)
            account.assertion(now=utc_now())
        except credentials.InvalidCredentialsError as error:
            hint = "Set the path of Google's service account JSON, or the JSON itself."
            problems.append(_error(f"{name}: {error}", hint, number))
        else:
            if needs_project and not account.project_id:
                problems.append(_error(f"{name} names no project.", "Set FCM_PROJECT_ID.", number))
    return problems


def whatsapp_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for invalid WhatsApp settings."""
    problems: list[checks.CheckMessage] = []
    names = ("WHATSAPP_TOKEN", "WHATSAPP_APP_SECRET", "WHATSAPP_VERIFY_TOKEN")
    for number, name in enumerate(names, start=14):
        if (secret := getattr(settings, name)) and not _WORD.fullmatch(secret):
            hint = "It is one ASCII word: check for a copied space or line break."
            problems.append(_error(f"{name} is not a value that Meta issues.", hint, number))
    number_id = settings.WHATSAPP_PHONE_NUMBER_ID
    if (settings.WHATSAPP_TOKEN or number_id) and not _NUMBER_ID.fullmatch(number_id):
        problem = f"is not an ID: {number_id!r}" if number_id else "is required by WHATSAPP_TOKEN"
        hint = "Use the ID of the sending number, digits only, not the number itself."
        problems.append(_error(f"WHATSAPP_PHONE_NUMBER_ID {problem}.", hint, 17))
    return problems


def _error(message: str, hint: str | None, number: int) -> checks.Error:
    return checks.Error(message, hint=hint, id=f"notifications.E{number:03}")


def _is_mailbox(text: str) -> bool:
    try:
        parse_mailbox(text)
    except ValueError:
        return False
    return True


def _is_host(name: str) -> bool:
    try:
        check_public_url(f"https://{name}/", schemes=("https",))
    except InvalidLinkError:
        return False
    return _HOST.fullmatch(name) is not None and attachment_host(f"https://{name}/") == name


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return bool(
        _WORD.fullmatch(url)
        and parts.scheme in ("http", "https")
        and parts.hostname
        and has_port
        and not (parts.query or parts.fragment or "@" in parts.netloc or "?" in url or "#" in url)
    )
