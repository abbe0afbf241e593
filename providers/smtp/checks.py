"""Checks of the settings."""

from collections.abc import Iterator

from django.conf import settings
from django.core import checks

from .variables import password_problem


def check_server() -> Iterator[checks.CheckMessage]:
    """Report a password that is sent to the mail server without TLS."""
    problem = password_problem(
        settings.EMAIL_HOST,
        settings.EMAIL_HOST_PASSWORD,
        is_encrypted=settings.EMAIL_USE_TLS or settings.EMAIL_USE_SSL,
    )
    if problem is not None:
        hint = "Use starttls with port 587, or tls with port 465."
        yield checks.Error(f"{problem}.", hint=hint, id="notifyproject.E009")
