"""Subscriptions of browsers, without a push service."""

import json
import os
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from devices.push_keys import VapidKey
from devices.tokens import device_id
from domain.web_push import encode_base64url

ENDPOINT = "https://updates.push.services.mozilla.com/wpush/v2/gAAAAABn"


def subscription(
    endpoint: str = ENDPOINT, *, key: VapidKey | None = None, **fields: Any
) -> dict[str, Any]:
    """Return a new subscription as a browser gives it to a page."""
    own = ec.generate_private_key(ec.SECP256R1()).public_key()
    body: dict[str, Any] = {
        "endpoint": endpoint,
        "expirationTime": None,
        "keys": {
            "p256dh": encode_base64url(
                own.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
            ),
            "auth": encode_base64url(os.urandom(16)),
        },
        **fields,
    }
    return body if key is None else body | {"application_server_key": key.public_text}


def id_of(body: dict[str, Any]) -> str:
    return device_id(body["endpoint"])


def secrets_of(body: dict[str, Any]) -> list[str]:
    """Return what suffices to push to a browser."""
    path = body["endpoint"].rpartition("/")[2]
    return [path, body["keys"]["p256dh"], body["keys"]["auth"]]


def text(found: Any) -> str:
    return json.dumps(found, default=str)
