"""A client of the sandbox's WhatsApp, and its webhooks."""

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Any

import urllib3

from sandbox.credentials import MetaAccount
from tests.support.clients.sandbox import Box, Post, Receiver, bearer
from tests.support.waiting import LIMIT, until

ADA = "+447700900999"
"""No magic number."""
ORDER = {
    "name": "order_shipped",
    "language": "en",
    "category": "UTILITY",
    "components": [
        {"type": "HEADER", "format": "TEXT", "text": "Order {{1}}"},
        {
            "type": "BODY",
            "text": "Hello {{1}}, your order {{2}} has shipped.",
            "example": {"body_text": [["Ada", "1001"]]},
        },
        {"type": "FOOTER", "text": "The Shop"},
        {
            "type": "BUTTONS",
            "buttons": [
                {"type": "URL", "text": "Track it", "url": "https://example.com/{{1}}"},
                {"type": "QUICK_REPLY", "text": "Thanks"},
            ],
        },
    ],
}


@dataclass(frozen=True, kw_only=True)
class WhatsAppClient:
    box: Box

    @property
    def account(self) -> MetaAccount:
        return self.box.sandbox.whatsapp

    def graph(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = "EAAsandbox",
        version: str = "v23.0",
        timeout: float = LIMIT,
        **headers: str,
    ) -> urllib3.BaseHTTPResponse:
        return self.box.call(
            method, f"/{version}/{path}", body, headers={**bearer(key), **headers}, timeout=timeout
        )

    def post(self, body: Any, **options: Any) -> urllib3.BaseHTTPResponse:
        return self.graph("POST", f"{self.account.phone_number_id}/messages", body, **options)

    def send(self, to: str = ADA, **options: Any) -> urllib3.BaseHTTPResponse:
        return self.post(text(to), **options)

    def add_template(self, template: Any = ORDER) -> urllib3.BaseHTTPResponse:
        return self.graph("POST", f"{self.account.business_account_id}/message_templates", template)


def text(to: str = ADA, *, reference: str = "ref-1", **changes: Any) -> dict[str, Any]:
    return message("text", {"body": "Hello Ada"}, to=to, reference=reference, **changes)


def template(to: str = ADA, *, reference: str = "ref-1", **changes: Any) -> dict[str, Any]:
    content = {
        "name": "order_shipped",
        "language": {"code": "en"},
        "components": [
            {"type": "header", "parameters": [words("1001")]},
            {"type": "body", "parameters": [words("Ada"), words("1001")]},
            {"type": "button", "sub_type": "url", "index": "0", "parameters": [words("1001")]},
        ],
        **changes,
    }
    return message("template", content, to=to, reference=reference)


def message(
    kind: str, content: Any, *, to: str = ADA, reference: str = "ref-1", **changes: Any
) -> dict[str, Any]:
    """Return the body of a message. The value None leaves a field out."""
    body = {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": to,
        "type": kind,
        kind: content,
        "biz_opaque_callback_data": reference,
        **changes,
    }
    return {name: value for name, value in body.items() if value is not None}


def words(text: Any) -> dict[str, Any]:
    return {"type": "text", "text": text}


def error(answer: urllib3.BaseHTTPResponse) -> dict[str, Any]:
    found = answer.json()["error"]
    assert found["fbtrace_id"]
    assert set(found) <= {"message", "type", "code", "error_subcode", "error_data", "fbtrace_id"}
    return found


def details(answer: urllib3.BaseHTTPResponse) -> str:
    data = error(answer)["error_data"]
    assert data["messaging_product"] == "whatsapp"
    return data["details"]


def values(post: Post) -> list[dict[str, Any]]:
    """Return the values of a webhook's changes."""
    body = json.loads(post.raw)
    assert body["object"] == "whatsapp_business_account"
    changes = [change for entry in body["entry"] for change in entry["changes"]]
    assert {change["field"] for change in changes} == {"messages"}
    return [change["value"] for change in changes]


def reports(receiver: Receiver, reference: str = "ref-1") -> list[dict[str, Any]]:
    """Return the statuses of a message in order."""
    return [
        status
        for post in receiver.posts
        for value in values(post)
        for status in value.get("statuses", ())
        if status.get("biz_opaque_callback_data") == reference
    ]


def wait_for(receiver: Receiver, *kinds: str, reference: str = "ref-1") -> list[dict[str, Any]]:
    """Wait until the statuses of a message are exactly these."""
    until(lambda: len(reports(receiver, reference)) >= len(kinds))
    found = reports(receiver, reference)
    assert [status["status"] for status in found] == list(kinds)
    return found


def is_signed(post: Post, secret: str) -> bool:
    """Return whether the signature is valid, computed independently."""
    expected = hmac.new(secret.encode(), post.raw, hashlib.sha256).hexdigest()
    return post.headers["X-Hub-Signature-256"] == f"sha256={expected}"
