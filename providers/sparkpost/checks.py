"""Checks of the settings."""

from collections.abc import Iterator

from django.core.checks import CheckMessage

from .. import email_checks
from ..spec import Account
from . import PROVIDER


def check_settings(account: Account) -> Iterator[CheckMessage]:
    """Report invalid or missing settings of SparkPost."""
    return email_checks.check_settings(PROVIDER, account, credential="SPARKPOST_API_KEY")


def check_server(account: Account) -> Iterator[CheckMessage]:
    """Report what a server lacks."""
    return email_checks.check_server(PROVIDER, account, "SPARKPOST_WEBHOOK_SECRET")
