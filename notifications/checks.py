"""System checks of settings that would lose or misdirect notifications."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

from django.conf import settings
from django.core import checks

from domain.channels import Channel
from domain.content import attachment_host
from domain.countries import COUNTRIES
from domain.mailboxes import parse_mailbox, parse_sender
from notifyproject.settings import environment
from notifyproject.settings.provider_groups import order_variable
from providers import setting_checks
from providers.accounts import every_account
from providers.discovery import checks_of
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


def provider_accounts(**_: Any) -> list[checks.CheckMessage]:
    """Return what declared accounts and variables have no effect on sends."""
    problems: list[checks.CheckMessage] = []
    hint = "PROVIDER_<NAME>_KIND declares an account, and its kind has its settings."
    for name in environment.unused():
        message = f"{name} is no variable of a declared account."
        problems.append(checks.Warning(message, hint=hint, id="notifications.W007"))
    for name, account in settings.PROVIDER_ACCOUNTS.items():
        order = order_variable(account.variables.group.channel)
        if name not in (getattr(settings, f"{order}S") or ()):
            message = f"The account {name} isn't in {order}: it sends only for brands that name it."
            hint = "If none does, remove its variables when all of its receipts have arrived."
            problems.append(checks.Info(message, hint=hint, id="notifications.I001"))
    return problems


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
    if wrong := sorted(text for text in settings.EMAIL_SENDERS if not _is_sender(text)):
        message = f"EMAIL_SENDERS contains neither addresses nor domains: {', '.join(wrong)}."
        hint = "Use hello@acme.example, or @acme.example for its domain, separated by commas."
        problems.append(setting_checks.error(message, hint, 58))
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
        *setting_checks.base_url(settings, "PUBLIC_URL", number=6),
        *setting_checks.base_url(settings, "SANDBOX_URL", number=10, may_be_empty=True),
    ]


def sms_settings(**_: Any) -> list[checks.CheckMessage]:
    """Return errors for the countries of text messages, and of their prices."""
    countries = settings.SMS_COUNTRIES
    hint = "Use codes such as PT,ES, your own country first."
    problems: list[checks.CheckMessage] = []
    if not countries and any(is_configured(channel) for channel in Channel if channel.pays_by_part):
        message = "No country gets SMS: SMS_COUNTRIES is not set, though there is a provider."
        problems.append(setting_checks.error(message, hint, 24))
    if unknown := [code for code in countries if code not in COUNTRIES]:
        message = f"SMS_COUNTRIES has unknown countries: {', '.join(unknown)}."
        problems.append(setting_checks.error(message, hint, 25))
    if unknown := [code for code in settings.SMS_PRICES if code not in COUNTRIES]:
        message = f"SMS_PRICES has unknown countries: {', '.join(unknown)}."
        problems.append(setting_checks.error(message, "Use codes such as PT:0.036.", 57))
    return problems


def _of_providers(function: str) -> Iterator[checks.CheckMessage]:
    for account in every_account():
        if check := getattr(checks_of(account.kind), function, None):
            yield from map(partial(_with_own_names, account.name), check(account))


def _with_own_names(name: str, message: checks.CheckMessage) -> checks.CheckMessage:
    """Return a message about an account, with the account's names of the kind's variables."""
    if (declared := settings.PROVIDER_ACCOUNTS.get(name)) is not None:
        variables = declared.variables
        message.msg = variables.own_names(message.msg)
        message.hint = message.hint and variables.own_names(message.hint)
    return message


def _is_mailbox(text: str) -> bool:
    try:
        parse_mailbox(text)
    except ValueError:
        return False
    return True


def _is_sender(text: str) -> bool:
    try:
        parse_sender(text)
    except ValueError:
        return False
    return True


def _is_host(name: str) -> bool:
    try:
        check_public_url(f"https://{name}/", schemes=("https",))
    except InvalidLinkError:
        return False
    return _HOST.fullmatch(name) is not None and attachment_host(f"https://{name}/") == name
