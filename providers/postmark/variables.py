"""The variables of Postmark."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    """A server with Postmark."""

    heading = "Postmark"
    see = "guides/email_providers.md#postmark"
    provider = "postmark"
    channel = "email"

    POSTMARK_SERVER_TOKEN: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "the server's API token",
        empty="no mail by Postmark",
        is_asked=True,
        is_needed=True,
    )
    POSTMARK_MESSAGE_STREAM: str = declare(
        kinds.text(r"[a-z0-9-]{1,30}", "the ID of a message stream"),
        "outbound",
        "ID of the message stream that sends",
    )
    POSTMARK_WEBHOOK_SECRET: str = declare(
        kinds.token(min_length=16),
        "",
        "password of the webhook's URL",
        empty="Postmark's receipts are rejected",
        is_asked=True,
    )
    POSTMARK_URL: str = declare(
        kinds.url(Plain.PRIVATE), "https://api.postmarkapp.com", "address of the API"
    )
