"""Accounts of AWS SMS, recorded answers, and events as AWS publishes them."""

import json
from dataclasses import dataclass, replace
from typing import Any

from domain.errors import ProviderError
from domain.time import utc_now
from notifyproject.platform.event_loop import run
from providers import aws_sns
from providers.aws_signing import Credentials
from providers.aws_sms.provider import AwsSms
from providers.contract import Message, Receipt, SendRequest, SendResult, WebhookResult
from sandbox.assembly import Sandbox
from sandbox.providers.aws_sms.outcomes import magic_suffix
from tests.support.clients.sandbox import Post, Receiver
from tests.support.factories.notifications import FIXED_NOON, outbound
from tests.support.fakes import socket_server
from tests.support.providers import aws
from tests.support.providers.webhook_requests import webhook_request
from tests.support.waiting import LIMIT, until

PHONE = "+447700900999"
"""No magic number."""
REFERENCE = f"{'a' * 24}.sms.1"
MESSAGE_ID = "862a8790-60c0-4430-9b2b-658bd0000000"


def account(**fields: Any) -> AwsSms:
    """Return a provider whose API is unreachable."""
    default: dict[str, Any] = {
        "credentials": aws.KEYS,
        "region": aws.REGION,
        "base_url": "http://127.0.0.1:1",
        "receiver": aws.receiver(),
        "clock": lambda: FIXED_NOON,
        "sender": "pool-1",
        "configuration_set": "notify",
    }
    return AwsSms(**(default | fields))


def sms(text: str = "Your code is 123456.", **fields: Any) -> SendRequest:
    default: dict[str, Any] = {
        "reference": REFERENCE,
        "recipient": PHONE,
        "message": Message(subject=None, text=text, units=1),
    }
    return outbound(**(default | fields))


def answer(status: int, body: Any, *headers: str) -> bytes:
    return socket_server.response(status, json.dumps(body).encode(), *headers)


def refused(
    name: str, *, status: int = 400, headers: tuple[str, ...] = (), **members: Any
) -> bytes:
    """Return an error response in the form of the API."""
    body = {
        "__type": f"com.amazonaws.pinpointsmsvoicev2#{name}",
        "Message": f"{PHONE} is none",
        **members,
    }
    return answer(status, body, *headers)


def attempt(
    message: SendRequest, *answers: bytes, **fields: Any
) -> tuple[Any, list[tuple[str, Any]]]:
    """Send a message to a server with these answers.

    Return the outcome, and the head and the members of each request.
    """
    got: list[tuple[str, Any]] = []
    left = iter(answers)

    def handle(connection: Any) -> None:
        while request := socket_server.read_request(connection):
            head, _, body = request.partition(b"\r\n\r\n")
            got.append((head.decode(), json.loads(body)))
            connection.sendall(next(left))

    with socket_server.serving(handle) as server:
        provider = account(**{"base_url": server.url, **fields})
        try:
            return run(provider.send(message, timeout=LIMIT)), got
        except ProviderError as error:
            return error, got


def event(kind: str = "TEXT_DELIVERED", /, **changes: Any) -> dict[str, Any]:
    """Return an event. The value ... leaves a member out."""
    found = {
        "eventType": kind,
        "eventVersion": "1.0",
        "eventTimestamp": 1_795_262_399_250,
        "isFinal": True,
        "originationPhoneNumber": "+15005550007",
        "destinationPhoneNumber": PHONE,
        "isInternationalSend": False,
        "messageId": MESSAGE_ID,
        "messageStatus": kind.removeprefix("TEXT_"),
        "messageStatusDescription": "Message has been delivered",
        "context": {"ref": REFERENCE},
        "totalMessageParts": 2,
        "totalMessagePrice": 0.09582,
        "totalCarrierFee": 0.006,
    }
    return {name: value for name, value in (found | changes).items() if value is not ...}


def written(text: str = "Hello", **changes: Any) -> dict[str, Any]:
    """Return the message of a person."""
    return {
        "originationNumber": PHONE,
        "destinationNumber": "+15005550007",
        "messageKeyword": "KEYWORD_1",
        "messageBody": text,
        "inboundMessageId": "cae173d2-66b9-564c-8309-21f858e9fb84",
        "previousPublishedMessageId": "wJalrXUtnFEMI",
        **changes,
    }


def parsed(message: Any, **fields: Any) -> WebhookResult:
    """Return the contents of a notification."""
    return account().parse_webhook(webhook_request(aws.envelope(message, **fields), aws.headers()))


def receipt_of(message: Any) -> Receipt:
    (found,) = parsed(message).receipts
    return found


@dataclass(frozen=True, kw_only=True)
class AwsSmsAccount:
    """An account in the sandbox, with a test's reference."""

    sandbox: Sandbox
    receiver: Receiver
    reference: str = ""

    def account(self, **fields: Any) -> AwsSms:
        found = self.sandbox.aws
        default: dict[str, Any] = {
            "credentials": Credentials(
                access_key_id=found.access_key_id, secret_access_key=found.secret_access_key
            ),
            "region": found.region,
            "base_url": f"{self.sandbox.url}/sms-voice",
            "sender": found.pool,
            "configuration_set": found.configuration_set,
            "clock": utc_now,
        }
        provider = account(**(default | fields))
        receiver = aws_sns.Receiver(
            clock=utc_now,
            credentials=provider.credentials,
            topics=frozenset({found.topic}),
            base_url=f"{self.sandbox.url}/sns",
        )
        return replace(provider, receiver=receiver)

    def send(
        self, outcome: str = "", *, timeout: float = LIMIT, **fields: Any
    ) -> SendResult | ProviderError:
        """Send a message with this outcome. Return the result or error."""
        own = {name: fields.pop(name) for name in list(fields) if name in AwsSms.__annotations__}
        message = sms(reference=self.reference, **fields)
        if outcome:
            message = replace(message, recipient=f"+447700{magic_suffix(outcome)}")
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
