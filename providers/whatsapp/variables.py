"""The variables of WhatsApp."""

from notifyproject.settings import kinds
from notifyproject.settings.declarations import ProviderGroup, declare
from notifyproject.settings.safety import Plain

_META_ID = kinds.text(r"[0-9]+", "an ID of digits, as Meta shows it")


class Settings(ProviderGroup):
    """The account at Meta."""

    heading = "WhatsApp"
    see = "guides/channels.md#whatsapp"
    provider = "whatsapp"
    channel = "whatsapp"
    rate = 80

    WHATSAPP_TOKEN: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "access token of a system user",
        empty="no WhatsApp",
        is_asked=True,
    )
    WHATSAPP_PHONE_NUMBER_ID: str = declare(_META_ID, "", "ID of the sending number", is_asked=True)
    WHATSAPP_BUSINESS_ACCOUNT_ID: str = declare(
        _META_ID,
        "",
        "ID of the WhatsApp Business account, for `manage.py whatsapp_templates` and the status "
        "in the console",
        is_asked=True,
    )
    WHATSAPP_APP_SECRET: str = declare(
        # Meta's are 32 hex digits.
        kinds.token(min_length=32),
        "",
        "verifies Meta's webhooks",
        empty="WhatsApp's receipts are rejected",
        is_asked=True,
    )
    WHATSAPP_VERIFY_TOKEN: str = declare(
        kinds.token(min_length=16), "", "token that Meta sends when the webhook is set up"
    )
    WHATSAPP_URL: str = declare(
        kinds.url(Plain.PRIVATE), "https://graph.facebook.com", "address of the API"
    )
    WHATSAPP_API_VERSION: str = declare(
        kinds.text(r"v[1-9][0-9]?\.[0-9]", "a version such as v26.0"),
        "v26.0",
        "version of the Cloud API; Meta serves one for two years",
    )
