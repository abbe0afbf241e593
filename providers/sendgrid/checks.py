"""Checks of the settings."""

from collections.abc import Iterator

from django.conf import settings
from django.core import checks

from .. import setting_checks
from .variables import SANDBOX_KEY


def check_settings() -> Iterator[checks.CheckMessage]:
    """Report invalid settings of SendGrid."""
    yield from setting_checks.base_url("SENDGRID_URL", number=7, may_be_empty=True)


def check_server() -> Iterator[checks.CheckMessage]:
    """Report what a server lacks."""
    if "sendgrid" not in settings.EMAIL_PROVIDERS:
        return
    if settings.SENDGRID_API_KEY == SANDBOX_KEY:
        where = "to the sandbox" if settings.SENDGRID_URL else "nowhere"
        yield checks.Warning(
            f"Mail goes {where}: SENDGRID_API_KEY is not set.",
            hint="Set it, or EMAIL_PROVIDER=smtp and SMTP_HOST.",
            id="notifications.W001",
        )
    if not settings.SENDGRID_WEBHOOK_PUBLIC_KEY:
        yield checks.Warning(
            "SendGrid's webhooks are refused: SENDGRID_WEBHOOK_PUBLIC_KEY is not set.",
            hint="Without them, bounces are not noticed. Copy the key from SendGrid.",
            id="notifications.W002",
        )
