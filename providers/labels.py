"""Names of providers as staff and operators read them."""

from collections.abc import Mapping

PROVIDERS: Mapping[str, str] = {
    "sendgrid": "SendGrid",
    "smtp": "Mail server",
    "fcm": "FCM",
    "whatsapp": "WhatsApp",
    "inbox": "Inbox",
    "sandbox-sendgrid": "Sandbox (mail)",
    "sandbox-fcm": "Sandbox (push)",
    "sandbox-whatsapp": "Sandbox (WhatsApp)",
}


def provider_name(name: str) -> str:
    """Return a provider's label. An unknown name is returned unchanged."""
    return PROVIDERS.get(name, name)
