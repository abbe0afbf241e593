"""Checks of the settings."""

from collections.abc import Iterator

from django.core import checks

from .. import setting_checks
from ..spec import Account
from .variables import Settings


def check_settings(account: Account) -> Iterator[checks.CheckMessage]:
    """Report invalid or incomplete settings of Twilio."""
    values = account.values
    yield from setting_checks.base_url(values, "TWILIO_URL", number=18)
    if not values.TWILIO_ACCOUNT_SID:
        return
    if not Settings.of(values).sender:
        message = "TWILIO_ACCOUNT_SID requires TWILIO_MESSAGING_SERVICE_SID or TWILIO_FROM."
        hint = "Prefer a messaging service: it chooses the sender by country."
        yield setting_checks.error(message, hint, 19)
    has_key = bool(values.TWILIO_API_KEY_SID)
    is_half = has_key != bool(values.TWILIO_API_KEY_SECRET)
    if is_half or not (has_key or values.TWILIO_AUTH_TOKEN):
        message = "TWILIO_ACCOUNT_SID requires TWILIO_AUTH_TOKEN, or an API key with its secret."
        hint = "Set TWILIO_AUTH_TOKEN in any case: it verifies the receipts."
        yield setting_checks.error(message, hint, 20)


def check_server(account: Account) -> Iterator[checks.CheckMessage]:
    """Report what a server lacks."""
    values = account.values
    if values.TWILIO_ACCOUNT_SID and not values.TWILIO_AUTH_TOKEN:
        yield checks.Warning(
            "Twilio's webhooks are refused: TWILIO_AUTH_TOKEN is not set.",
            hint="Without them, no receipt arrives, and STOP has no effect here.",
            id="notifications.W006",
        )
