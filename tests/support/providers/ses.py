"""SES accounts, recorded answers, and events as SES publishes them."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email import message_from_bytes
from email.message import Message as Mime
from typing import Any

from domain.errors import ProviderError
from domain.time import utc_now
from notifyproject.platform.event_loop import run
from providers import aws_sns
from providers.aws_signing import Credentials
from providers.contract import Receipt, SendResult, WebhookResult
from providers.ses.provider import SES
from sandbox.assembly import Sandbox
from tests.support.clients.sandbox import Post, Receiver
from tests.support.factories.notifications import FIXED_NOON, outbound
from tests.support.fakes import socket_server
from tests.support.providers import aws
from tests.support.providers.webhook_requests import webhook_request
from tests.support.waiting import LIMIT, until

REFERENCE = f"{'a' * 24}.email.1"
MESSAGE_ID = "0102018f-2b1c-4d5e-8f90-000000000000-000000"
TIME = "2026-11-21T11:59:30.123Z"


def account(**fields: Any) -> SES:
    """Return a provider whose API is unreachable."""
    default: dict[str, Any] = {
        "credentials": aws.KEYS,
        "region": aws.REGION,
        "base_url": "http://127.0.0.1:1",
        "sender": "The Shöp <shop@example.com>",
        "receiver": aws.receiver(),
        "clock": lambda: FIXED_NOON,
        "configuration_set": "notify",
    }
    return SES(**(default | fields))


def answer(status: int, body: Any, *headers: str) -> bytes:
    return socket_server.response(status, json.dumps(body).encode(), *headers)


def refused(
    name: str, message: str = "", *, status: int = 400, headers: tuple[str, ...] = ()
) -> bytes:
    """Return an error response in the form of the API."""
    return answer(status, {"message": message}, f"x-amzn-ErrorType: {name}", *headers)


def attempt(*answers: bytes, **fields: Any) -> tuple[Any, list[bytes]]:
    """Send a mail to a server with these answers. Return the outcome and the requests."""
    got: list[bytes] = []
    left = iter(answers)
    message = {name: fields.pop(name) for name in list(fields) if name not in SES.__annotations__}

    def handle(connection: Any) -> None:
        while request := socket_server.read_request(connection):
            got.append(request)
            connection.sendall(next(left))

    with socket_server.serving(handle) as server:
        provider = account(**{"base_url": server.url, **fields})
        try:
            return run(provider.send(outbound(**message), timeout=LIMIT)), got
        except ProviderError as error:
            return error, got


def sent_body(request: bytes) -> Any:
    return json.loads(request.partition(b"\r\n\r\n")[2])


def sent_mail(request: bytes) -> Mime:
    return message_from_bytes(base64.b64decode(sent_body(request)["Content"]["Raw"]["Data"]))


def event(kind: str = "Delivery", /, **sections: Any) -> dict[str, Any]:
    """Return an event. ``mail`` changes what is said of the mail, and None leaves a field out."""
    mail = {
        "timestamp": TIME,
        "source": "shop@example.com",
        "messageId": MESSAGE_ID,
        "destination": ["ada@example.com"],
        "headers": [
            {"name": "Subject", "value": "Ada's secret"},
            {"name": "X-Notify-Reference", "value": REFERENCE},
        ],
        "commonHeaders": {"subject": "Ada's secret", "to": ["Ada <ada@example.com>"]},
        "tags": {"ses:configuration-set": ["notify"], "reference": [REFERENCE.replace(".", "-")]},
        **sections.pop("mail", {}),
    }
    mail = {name: value for name, value in mail.items() if value is not None}
    return {"eventType": kind, "mail": mail, **sections}


def bounce(kind: str, subtype: str, reply: str | None = None, **recipient: Any) -> dict[str, Any]:
    """Return a bounce; without a reply it has no report of a mail server."""
    found = {"emailAddress": "ada@example.com", **recipient}
    if reply is not None:
        found |= {"action": "failed", "status": "5.0.0", "diagnosticCode": f"smtp; {reply}"}
    return event(
        "Bounce",
        bounce={
            "bounceType": kind,
            "bounceSubType": subtype,
            "bouncedRecipients": [found],
            "timestamp": "2026-11-21T11:59:59.000Z",
        },
    )


def parsed(message: Any, **fields: Any) -> WebhookResult:
    """Return the contents of a notification."""
    return account().parse_webhook(webhook_request(aws.envelope(message, **fields), aws.headers()))


def receipt_of(message: Mapping[str, Any]) -> Receipt:
    (found,) = parsed(message).receipts
    return found


@dataclass(frozen=True, kw_only=True)
class SesAccount:
    """An account in the sandbox, with a test's reference."""

    sandbox: Sandbox
    receiver: Receiver
    reference: str = ""

    def account(self, **fields: Any) -> SES:
        found = self.sandbox.aws
        credentials = Credentials(
            access_key_id=found.access_key_id, secret_access_key=found.secret_access_key
        )
        own = {name: fields.pop(name) for name in ("topics", "sns_url") if name in fields}
        default: dict[str, Any] = {
            "credentials": credentials,
            "region": found.region,
            "base_url": self.sandbox.url,
            "configuration_set": found.configuration_set,
            "clock": utc_now,
        }
        provider = account(**(default | fields))
        return replace(
            provider,
            receiver=aws_sns.Receiver(
                clock=utc_now,
                credentials=provider.credentials,
                topics=own.get("topics", frozenset({found.topic})),
                base_url=own.get("sns_url", f"{self.sandbox.url}/sns"),
            ),
        )

    def send(
        self, outcome: str = "ada", *, timeout: float = LIMIT, **fields: Any
    ) -> SendResult | ProviderError:
        """Send a mail with this outcome. Return the result or error."""
        own = {name: fields.pop(name) for name in list(fields) if name in SES.__annotations__}
        message = outbound(reference=self.reference, recipient=f"{outcome}@example.com", **fields)
        try:
            return run(self.account(**own).send(message, timeout=timeout))
        except ProviderError as error:
            return error

    def parsed(self, post: Post) -> WebhookResult:
        headers = {name.lower(): value for name, value in post.headers.items()}
        return self.account().parse_webhook(webhook_request(post.raw, headers))

    def posts(self, count: int) -> list[Post]:
        """Wait for exactly this many notifications about the reference."""
        until(lambda: len(self._posts()) >= count)
        assert len(self._posts()) == count
        return self._posts()

    def _posts(self) -> list[Post]:
        spelled = self.reference.encode()
        return [post for post in list(self.receiver.posts) if spelled in post.raw]
