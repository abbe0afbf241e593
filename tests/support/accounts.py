"""Accounts of providers that a test declares, as the environment does."""

from typing import Any

from notifyproject.settings.base import configure
from notifyproject.settings.environment import read

FOLLOW = ("PROVIDER_ACCOUNTS", "EMAIL_PROVIDERS", "SMS_PROVIDERS", "PROVIDER_RATES")
"""What the variables of accounts, and of their order and rates, decide."""


def declare(settings: Any, **variables: str) -> None:
    """Configure the accounts of these variables, and no others."""
    found = configure(read(variables))
    for name in FOLLOW:
        setattr(settings, name, found[name])
