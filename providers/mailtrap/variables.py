"""The variables of Mailtrap."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    """An account with Mailtrap."""

    heading = "Mailtrap"
    see = "guides/email_providers.md#mailtrap"
    provider = "mailtrap"
    channel = "email"

    MAILTRAP_API_TOKEN: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "a token of the sending domain",
        empty="no mail by Mailtrap",
        is_asked=True,
        is_needed=True,
    )
    MAILTRAP_WEBHOOK_SECRET: str = declare(
        kinds.token(min_length=16),
        "",
        "password of the webhook's URL",
        empty="Mailtrap's receipts are rejected",
        is_asked=True,
    )
    MAILTRAP_URL: str = declare(
        kinds.url(Plain.PRIVATE), "https://send.api.mailtrap.io", "address of the API"
    )
