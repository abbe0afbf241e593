"""Twilio accounts in the sandbox, and webhooks."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from domain.errors import ProviderError
from domain.time import utc_now
from notifyproject.platform.event_loop import run
from providers.contract import Message, Receipt, SendRequest, SendResult, WebhookResult
from providers.twilio.provider import Twilio
from providers.twilio.webhooks import SIGNATURE_HEADER
from sandbox.assembly import Sandbox
from sandbox.providers.twilio.outcomes import magic_suffix
from tests.support.clients.sandbox import Post, Receiver
from tests.support.factories.notifications import FIXED_NOON, outbound
from tests.support.fakes import socket_server
from tests.support.providers.webhook_requests import webhook_request
from tests.support.waiting import LIMIT, until

PHONE = "+447700900999"
"""No magic number."""
REFERENCE = f"{'a' * 24}.sms.1"
SID = f"SM{'0' * 32}"
SERVICE = f"MG{'0' * 31}1"
TOKENS = ("a-primary-auth-token", "a-secondary-auth-token")
CALLBACK = "https://notify.example.com/webhooks/twilio"


def account(**fields: Any) -> Twilio:
    """Return a provider whose API is unreachable."""
    default: dict[str, Any] = {
        "account_sid": f"AC{'0' * 32}",
        "user": f"SK{'0' * 32}",
        "password": "the-api-secret",
        "sender": SERVICE,
        "base_url": "http://127.0.0.1:1",
        "callback_url": CALLBACK,
        "auth_tokens": TOKENS,
        "clock": lambda: FIXED_NOON,
    }
    return Twilio(**(default | fields))


@dataclass(frozen=True, kw_only=True)
class TwilioAccount:
    """An account in the sandbox, with a test's reference."""

    sandbox: Sandbox
    receiver: Receiver
    reference: str = ""

    def account(self, **fields: Any) -> Twilio:
        found = self.sandbox.twilio
        default: dict[str, Any] = {
            "account_sid": found.account_sid,
            "user": found.api_key,
            "password": found.api_secret,
            "sender": found.messaging_service_sid,
            "base_url": self.sandbox.url,
            "callback_url": self.receiver.url,
            "auth_tokens": (found.auth_token,),
            "clock": utc_now,
        }
        return account(**(default | fields))

    def send(
        self, outcome: str = "", *, timeout: float = LIMIT, **fields: Any
    ) -> SendResult | ProviderError:
        """Send a message with this outcome. Return the result or error."""
        own = {name: fields.pop(name) for name in list(fields) if name in Twilio.__annotations__}
        message = sms(reference=self.reference, **fields)
        if outcome:
            message = replace(message, recipient=f"+447700{magic_suffix(outcome)}")
        try:
            return run(self.account(**own).send(message, timeout=timeout))
        except ProviderError as error:
            return error

    def receipts(self, count: int) -> list[Receipt]:
        """Wait for exactly this many verified receipts."""
        until(lambda: len(self._receipts()) >= count)
        assert len(self._receipts()) == count
        return self._receipts()

    def parsed(self, post: Post) -> WebhookResult:
        headers = {name.lower(): value for name, value in post.headers.items()}
        url = self.receiver.url.removesuffix("/hook") + post.path
        return self.account().parse_webhook(webhook_request(post.raw, headers, url=url))

    def _receipts(self) -> list[Receipt]:
        found = [
            receipt for post in list(self.receiver.posts) for receipt in self.parsed(post).receipts
        ]
        return [receipt for receipt in found if receipt.reference == self.reference]


def sms(text: str = "Your code is 123456.", **fields: Any) -> SendRequest:
    default: dict[str, Any] = {
        "reference": REFERENCE,
        "recipient": PHONE,
        "message": Message(subject=None, text=text, units=1),
    }
    return outbound(**(default | fields))


def created(**message: Any) -> bytes:
    """Return the response to a new message."""
    body = {
        "sid": SID,
        "status": "accepted",
        "num_segments": "0",
        "error_code": None,
        "price": None,
    }
    return answer(body | message, 201)


def refused(code: Any, *, status: int = 400, headers: tuple[str, ...] = ()) -> bytes:
    body = {"code": code, "message": f"{PHONE} is none", "more_info": "https://x", "status": status}
    return answer(body, status, *headers)


def answer(body: Any, status: int, *headers: str) -> bytes:
    return socket_server.response(status, json.dumps(body).encode(), *headers)


def attempt(
    message: SendRequest, *answers: bytes, **fields: Any
) -> tuple[Any, list[dict[str, str]]]:
    """Send a message to a server with these answers. Return the outcome and the parameters."""
    got: list[dict[str, str]] = []
    left = iter(answers)

    def handle(connection: Any) -> None:
        while request := socket_server.read_request(connection):
            got.append(dict(parse_qsl(request.partition(b"\r\n\r\n")[2].decode())))
            connection.sendall(next(left))

    with socket_server.serving(handle) as server:
        provider = account(**{"base_url": server.url, **fields})
        try:
            return run(provider.send(message, timeout=LIMIT)), got
        except ProviderError as error:
            return error, got


def callback(status: str = "delivered", **fields: Any) -> dict[str, str]:
    """Return the parameters of a status callback. The value ... leaves one out."""
    default = {
        "AccountSid": f"AC{'0' * 32}",
        "ApiVersion": "2010-04-01",
        "From": "+15005550006",
        "MessageSid": SID,
        "MessageStatus": status,
        "SmsSid": SID,
        "SmsStatus": status,
        "To": PHONE,
    }
    return {name: value for name, value in (default | fields).items() if value is not ...}


def written(text: str = "Hello", **fields: Any) -> dict[str, str]:
    """Return the parameters of an inbound message. The value ... leaves one out."""
    default = {
        "AccountSid": f"AC{'0' * 32}",
        "Body": text,
        "From": PHONE,
        "FromCity": "",
        "MessageSid": f"SM{'1' * 32}",
        "NumMedia": "0",
        "SmsStatus": "received",
        "To": "+15005550006",
    }
    return {name: value for name, value in (default | fields).items() if value is not ...}


def sign(raw: bytes, *, url: str, token: str = TOKENS[0]) -> dict[str, str]:
    """Return the headers of a webhook, with a signature that is computed independently."""
    pairs = sorted(parse_qsl(raw.decode(), keep_blank_values=True))
    text = url + "".join(f"{name}{value}" for name, value in pairs)
    digest = hmac.new(token.encode(), text.encode(), hashlib.sha1).digest()
    return {
        "content-type": "application/x-www-form-urlencoded",
        SIGNATURE_HEADER: base64.b64encode(digest).decode(),
    }


def parse(
    parameters: Mapping[str, str], *, reference: str | None = REFERENCE, **fields: Any
) -> WebhookResult:
    """Sign and parse a webhook."""
    raw = urlencode(parameters).encode()
    url = CALLBACK if reference is None else f"{CALLBACK}?ref={reference}"
    return account(**fields).parse_webhook(webhook_request(raw, sign(raw, url=url), url=url))
