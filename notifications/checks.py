"""System checks of settings that would lose or misdirect notifications."""

import re
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core import checks

from domain.channels import Channel
from domain.content import attachment_host
from domain.countries import COUNTRIES
from domain.mailboxes import parse_mailbox
from providers import setting_checks
from providers.discovery import SPECS, checks_of
from providers.registry import is_configured

from .validation import (
    InvalidLinkError,
    check_public_url,
)

_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*", re.ASCII)


def deploy_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return warnings about missing settings for sending live messages and for receipts."""
    problems: list[checks.CheckMessage] = []
    if not settings.PUBLIC_URL.startswith("https://"):
        message = "PUBLIC_URL is not https: mail programs show no unsubscribe button."
        hint = "One-click unsubscribe requires an https link (RFC 8058)."
        problems.append(checks.Warning(message, hint=hint, id="notifications.W003"))
    sender = settings.EMAIL_FROM
    if _is_mailbox(sender) and parse_mailbox(sender).domain == "example.com":
        message = "Mail comes from example.com: EMAIL_FROM is not set."
        hint = "Set it to an address that the mail provider may send from."
        problems.append(checks.Warning(message, hint=hint, id="notifications.W005"))
    return [*problems, *_of_providers("check_server")]


def provider_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for invalid settings of providers."""
    return list(_of_providers("check_settings"))


def celery_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for settings with which the messages of a killed worker would be lost."""
    problems: list[checks.CheckMessage] = []
    if not settings.CELERY_TASK_ACKS_LATE:
        problems.append(setting_checks.error("CELERY_TASK_ACKS_LATE must be enabled.", None, 1))
    if settings.CELERY_TASK_CREATE_MISSING_QUEUES:
        message = "CELERY_TASK_CREATE_MISSING_QUEUES must be disabled: no worker consumes them."
        problems.append(setting_checks.error(message, None, 2))
    return problems


def mail_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for invalid senders and attachment hosts."""
    problems: list[checks.CheckMessage] = []
    for number, name in enumerate(("EMAIL_FROM", "EMAIL_REPLY_TO"), start=3):
        if (text := getattr(settings, name)) is not None and not _is_mailbox(text):
            hint = "Use one address: ada@example.com, or Ada <ada@example.com>."
            problems.append(
                setting_checks.error(f"{name} is not an address: {text!r}.", hint, number)
            )
    if wrong := sorted(host for host in settings.ATTACHMENT_HOSTS if not _is_host(host)):
        message = f"ATTACHMENT_HOSTS contains invalid public host names: {', '.join(wrong)}."
        hint = (
            "Use names such as files.example.com, separated by commas: no https://, no port, "
            "no path, no asterisk."
        )
        problems.append(setting_checks.error(message, hint, 5))
    return problems


def service_urls(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for invalid base URLs of this service and of the sandbox."""
    return [
        *setting_checks.base_url("PUBLIC_URL", number=6),
        *setting_checks.base_url("SANDBOX_URL", number=10, may_be_empty=True),
    ]


def sms_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for the countries of text messages."""
    countries = settings.SMS_COUNTRIES
    hint = "Use codes such as PT,ES, your own country first."
    problems: list[checks.CheckMessage] = []
    if not countries and any(is_configured(channel) for channel in Channel if channel.pays_by_part):
        message = "No country gets SMS: SMS_COUNTRIES is not set, though there is a provider."
        problems.append(setting_checks.error(message, hint, 24))
    if unknown := [code for code in countries if code not in COUNTRIES]:
        message = f"SMS_COUNTRIES has unknown countries: {', '.join(unknown)}."
        problems.append(setting_checks.error(message, hint, 25))
    return problems


def _of_providers(function: str) -> Iterator[checks.CheckMessage]:
    for name in SPECS:
        yield from getattr(checks_of(name), function, tuple)()


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
