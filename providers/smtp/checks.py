"""Checks of the settings."""

from collections.abc import Iterator

from django.core import checks

from ..spec import Account
from .variables import password_problem


def check_server(account: Account) -> Iterator[checks.CheckMessage]:
    """Report a password that is sent to the mail server without TLS."""
    values = account.values
    problem = password_problem(
        values.EMAIL_HOST,
        values.EMAIL_HOST_PASSWORD,
        is_encrypted=values.EMAIL_USE_TLS or values.EMAIL_USE_SSL,
    )
    if problem is not None:
        hint = "Use starttls with port 587, or tls with port 465."
        yield checks.Error(f"{problem}.", hint=hint, id="notifyproject.E009")
