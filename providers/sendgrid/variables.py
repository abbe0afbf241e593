"""The variables of SendGrid."""

from typing import Any

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain

SANDBOX_KEY = "SG.sandbox"
"""The sandbox accepts this fixed value; it's not secret."""


class Settings(ProviderGroup):
    """An account with SendGrid."""

    heading = "SendGrid"
    see = "guides/channels.md"
    provider = "sendgrid"
    channel = "email"
    is_default = True

    SENDGRID_API_KEY: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "SendGrid's key",
        empty="mail goes to the sandbox, if there is one",
        example="",
        is_asked=True,
        is_needed=True,
    )
    SENDGRID_WEBHOOK_PUBLIC_KEY: str = declare(
        kinds.text(
            r"[A-Za-z0-9+/]{80,}={0,2}",
            "the verification key as SendGrid shows it: base64 in one line",
        ),
        "",
        "verifies SendGrid's webhooks",
        empty="SendGrid's receipts are rejected",
        example="",
        is_asked=True,
    )
    SENDGRID_URL: str = declare(
        kinds.url(Plain.PRIVATE),
        "",
        "address of SendGrid's API",
        empty="SendGrid's global one with a key, the sandbox's without one",
    )

    def configure(self, environment: Any) -> dict[str, Any]:
        """Send to the sandbox without a key."""
        default_url = (
            "https://api.sendgrid.com" if self.SENDGRID_API_KEY else environment.SANDBOX_URL
        )
        return {
            **vars(self),
            "SENDGRID_API_KEY": self.SENDGRID_API_KEY or SANDBOX_KEY,
            "SENDGRID_URL": (self.SENDGRID_URL or default_url).rstrip("/"),
        }
