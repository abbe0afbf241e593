"""The variables of Twilio."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain


class Settings(ProviderGroup):
    """The account at Twilio."""

    heading = "Twilio"
    see = "guides/channels.md#sms-by-twilio"
    provider = "twilio"
    channel = "sms"
    rate = 1

    TWILIO_ACCOUNT_SID: str = declare(
        kinds.text(r"AC[0-9A-Za-z]+", "an account SID, which begins with AC"),
        "",
        "SID of the account or subaccount",
        empty="no SMS by Twilio",
        is_asked=True,
        is_needed=True,
    )
    TWILIO_AUTH_TOKEN: str = declare(
        kinds.token(min_length=32),
        "",
        "verifies Twilio's webhooks, and sends without an API key",
        empty="Twilio's receipts are rejected",
        is_asked=True,
    )
    TWILIO_SECONDARY_AUTH_TOKEN: str = declare(
        kinds.token(min_length=32),
        "",
        "also verifies webhooks, while the auth token is rotated",
    )
    TWILIO_API_KEY_SID: str = declare(
        kinds.text(r"SK[0-9A-Za-z]+", "the SID of an API key, which begins with SK"),
        "",
        "SID of the API key that sends",
        empty="the auth token sends",
    )
    TWILIO_API_KEY_SECRET: str = declare(
        kinds.token(min_length=7, is_issued=True), "", "required with an API key; its secret"
    )
    TWILIO_MESSAGING_SERVICE_SID: str = declare(
        kinds.text(r"MG[0-9A-Za-z]+", "the SID of a messaging service, which begins with MG"),
        "",
        "SID of the messaging service that sends",
        empty="`TWILIO_FROM` sends",
        is_asked=True,
    )
    TWILIO_FROM: str = declare(
        kinds.text(r"\+[1-9][0-9]{6,14}|[A-Za-z0-9 ]{1,11}", "a number, or a sender ID"),
        "",
        "number or sender ID that sends without a messaging service",
        is_asked=True,
    )
    TWILIO_URL: str = declare(
        kinds.url(Plain.PRIVATE), "https://api.twilio.com", "address of the API"
    )

    @property
    def credentials(self) -> tuple[str, str]:
        """User and password of requests: those of the API key if there is one."""
        if self.TWILIO_API_KEY_SID:
            return self.TWILIO_API_KEY_SID, self.TWILIO_API_KEY_SECRET
        return self.TWILIO_ACCOUNT_SID, self.TWILIO_AUTH_TOKEN

    @property
    def sender(self) -> str:
        """The messaging service, or else the number or sender ID. Empty without either."""
        return self.TWILIO_MESSAGING_SERVICE_SID or self.TWILIO_FROM
