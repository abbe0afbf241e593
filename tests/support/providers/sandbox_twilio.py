"""A client of the sandbox's Twilio, and its webhooks."""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import urllib3

from sandbox.credentials import TwilioAccount
from tests.support.clients.sandbox import Box, Post, Receiver
from tests.support.waiting import LIMIT, until

ADA = "+447700900999"
"""No magic number."""


@dataclass(frozen=True, kw_only=True)
class TwilioClient:
    box: Box
    callback: str = ""
    """The receiver of status callbacks."""

    @property
    def account(self) -> TwilioAccount:
        return self.box.sandbox.twilio

    def call(
        self,
        method: str,
        body: bytes,
        *,
        sid: str | None = None,
        user: str | None = None,
        password: str | None = None,
        content_type: str = "application/x-www-form-urlencoded",
        timeout: float = LIMIT,
        resource: str = "Messages.json",
        **headers: str,
    ) -> urllib3.BaseHTTPResponse:
        sid = self.account.account_sid if sid is None else sid
        user = sid if user is None else user
        password = self.account.auth_token if password is None else password
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        return self.box.call(
            method,
            f"/2010-04-01/Accounts/{sid}/{resource}",
            body,
            headers={"Content-Type": content_type, "Authorization": f"Basic {token}", **headers},
            timeout=timeout,
        )

    def post(self, form: dict[str, str], **options: Any) -> urllib3.BaseHTTPResponse:
        return self.call("POST", urlencode(form).encode(), **options)

    def send(self, to: str = ADA, **options: Any) -> urllib3.BaseHTTPResponse:
        return self.post(self.form(to), **options)

    def form(
        self, to: str = ADA, *, reference: str = "ref-1", **changes: str | None
    ) -> dict[str, str]:
        """Return the parameters of a message. The value None leaves one out."""
        found: dict[str, str | None] = {
            "To": to,
            "MessagingServiceSid": self.account.messaging_service_sid,
            "Body": "Your code is 123456.",
            "StatusCallback": f"{self.callback}?ref={reference}" if self.callback else None,
            **changes,
        }
        return {name: value for name, value in found.items() if value is not None}

    def write(self, text: str, *, sender: str = ADA) -> None:
        """Send an inbound message."""
        self.box.control("POST", "/twilio/written", {"from": sender, "text": text})


def fields(post: Post) -> dict[str, str]:
    return dict(parse_qsl(post.raw.decode(), keep_blank_values=True, strict_parsing=True))


def callbacks(receiver: Receiver, reference: str = "ref-1") -> list[dict[str, str]]:
    """Return the status callbacks of a message in order."""
    return [
        fields(post)
        for post in receiver.posts
        if parse_qs(urlsplit(post.path).query).get("ref") == [reference]
    ]


def wait_for(receiver: Receiver, *statuses: str, reference: str = "ref-1") -> list[dict[str, str]]:
    """Wait until the statuses of a message are exactly these."""
    until(lambda: len(callbacks(receiver, reference)) >= len(statuses))
    found = callbacks(receiver, reference)
    assert [callback["MessageStatus"] for callback in found] == list(statuses)
    return found


def signature(url: str, raw: bytes, *, token: str) -> str:
    """Return a webhook's signature, computed independently."""
    pairs = sorted(parse_qsl(raw.decode(), keep_blank_values=True))
    text = url + "".join(f"{name}{value}" for name, value in pairs)
    return base64.b64encode(hmac.new(token.encode(), text.encode(), hashlib.sha1).digest()).decode()
