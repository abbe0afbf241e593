"""Checks of the settings of providers of email with an API."""

from collections.abc import Iterator

from django.conf import settings
from django.core import checks

from . import setting_checks
from .email_spec import REQUIREMENTS, is_installed
from .spec import Account, ProviderSpec


def check_settings(
    spec: ProviderSpec, account: Account, *, credential: str
) -> Iterator[checks.CheckMessage]:
    """Report invalid or missing settings of an account."""
    url = f"{spec.name.upper()}_URL"
    yield from setting_checks.base_url(account.values, url, number=30)
    if account.name not in settings.EMAIL_PROVIDERS:
        return
    if not getattr(account.values, credential):
        message = f"EMAIL_PROVIDER names {account.name}, but {credential} is not set."
        yield setting_checks.error(message, None, 31)
    if not is_installed():
        message = f"EMAIL_PROVIDER names {account.name}, but django-anymail is not installed."
        hint = f"pip install --require-hashes -r {REQUIREMENTS}"
        yield setting_checks.error(message, hint, 32)


def check_server(
    spec: ProviderSpec, account: Account, *variables: str
) -> Iterator[checks.CheckMessage]:
    """Report what a server lacks: the secrets of webhooks."""
    missing = [name for name in variables if not getattr(account.values, name)]
    if account.name in settings.EMAIL_PROVIDERS and missing:
        yield checks.Warning(
            f"{spec.label}'s webhooks are refused: {' and '.join(missing)} not set.",
            hint="Without them, bounces are not noticed.",
            id="notifications.W010",
        )
