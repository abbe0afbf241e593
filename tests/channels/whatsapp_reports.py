"""Webhooks of WhatsApp's, made by hand."""

import hashlib
import hmac
import json
from typing import Any

from notifications.channels.whatsapp_webhooks import SIGNATURE_HEADER

from ..unit.building import NOON
from .whatsapp_number import PHONE, PHONE_NUMBER_ID, REFERENCE

SECRET = "app-secret"
EPOCH = int(NOON.timestamp())


def status(kind: str = "delivered", **fields: Any) -> dict[str, Any]:
    """Return a report about Ada's message; a field that is ... is left out."""
    default = {
        "id": "wamid.1",
        "status": kind,
        "timestamp": str(EPOCH),
        "recipient_id": PHONE[1:],
        "biz_opaque_callback_data": REFERENCE,
        "conversation": {"id": "c-1", "origin": {"type": "utility"}},
        "pricing": {"billable": True, "category": "utility"},
    }
    return {name: value for name, value in (default | fields).items() if value is not ...}


def failed(code: Any = 131026, **fields: Any) -> dict[str, Any]:
    """Return the report that Ada's message did not reach her."""
    error = {"code": code, "title": "No", "href": "https://x"}
    return status("failed", **{"errors": [error], **fields})


def written(text: str = "Hello", **fields: Any) -> dict[str, Any]:
    """Return what Ada wrote; a field that is ... is left out."""
    default = {
        "from": PHONE[1:],
        "id": "wamid.in.1",
        "timestamp": str(EPOCH),
        "type": "text",
        "text": {"body": text},
    }
    return {name: value for name, value in (default | fields).items() if value is not ...}


def change(
    *statuses: Any, messages: Any = (), number: str = PHONE_NUMBER_ID, **fields: Any
) -> dict[str, Any]:
    """Return one change of an account."""
    value: dict[str, Any] = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550100000", "phone_number_id": number},
    }
    if statuses:
        value["statuses"] = list(statuses)
    if messages:
        value["contacts"] = [{"wa_id": PHONE[1:], "profile": {"name": "Ada Lovelace"}}]
        value["messages"] = list(messages)
    return {"field": "messages", "value": value, **fields}


def webhook(*changes: Any, **fields: Any) -> bytes:
    """Return the body of a webhook."""
    entry = {"id": "200000000000002", "changes": list(changes)}
    return json.dumps({"object": "whatsapp_business_account", "entry": [entry], **fields}).encode()


def signed(raw: bytes, *, secret: str = SECRET) -> dict[str, str]:
    """Return the header that Meta signs a body with."""
    signature = hmac.new(secret.encode(), raw, hashlib.sha256).hexdigest()
    return {SIGNATURE_HEADER: f"sha256={signature}"}
