"""Checks of the settings."""

from collections.abc import Iterator

from django.conf import settings
from django.core import checks

from .. import setting_checks
from ..spec import Account
from .variables import SANDBOX_KEY


def check_settings(account: Account) -> Iterator[checks.CheckMessage]:
    """Report invalid settings of SendGrid."""
    yield from setting_checks.base_url(account.values, "SENDGRID_URL", number=7, may_be_empty=True)


def check_server(account: Account) -> Iterator[checks.CheckMessage]:
    """Report what a server lacks."""
    if account.name not in settings.EMAIL_PROVIDERS:
        return
    if account.values.SENDGRID_API_KEY == SANDBOX_KEY:
        where = "to the sandbox" if account.values.SENDGRID_URL else "nowhere"
        yield checks.Warning(
            f"Mail goes {where}: SENDGRID_API_KEY is not set.",
            hint="Set it, or EMAIL_PROVIDER=smtp and SMTP_HOST.",
            id="notifications.W001",
        )
    if not account.values.SENDGRID_WEBHOOK_PUBLIC_KEY:
        yield checks.Warning(
            "SendGrid's webhooks are refused: SENDGRID_WEBHOOK_PUBLIC_KEY is not set.",
            hint="Without them, bounces are not noticed. Copy the key from SendGrid.",
            id="notifications.W002",
        )
