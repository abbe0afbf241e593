"""The variables of Resend."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    """An account with Resend."""

    heading = "Resend"
    see = "guides/email_providers.md#resend"
    provider = "resend"
    channel = "email"
    rate = 5

    RESEND_API_KEY: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "an API key that may send",
        empty="no mail by Resend",
        is_asked=True,
        is_needed=True,
    )
    RESEND_WEBHOOK_SECRET: str = declare(
        kinds.token(min_length=24, is_issued=True),
        "",
        "signing secret of the webhook, which begins with `whsec_`",
        empty="Resend's receipts are rejected",
        is_asked=True,
    )
    RESEND_URL: str = declare(
        kinds.url(Plain.PRIVATE), "https://api.resend.com", "address of the API"
    )
