"""Checks of the settings."""

from collections.abc import Iterator

from django.conf import settings
from django.core import checks

from .. import setting_checks
from .variables import Settings


def check_settings() -> Iterator[checks.CheckMessage]:
    """Report invalid or incomplete settings of Twilio."""
    yield from setting_checks.base_url("TWILIO_URL", number=18)
    if not settings.TWILIO_ACCOUNT_SID:
        return
    if not Settings.of(settings).sender:
        message = "TWILIO_ACCOUNT_SID requires TWILIO_MESSAGING_SERVICE_SID or TWILIO_FROM."
        hint = "Prefer a messaging service: it chooses the sender by country."
        yield setting_checks.error(message, hint, 19)
    has_key = bool(settings.TWILIO_API_KEY_SID)
    is_half = has_key != bool(settings.TWILIO_API_KEY_SECRET)
    if is_half or not (has_key or settings.TWILIO_AUTH_TOKEN):
        message = "TWILIO_ACCOUNT_SID requires TWILIO_AUTH_TOKEN, or an API key with its secret."
        hint = "Set TWILIO_AUTH_TOKEN in any case: it verifies the receipts."
        yield setting_checks.error(message, hint, 20)


def check_server() -> Iterator[checks.CheckMessage]:
    """Report what a server lacks."""
    if settings.TWILIO_ACCOUNT_SID and not settings.TWILIO_AUTH_TOKEN:
        yield checks.Warning(
            "Twilio's webhooks are refused: TWILIO_AUTH_TOKEN is not set.",
            hint="Without them, no receipt arrives, and STOP has no effect here.",
            id="notifications.W006",
        )
