"""Receives what Amazon SNS posts: verifies envelopes, and confirms subscriptions.

Anybody can write an envelope, or have one signed by SNS for a topic of his own. So only listed
topics count. The certificate must be SNS's own: its host also answers queries with texts of
anybody's choice, so that only the path of a certificate is fetched, and only from the topic's
region.
"""

import base64
import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from domain.errors import ProviderError
from notifyproject.platform import event_loop

from . import http, http_client
from .aws_signing import Credentials, Signer
from .aws_variables import TOPIC
from .contract import (
    InvalidSignatureError,
    UnverifiedWebhookError,
    WebhookReply,
    WebhookRequest,
    WebhookResult,
)
from .http import Request
from .json_items import read_iso_time, read_text

log = structlog.get_logger(__name__)

TYPE_HEADER = "x-amz-sns-message-type"
RAW_HEADER = "x-amz-sns-rawdelivery"
NOTIFICATION = "Notification"
CONFIRMATIONS = ("SubscriptionConfirmation", "UnsubscribeConfirmation")
TAKEN = WebhookReply(body="")
MAX_AGE = timedelta(hours=1)
"""SNS repeats a notification for as long."""
CERTIFICATE_LIFETIME = timedelta(days=1)
MAX_CERTIFICATES = 16
FETCH_TIMEOUT = 5.0
MAX_FETCHES = 2
"""Certificates that an account fetches at once in a process: anybody can name one."""
_TOPIC = re.compile(TOPIC)
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CERTIFICATE_PATH = r"/SimpleNotificationService-[0-9a-f]{32}\.pem"
_SIGNED_FIELDS: Mapping[str, Sequence[str]] = {
    NOTIFICATION: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    **dict.fromkeys(
        CONFIRMATIONS,
        ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
    ),
}
_OPTIONAL = "Subject"
_HASHES: Mapping[str, hashes.HashAlgorithm] = {"1": hashes.SHA1(), "2": hashes.SHA256()}
"""By version of the signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """What was published to a topic."""

    id: str
    """The same for repeats of the notification."""
    at: datetime
    text: str = field(repr=False)


def endpoint(service: str, region: str) -> str:
    """Return the URL of a service of AWS in a region."""
    return f"https://{service}.{region}.{_domain(region)}"


def region_of(topic: str) -> str:
    """Return the region of a topic. Raises ValueError if it is no ARN of a topic."""
    found = _TOPIC.fullmatch(topic)
    if found is None:
        raise ValueError("the topic is no ARN of one")
    return found[1]


class Certificates:
    """The keys of certificates, by URL."""

    def __init__(self) -> None:
        self._keys: dict[str, tuple[datetime, rsa.RSAPublicKey]] = {}
        self._fetches = threading.BoundedSemaphore(MAX_FETCHES)

    def key(
        self, url: str, *, call: Callable[[Request], http.Response], now: datetime
    ) -> rsa.RSAPublicKey:
        """Return the key of a certificate. Raises InvalidSignatureError, UnverifiedWebhookError."""
        known = self._keys.get(url)
        if known is not None and now < known[0]:
            return known[1]
        if not self._fetches.acquire(blocking=False):
            raise UnverifiedWebhookError("too many certificates are fetched at once")
        try:
            response = call(Request(url=url, headers={}, body=None, timeout=FETCH_TIMEOUT))
        finally:
            self._fetches.release()
        if HTTPStatus.BAD_REQUEST <= response.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise InvalidSignatureError("SNS has no such certificate")
        if response.status != HTTPStatus.OK:
            raise UnverifiedWebhookError("SNS can't give its certificate now")
        key = _read_certificate(response.body, now=now)
        if len(self._keys) >= MAX_CERTIFICATES:
            self._keys.clear()
        self._keys[url] = now + CERTIFICATE_LIFETIME, key
        return key


def _read_certificate(pem: bytes, *, now: datetime) -> rsa.RSAPublicKey:
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        key = certificate.public_key()
    except ValueError:
        raise UnverifiedWebhookError("SNS's certificate can't be read") from None
    if not certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc:
        raise InvalidSignatureError("SNS's certificate isn't valid now")
    if not isinstance(key, rsa.RSAPublicKey):
        raise InvalidSignatureError("SNS's certificate has another kind of key")
    return key


def send(request: Request) -> http.Response:
    """Send a request to SNS. Raises ProviderError."""
    return event_loop.run(http_client.send(request))


@dataclass(frozen=True, kw_only=True)
class Receiver:
    """Receives the notifications of some topics."""

    topics: frozenset[str]
    credentials: Credentials
    """They confirm subscriptions."""
    clock: Callable[[], datetime]
    base_url: str = ""
    """Where certificates are fetched and subscriptions confirmed, if not at AWS. What an envelope
    must name is AWS's in any case."""
    call: Callable[[Request], http.Response] = send
    """Sends a request to SNS. Raises ProviderError."""
    _certificates: Certificates = field(default_factory=Certificates, repr=False)

    def read(
        self,
        request: WebhookRequest,
        *,
        describe: Callable[[Notification], Mapping[str, Any] | None],
        parse: Callable[[bytes], WebhookResult],
    ) -> WebhookResult:
        """Verify and read a notification.

        ``describe`` returns what is logged of one, or None if it is no event, and ``parse`` reads
        what was logged. Raises InvalidSignatureError, UnverifiedWebhookError, or ValueError.
        """
        notification = self.receive(request)
        if notification is None:
            return WebhookResult(reply=TAKEN)
        event = describe(notification)
        if event is None:
            # A sentence, by which AWS or somebody tries the topic.
            return WebhookResult(unreadable_count=1, reply=TAKEN)
        logged = json.dumps(event)
        return replace(parse(logged.encode()), logged=logged, reply=TAKEN)

    def receive(self, request: WebhookRequest) -> Notification | None:
        """Return a genuine notification, or None for what concerns the subscription.

        Raises InvalidSignatureError, UnverifiedWebhookError, or ValueError.
        """
        envelope = http.decode_object(request.raw)
        kind = request.headers.get(TYPE_HEADER, "")
        if RAW_HEADER in request.headers:
            raise InvalidSignatureError("raw message delivery is on, which has no signature")
        if kind not in _SIGNED_FIELDS or envelope.get("Type") != kind:
            raise InvalidSignatureError("the type of the envelope isn't that of the header")
        topic = read_text(envelope, "TopicArn") or ""
        if topic not in self.topics:
            raise InvalidSignatureError("the topic isn't one of ours")
        if not _ID.fullmatch(read_text(envelope, "MessageId") or ""):
            # With a line break, the next field of the signed text could hide in it.
            raise InvalidSignatureError("the message ID is none")
        at = self._check_time(envelope)
        self._verify(envelope, kind=kind, region=region_of(topic))
        if kind == NOTIFICATION:
            return Notification(id=envelope["MessageId"], at=at, text=envelope["Message"])
        if kind == CONFIRMATIONS[0]:
            self._confirm(topic, envelope["Token"])
        else:
            log.warning("sns_subscription_ended", topic=topic)
        return None

    def _check_time(self, envelope: Mapping[str, Any]) -> datetime:
        try:
            at = read_iso_time(envelope.get("Timestamp"))
        except ValueError:
            raise InvalidSignatureError("the timestamp is missing or invalid") from None
        if abs(self.clock() - at) > MAX_AGE:
            raise InvalidSignatureError("the timestamp differs by more than an hour")
        return at

    def _verify(self, envelope: Mapping[str, Any], *, kind: str, region: str) -> None:
        algorithm = _HASHES.get(read_text(envelope, "SignatureVersion") or "")
        if algorithm is None:
            raise InvalidSignatureError("the version of the signature is unknown")
        try:
            signature = base64.b64decode(envelope.get("Signature", ""), validate=True)
        except (TypeError, ValueError):
            raise InvalidSignatureError("the signature is malformed") from None
        text = _signed_text(envelope, kind)
        key = self._key(read_text(envelope, "SigningCertURL") or "", region=region)
        try:
            key.verify(signature, text, padding.PKCS1v15(), algorithm)
        except InvalidSignature:
            raise InvalidSignatureError("the signature is wrong") from None

    def _key(self, url: str, *, region: str) -> rsa.RSAPublicKey:
        """Return the key of a certificate, which is fetched once a day."""
        own = endpoint("sns", region)
        if not re.fullmatch(re.escape(own) + _CERTIFICATE_PATH, url):
            raise InvalidSignatureError("the certificate isn't SNS's")
        place = url if not self.base_url else f"{self.base_url}{url.removeprefix(own)}"
        return self._certificates.key(place, call=self._call, now=self.clock())

    def _call(self, request: Request) -> http.Response:
        try:
            return self.call(request)
        except ProviderError as error:
            raise UnverifiedWebhookError("SNS can't be reached") from error

    def _confirm(self, topic: str, token: str) -> None:
        """Confirm a subscription. Its URL isn't opened: another could stand in its place."""
        region = region_of(topic)
        form = {
            "Action": "ConfirmSubscription",
            "Version": "2010-03-31",
            "TopicArn": topic,
            "Token": token,
            # Otherwise, whoever sees the URL in a notification could end the subscription.
            "AuthenticateOnUnsubscribe": "true",
        }
        request = Request(
            url=f"{self.base_url or endpoint('sns', region)}/",
            headers={"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
            body=urlencode(form).encode(),
            timeout=FETCH_TIMEOUT,
        )
        signer = Signer(credentials=self.credentials, region=region, service="sns")
        response = self._call(signer.sign(request, now=self.clock()))
        if response.status != HTTPStatus.OK:
            log.warning("sns_subscription_not_confirmed", topic=topic, status=response.status)
            raise UnverifiedWebhookError("AWS refused to confirm the subscription")
        log.info("sns_subscription_confirmed", topic=topic)


def _signed_text(envelope: Mapping[str, Any], kind: str) -> bytes:
    """Return what is signed: a line for each name and each value, the last one included."""
    lines: list[str] = []
    for name in _SIGNED_FIELDS[kind]:
        value = envelope.get(name)
        if value is None and name == _OPTIONAL:
            continue
        if not isinstance(value, str):
            raise InvalidSignatureError(f"{name} is missing")
        lines += name, value
    return "".join(f"{line}\n" for line in lines).encode()


def _domain(region: str) -> str:
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
