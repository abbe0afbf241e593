"""Providers by name: their channels, and their names as staff and operators read them."""

from collections.abc import Mapping

from domain.channels import Channel

CHANNELS: Mapping[str, Channel] = {
    "sendgrid": Channel("email"),
    "smtp": Channel("email"),
    "fcm": Channel("push"),
    "whatsapp": Channel("whatsapp"),
    "inbox": Channel("in_app"),
}
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


def channel_of(name: str) -> Channel:
    """Return the channel of a provider, or of its sandbox. Raises LookupError."""
    return CHANNELS[name.removeprefix("sandbox-")]
