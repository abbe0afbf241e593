"""Envelopes of SNS with a certificate of our own, and the accounts that receive them."""

import base64
import json
import uuid
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

from providers import http
from providers.aws_signing import Credentials
from providers.aws_sns import Receiver
from providers.http import Request
from tests.support.factories.notifications import FIXED_NOON

REGION = "eu-west-1"
TOPIC = f"arn:aws:sns:{REGION}:123456789012:notify"
CERTIFICATE = f"https://sns.{REGION}.amazonaws.com/SimpleNotificationService-{'0a' * 16}.pem"
ID = "165545c9-2a5c-472c-8df2-7ff2be2b3b1b"
KEYS = Credentials(access_key_id="AKIAEXAMPLE00000001", secret_access_key="the-secret-key")


@cache
def private_key(name: str) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@cache
def certificate(*, until: datetime | None = None) -> bytes:
    key = private_key("sns")
    owner = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    found = (
        x509.CertificateBuilder()
        .subject_name(owner)
        .issuer_name(owner)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(FIXED_NOON - timedelta(days=3650))
        .not_valid_after(until or FIXED_NOON + timedelta(days=3650))
        .sign(key, hashes.SHA256())
    )
    return found.public_bytes(serialization.Encoding.PEM)


def envelope(
    message: Any,
    *,
    kind: str = "Notification",
    version: str = "1",
    key: str = "sns",
    at: datetime = FIXED_NOON,
    signed: Mapping[str, str] | None = None,
    **fields: str | None,
) -> bytes:
    """Return an envelope. ``fields`` replace its own before it's signed, and None leaves one out.

    ``signed`` replaces fields in what is signed alone.
    """
    default: dict[str, str | None] = {
        "Type": kind,
        "MessageId": ID,
        "TopicArn": TOPIC,
        "Subject": "Amazon SES Email Event Notification" if kind == "Notification" else None,
        "Message": message if isinstance(message, str) else json.dumps(message),
        "Timestamp": f"{at:%Y-%m-%dT%H:%M:%S.000Z}",
    }
    if kind != "Notification":
        default |= {"Token": "a-token", "SubscribeURL": "https://sns.example.com/"}
    found = {name: text for name, text in (default | fields).items() if text is not None}
    if kind != "Notification":
        found.pop("Subject", None)
    text = "".join(
        f"{name}\n{value}\n" for name, value in sorted((found | dict(signed or {})).items())
    )
    algorithm = hashes.SHA256() if version == "2" else hashes.SHA1()
    signature = private_key(key).sign(text.encode(), padding.PKCS1v15(), algorithm)
    return json.dumps(
        found
        | {
            "SignatureVersion": version,
            "Signature": base64.b64encode(signature).decode(),
            "SigningCertURL": CERTIFICATE,
            "UnsubscribeURL": "https://sns.example.com/unsubscribe",
        },
        indent=2,
    ).encode()


def changed(raw: bytes, **fields: Any) -> bytes:
    """Return an envelope with other fields than were signed."""
    return json.dumps(json.loads(raw) | fields).encode()


def headers(kind: str = "Notification") -> dict[str, str]:
    return {"x-amz-sns-message-type": kind, "content-type": "text/plain; charset=UTF-8"}


class FakeSns:
    """Answers with a certificate, and confirms subscriptions."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.answer: http.Response | Exception | None = None
        """In place of the certificate and the confirmation."""

    def __call__(self, request: Request) -> http.Response:
        self.requests.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        body = certificate() if request.body is None else b"<ConfirmSubscriptionResponse/>"
        return self.answer or http.Response(status=200, headers={}, body=body)


def receiver(**fields: Any) -> Receiver:
    default: dict[str, Any] = {
        "topics": frozenset({TOPIC}),
        "credentials": KEYS,
        "clock": lambda: FIXED_NOON,
        "call": FakeSns(),
    }
    return Receiver(**(default | fields))


def new_id() -> str:
    return str(uuid.uuid4())
