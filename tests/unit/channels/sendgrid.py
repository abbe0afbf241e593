"""An account with SendGrid."""

from typing import Any

from notifications.channels.email_sendgrid import SendGrid

from ..building import NOON


def account(**fields: Any) -> SendGrid:
    """Return an account; ``fields`` replace its own."""
    default: dict[str, Any] = {
        "api_key": "SG.key",
        "base_url": "http://127.0.0.1:1",
        "sender": "Notifications <notifications@example.com>",
        "webhook_public_key": "",
        "clock": lambda: NOON,
    }
    return SendGrid(**(default | fields))
