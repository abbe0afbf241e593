"""Checks of the settings, and what the wizard completes."""

import re
from collections.abc import Iterator

from django.core import checks

from .. import setting_checks
from ..spec import Account

_NUMBER_ID = re.compile(r"\d{5,20}", re.ASCII)


def check_settings(account: Account) -> Iterator[checks.CheckMessage]:
    """Report invalid settings of WhatsApp."""
    values = account.values
    yield from setting_checks.base_url(values, "WHATSAPP_URL", number=9)
    names = ("WHATSAPP_TOKEN", "WHATSAPP_APP_SECRET", "WHATSAPP_VERIFY_TOKEN")
    for number, name in enumerate(names, start=14):
        if (secret := getattr(values, name)) and not setting_checks.is_word(secret):
            hint = "It is one ASCII word: check for a copied space or line break."
            yield setting_checks.error(f"{name} is not a value that Meta issues.", hint, number)
    number_id = values.WHATSAPP_PHONE_NUMBER_ID
    if (values.WHATSAPP_TOKEN or number_id) and not _NUMBER_ID.fullmatch(number_id):
        problem = f"is not an ID: {number_id!r}" if number_id else "is required by WHATSAPP_TOKEN"
        hint = "Use the ID of the sending number, digits only, not the number itself."
        yield setting_checks.error(f"WHATSAPP_PHONE_NUMBER_ID {problem}.", hint, 17)


def check_server(account: Account) -> Iterator[checks.CheckMessage]:
    """Report what a server lacks."""
    values = account.values
    if values.WHATSAPP_TOKEN and not values.WHATSAPP_APP_SECRET:
        yield checks.Warning(
            "WhatsApp's webhooks are refused: WHATSAPP_APP_SECRET is not set.",
            hint="Without them, no service window opens and no receipt arrives.",
            id="notifications.W004",
        )
