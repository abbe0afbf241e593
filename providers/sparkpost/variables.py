"""The variables of SparkPost."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    """An account with SparkPost."""

    heading = "SparkPost"
    see = "guides/email_providers.md#sparkpost"
    provider = "sparkpost"
    channel = "email"

    SPARKPOST_API_KEY: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "an API key for *Transmissions: Read/Write*",
        empty="no mail by SparkPost",
        is_asked=True,
        is_needed=True,
    )
    SPARKPOST_WEBHOOK_SECRET: str = declare(
        kinds.token(min_length=16),
        "",
        "password of the webhook's URL",
        empty="SparkPost's receipts are rejected",
        is_asked=True,
    )
    SPARKPOST_URL: str = declare(
        kinds.url(Plain.PRIVATE), "https://api.sparkpost.com", "address of the API"
    )
