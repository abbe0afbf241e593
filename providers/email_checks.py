"""Checks of the settings of providers of email with an API."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.core import checks

from . import email_library, setting_checks
from .spec import Account


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailChecks:
    """What ``checks.py`` is for other providers."""

    label: str
    url: str
    """The variable with the address of the API."""
    credentials: Sequence[str]
    """The variables without which it can't send."""
    secrets: Sequence[str]
    """The variables with what shows whose a webhook is."""

    def check_settings(self, account: Account) -> Iterator[checks.CheckMessage]:
        """Report invalid or missing settings of an account."""
        yield from setting_checks.base_url(account.values, self.url, number=30)
        if account.name not in settings.EMAIL_PROVIDERS:
            return
        if missing := _missing(account, self.credentials):
            message = f"EMAIL_PROVIDER names {account.name}, but {missing} is not set."
            yield setting_checks.error(message, None, 31)
        if not email_library.is_installed():
            message = f"EMAIL_PROVIDER names {account.name}, but django-anymail is not installed."
            hint = f"pip install --require-hashes -r {email_library.REQUIREMENTS}"
            yield setting_checks.error(message, hint, 32)

    def check_server(self, account: Account) -> Iterator[checks.CheckMessage]:
        """Report what a server lacks: the secrets of webhooks."""
        missing = _missing(account, self.secrets)
        if account.name in settings.EMAIL_PROVIDERS and missing:
            yield checks.Warning(
                f"{self.label}'s webhooks are refused: {missing} not set.",
                hint="Without them, bounces are not noticed.",
                id="notifications.W010",
            )


def _missing(account: Account, names: Sequence[str]) -> str:
    return " and ".join(name for name in names if not getattr(account.values, name))
