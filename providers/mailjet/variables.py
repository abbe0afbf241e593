"""The variables of Mailjet."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    """An account with Mailjet."""

    heading = "Mailjet"
    see = "guides/email_providers.md#mailjet"
    provider = "mailjet"
    channel = "email"

    MAILJET_API_KEY: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "the API key",
        empty="no mail by Mailjet",
        is_asked=True,
        is_needed=True,
    )
    MAILJET_SECRET_KEY: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "the secret key that belongs to the API key",
        empty="no mail by Mailjet",
        is_asked=True,
        is_needed=True,
    )
    MAILJET_WEBHOOK_SECRET: str = declare(
        kinds.token(min_length=16),
        "",
        "password of the webhook's URL",
        empty="Mailjet's receipts are rejected",
        is_asked=True,
    )
    MAILJET_URL: str = declare(
        kinds.url(Plain.PRIVATE), "https://api.mailjet.com", "address of the API"
    )
