"""Topics of SNS: envelopes with signatures, and subscriptions that the receiver must confirm."""

import asyncio
import base64
import json
import secrets
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from ... import credentials
from ...credentials import AwsAccount

GENUINE, FORGED, OTHER_TOPIC = "genuine", "forged", "other-topic"
SUBSCRIPTION = "SubscriptionConfirmation"
TOKENS = 1_000
_HASHES: Mapping[str, hashes.HashAlgorithm] = {"1": hashes.SHA1(), "2": hashes.SHA256()}


@dataclass(kw_only=True, eq=False)
class Topics:
    """The topic of an account, and who confirmed a subscription to it."""

    account: AwsAccount
    data: Path
    """The folder with the certificate, which is made at the first envelope."""
    tokens: dict[str, str] = field(default_factory=dict)
    """The receivers of subscriptions that aren't confirmed, by token."""
    subscribed: set[str] = field(default_factory=set)
    """The URLs of receivers that have confirmed."""

    @cached_property
    def _identity(self) -> credentials.SigningIdentity:
        return credentials.ensure_sns_identity(self.data)

    @cached_property
    def certificate(self) -> bytes:
        """The certificate, as PEM."""
        return self._identity.certificate

    @cached_property
    def certificate_name(self) -> str:
        """The name of the certificate's file."""
        return f"SimpleNotificationService-{self._identity.fingerprint}.pem"

    @property
    def _origin(self) -> str:
        return f"https://sns.{self.account.region}.amazonaws.com"

    def confirm(self, token: str) -> bool:
        """Confirm the subscription of a token; return whether the token is known."""
        url = self.tokens.pop(token, None)
        if url is not None:
            self.subscribed.add(url)
        return url is not None

    def subscription(self, url: str) -> dict[str, str]:
        """Return the envelope that asks a receiver to confirm its subscription."""
        token = secrets.token_hex(64)
        if len(self.tokens) >= TOKENS:
            self.tokens.clear()
        self.tokens[token] = url
        topic = self.account.topic
        text = f"You have chosen to subscribe to the topic {topic}."
        return self._sign(
            {
                "Type": SUBSCRIPTION,
                "MessageId": str(uuid.uuid4()),
                "Token": token,
                "TopicArn": topic,
                "Message": f"{text}\nTo confirm the subscription, visit the SubscribeURL included.",
                "SubscribeURL": f"{self._origin}/?Action=ConfirmSubscription&TopicArn={topic}"
                f"&Token={token}",
            },
            key=self._identity.private_key,
            version="1",
        )

    def notification(self, payload: Mapping[str, Any]) -> dict[str, str]:
        """Return the envelope of an event."""
        manner = payload["manner"]
        own = self._identity.private_key
        forged = rsa.generate_private_key(65537, 2048) if manner == FORGED else own
        subject = {"Subject": payload["subject"]} if payload["subject"] else {}
        return self._sign(
            {
                "Type": "Notification",
                "MessageId": payload["id"],
                "TopicArn": self.account.topic + ("-other" if manner == OTHER_TOPIC else ""),
                **subject,
                "Message": json.dumps(payload["event"], separators=(",", ":")),
            },
            key=forged,
            # Both versions are in use.
            version="2" if uuid.UUID(payload["id"]).int % 2 else "1",
        )

    def _sign(
        self, envelope: dict[str, str], *, key: rsa.RSAPrivateKey, version: str
    ) -> dict[str, str]:
        now = datetime.now(UTC)
        envelope["Timestamp"] = f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03}Z"
        # The names that are signed, in the order of the alphabet.
        text = "".join(f"{name}\n{envelope[name]}\n" for name in sorted(envelope))
        signature = key.sign(text.encode(), padding.PKCS1v15(), _HASHES[version])
        return envelope | {
            "SignatureVersion": version,
            "Signature": base64.b64encode(signature).decode(),
            "SigningCertURL": f"{self._origin}/{self.certificate_name}",
            "UnsubscribeURL": f"{self._origin}/?Action=Unsubscribe",
        }


def payload(
    event: Mapping[str, Any], *, subject: str = "", manner: str = GENUINE
) -> dict[str, Any]:
    """Return an event as it waits to be posted: repeats of it have the same ID."""
    return {"id": str(uuid.uuid4()), "event": event, "subject": subject, "manner": manner}


class SignedWebhooks:
    """The format of SNS: one envelope each, to receivers that have confirmed a subscription."""

    batch = 1

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._lock = asyncio.Lock()

    async def prepare(self, session: aiohttp.ClientSession, url: str) -> str | None:
        """Ask the receiver, once, to confirm its subscription; return the error, if any."""
        async with self._lock:
            if url in self._topics.subscribed:
                return None
            body = json.dumps(self._topics.subscription(url)).encode()
            headers = self.headers(body, url=url, now=datetime.now(UTC))
            async with session.post(
                url, data=body, headers=headers, allow_redirects=False
            ) as response:
                if url in self._topics.subscribed:
                    return None
                return f"the subscription was not confirmed ({response.status})"

    def stamp(self, payload: dict[str, Any], *, now: datetime) -> None:
        """Do nothing: events have their times from the beginning."""

    def encode(self, payloads: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the body of one POST."""
        return json.dumps(self._topics.notification(payloads[0]), indent=2).encode()

    def headers(self, body: bytes, *, url: str, now: datetime) -> dict[str, str]:
        """Return the headers of a POST."""
        envelope = json.loads(body)
        return {
            "Content-Type": "text/plain; charset=UTF-8",
            "User-Agent": "Amazon Simple Notification Service Agent",
            "x-amz-sns-message-type": envelope["Type"],
            "x-amz-sns-message-id": envelope["MessageId"],
            "x-amz-sns-topic-arn": envelope["TopicArn"],
        }

    def may_repeat(self, url: str, *, status: int | None, repeats: int) -> bool:
        """Return whether a POST is repeated: not after an error of the client."""
        return (
            status is None
            or status == HTTPStatus.TOO_MANY_REQUESTS
            or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        )
