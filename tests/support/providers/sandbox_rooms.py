"""Requests to the sandbox's rooms, as clients of each provider make them."""

import base64
import hashlib
import hmac
import time
from collections.abc import Mapping
from typing import Any

import urllib3

from sandbox.providers.rooms.receiver import SECRET
from tests.support.clients.sandbox import Box, bearer
from tests.support.waiting import LIMIT

SIGNED_QUERY = "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=c-3iiB"
WEBHOOK_ID = "223704706495545344"
REFERENCE = {"X-Notify-Reference": "ref-1"}


def post_to_slack(box: Box, token: str = "posted-1", **body: Any) -> urllib3.BaseHTTPResponse:
    path = f"/services/T0EXAMPLE/B0EXAMPLE/{token}"
    return _post(box, path, body or {"text": "Hello"})


def post_as_bot(
    box: Box, channel: str = "posted-1", *, token: str | None = "xoxb-1", **body: Any
) -> urllib3.BaseHTTPResponse:
    message = {"channel": channel, **(body or {"text": "Hello"})}
    return _post(box, "/api/chat.postMessage", message, **bearer(token))


def card(*texts: str, **fields: Any) -> dict[str, Any]:
    blocks = [{"type": "TextBlock", "text": text, "wrap": True} for text in texts]
    content = {"type": "AdaptiveCard", "version": "1.4", "body": blocks, **fields}
    kind = "application/vnd.microsoft.card.adaptive"
    return {"type": "message", "attachments": [{"contentType": kind, "content": content}]}


def post_to_teams(
    box: Box, workflow: str = "posted-1", *, query: str = SIGNED_QUERY, **body: Any
) -> urllib3.BaseHTTPResponse:
    path = f"/workflows/{workflow}/triggers/manual/paths/invoke{query}"
    return _post(box, path, body or card("Hello"))


def post_to_discord(
    box: Box, token: str = "posted-1", *, query: str = "?wait=true", **body: Any
) -> urllib3.BaseHTTPResponse:
    path = f"/api/webhooks/{WEBHOOK_ID}/{token}{query}"
    return _post(box, path, body or {"content": "Hello"})


def signed(raw: bytes, *, secret: str = SECRET, at: float | None = None) -> dict[str, str]:
    timestamp = str(int(time.time() if at is None else at))
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"msg_1.{timestamp}.".encode() + raw, hashlib.sha256)
    return {
        "webhook-id": "msg_1",
        "webhook-timestamp": timestamp,
        "webhook-signature": f"v1,{base64.b64encode(digest).decode()}",
    }


def post_to_receiver(
    box: Box, raw: bytes, name: str = "received-1", **headers: str
) -> urllib3.BaseHTTPResponse:
    return box.call("POST", f"/receivers/{name}", raw, headers=headers, timeout=LIMIT)


def _post(box: Box, path: str, body: Mapping[str, Any], **headers: str) -> Any:
    return box.call("POST", path, body, headers={**REFERENCE, **headers}, timeout=LIMIT)
