"""A check of the account without a message."""

import secrets
from http import HTTPStatus
from urllib.parse import quote

from notifyproject.settings.variables import Environment

from ..setup_check import TIMEOUT, RejectedError, call
from .variables import Settings


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Check that Meta takes the token, by the templates of the account. Raises CheckError."""
    values = Settings.of(environment)
    url = (
        f"{values.WHATSAPP_URL.rstrip('/')}/{values.WHATSAPP_API_VERSION}/"
        f"{quote(values.WHATSAPP_BUSINESS_ACCOUNT_ID)}/message_templates?limit=1"
    )
    token = f"Bearer {values.WHATSAPP_TOKEN}"
    status = call("WhatsApp", url, None, authorization=token, timeout=timeout)
    if status != HTTPStatus.OK:
        raise RejectedError(f"WhatsApp responded with {status}: check token and account ID.")


def complete(values: dict[str, str]) -> None:
    """Add the token that Meta sends when the webhook is set up."""
    if values.get("WHATSAPP_TOKEN"):
        known = values.get("WHATSAPP_VERIFY_TOKEN")
        values["WHATSAPP_VERIFY_TOKEN"] = known or secrets.token_hex(16)
