"""The variables of Brevo."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    """An account with Brevo."""

    heading = "Brevo"
    see = "guides/email_providers.md#brevo"
    provider = "brevo"
    channel = "email"

    BREVO_API_KEY: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "an API key, not an SMTP key",
        empty="no mail by Brevo",
        is_asked=True,
        is_needed=True,
    )
    BREVO_WEBHOOK_SECRET: str = declare(
        kinds.token(min_length=16),
        "",
        "password of the webhook's URL",
        empty="Brevo's receipts are rejected",
        is_asked=True,
    )
    BREVO_URL: str = declare(
        kinds.url(Plain.PRIVATE), "https://api.brevo.com", "address of the API"
    )
