"""The variables of Mailgun."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    """An account with Mailgun."""

    heading = "Mailgun"
    see = "guides/email_providers.md#mailgun"
    provider = "mailgun"
    channel = "email"

    MAILGUN_API_KEY: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "a sending key of the domain",
        empty="no mail by Mailgun",
        is_asked=True,
        is_needed=True,
    )
    MAILGUN_DOMAIN: str = declare(
        kinds.text(r"[A-Za-z0-9.-]+", "a domain"),
        "",
        "domain at Mailgun that sends",
        empty="that of `EMAIL_FROM`",
        is_asked=True,
    )
    MAILGUN_SIGNING_KEY: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "signing key of the webhooks",
        empty="Mailgun's receipts are rejected",
        is_asked=True,
    )
    MAILGUN_WEBHOOK_SECRET: str = declare(
        kinds.token(min_length=16),
        "",
        "password of the webhook's URL, since the signature doesn't cover the event",
        empty="Mailgun's receipts are rejected",
        is_asked=True,
    )
    MAILGUN_URL: str = declare(
        kinds.url(Plain.PRIVATE),
        "https://api.mailgun.net",
        "address of the API; in the EU `https://api.eu.mailgun.net`",
    )
