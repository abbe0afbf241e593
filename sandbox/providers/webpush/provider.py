"""The push services, for subscriptions of the sandbox's browsers and of real ones."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

import msgspec

from ...log import Record
from ...outcomes import Outcome
from ...responses import ProviderResponse
from .. import network_faults
from ..base import (
    Channel,
    DisplayedMessage,
    IncomingRequest,
    Provider,
    RequestResult,
    SubscriptionRequest,
)
from .answers import APPLE, MICROSOFT, MOZILLA, SERVICES, Kind, PushService, service_of
from .browsers import Browsers, UnreadablePushError
from .outcomes import OUTCOMES, magic
from .signature import RejectedSignatureError, verify

MAX_BODY = 4_096
MAX_TTL = timedelta(days=28)
MOZILLAS_MAX_TTL = timedelta(days=30)
URGENCIES = frozenset({"very-low", "low", "normal", "high"})
_PATH = re.compile(r"/push/([a-z0-9.-]+)/(.+)", re.DOTALL)
_NAME = re.compile(r"[A-Za-z0-9-]{1,100}", re.ASCII)
_BOUND = re.compile(r"\.([0-9a-f]{16})\Z")
"""The key with which a browser of the sandbox subscribed, at the end of its name."""
_TOPIC = re.compile(r"[A-Za-z0-9_-]{1,32}", re.ASCII)
_IMPOSSIBLE = 1
"""The rest of four of a length that base64 never has."""
_NO_SERVICE = ProviderResponse(status=404, body=b"There is no such push service.\n")
_HEADERS = ("ttl", "urgency", "topic", "content-encoding", "x-wns-cache-policy")


class RejectedPushError(Exception):
    """A push service refuses a push before it looks at the subscription."""

    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class WebPush(Provider):
    """RFC 8030: ``POST /push/{host}/{name}``, of the push service with this host."""

    browsers: Browsers
    name = "webpush"
    title = "Web push"
    channel = Channel.PUSH
    route = "/push/{rest:.*}"
    max_body = MAX_BODY
    outcomes = OUTCOMES
    recipient_pattern = "{}-…"
    addressing = (
        "The beginning of a subscription's name chooses the outcome: the name itself, or the name, "
        "a -, and anything more. POST /_sandbox/webpush/subscriptions makes a subscription."
    )

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request."""
        path = _PATH.fullmatch(request.path)
        service = service_of(path[1]) if path else None
        if path is None or service is None or request.method != "POST":
            return RequestResult(
                outcome="not-found", response=_NO_SERVICE, reason="There is no such push service."
            )
        host, name = path.groups()
        push = self._read(request, name)
        fields = _log_fields(f"{host}/{name}", push, request)
        try:
            self._check(request, service, host, name, now=now)
        except RejectedPushError as rejected:
            refused = service.refuse(rejected.kind, pause=self.timings.rate_limit)
            return RequestResult(
                outcome=rejected.kind, response=refused.response(), reason=str(rejected), **fields
            )
        outcome = self.choose_outcome(f"{host}/{name}", magic=magic)
        response = self._response(outcome, service, request.path, origin=f"https://{host}")
        return RequestResult(response=response, **outcome.result_fields() | fields)

    def make_subscription(
        self, requested: SubscriptionRequest, *, origin: str
    ) -> Mapping[str, Any]:
        """Return a browser's subscription at a push service. Raises ValueError."""
        if service_of(requested.host) is None:
            domains = ", ".join(service.domain for service in SERVICES)
            raise ValueError(f"host must be one of {domains}, or below one of them.")
        if not _NAME.fullmatch(requested.name):
            raise ValueError("name must have letters, digits, and hyphens.")
        return self.browsers.subscribe(
            origin=origin,
            host=requested.host,
            name=requested.name,
            key=requested.application_server_key,
        )

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a push as the browser shows it."""
        logged = record.json()
        push = logged["push"] or {}
        notification = push.get("notification", {})
        headers = [(name, value) for name, value in logged["headers"].items() if value]
        return DisplayedMessage(
            sender=record.recipients[0].partition("/")[0],
            recipients=record.recipients,
            title=_text(notification, "title") or "Encrypted for a browser",
            text=_text(notification, "body"),
            image=_text(notification, "image"),
            link=_text(notification, "navigate"),
            facts=tuple(headers),
        )

    def _read(self, request: IncomingRequest, name: str) -> Mapping[str, Any] | None:
        """Return the push, or None if it is for a browser that isn't the sandbox's."""
        try:
            plain = self.browsers.browser(name).decrypt(request.body or b"")
            push = msgspec.json.decode(plain)
        except (UnreadablePushError, msgspec.DecodeError):
            return None
        return push if isinstance(push, dict) else None

    def _check(
        self, request: IncomingRequest, service: PushService, host: str, name: str, *, now: datetime
    ) -> None:
        """Check a push as its service does. Raises RejectedPushError."""
        if request.body is None:
            raise RejectedPushError(Kind.TOO_LARGE, f"The body exceeds {MAX_BODY} bytes.")
        own_origin = f"http://{request.headers.get('host', '')}"
        header = request.headers.get("authorization", "")
        try:
            sender = verify(header, origins={own_origin, f"https://{host}"}, now=now)
        except RejectedSignatureError as rejected:
            reason = f"The authorization is rejected: {rejected.defect}."
            raise RejectedPushError(Kind.UNAUTHORIZED, reason) from None
        _check_headers(request.headers, service)
        bound = _BOUND.search(name)
        if bound is not None and bound[1] != sender.fingerprint:
            raise RejectedPushError(Kind.MISMATCH, "The browser subscribed with another key.")

    def _response(
        self, outcome: Outcome, service: PushService, path: str, *, origin: str
    ) -> ProviderResponse:
        if reply := network_faults.proxy_response(outcome, path):
            return reply
        if not outcome.accepted and outcome.name != "timeout-lost":
            kind = Kind.SERVER_ERROR if outcome.name == "flaky" else Kind(outcome.name)
            return service.refuse(kind, pause=self.timings.rate_limit).response()
        return ProviderResponse(
            status=HTTPStatus.CREATED, headers=service.accept(origin), mode=outcome.mode
        )


def _check_headers(headers: Mapping[str, str], service: PushService) -> None:
    ttl = headers.get("ttl")
    if ttl is None:
        raise RejectedPushError(Kind.NO_TTL, "TTL is missing.")
    limit = MOZILLAS_MAX_TTL if service is MOZILLA else MAX_TTL
    if not ttl.isascii() or not ttl.isdigit() or int(ttl) > limit.total_seconds():
        raise RejectedPushError(Kind.BAD_TTL, "TTL is invalid.")
    policy = headers.get("x-wns-cache-policy")
    if service is MICROSOFT and policy != ("cache" if int(ttl) else "no-cache"):
        raise RejectedPushError(Kind.BAD_TTL, "TTL conflicts with X-WNS-Cache-Policy.")
    if headers.get("urgency", "normal") not in URGENCIES:
        raise RejectedPushError(Kind.BAD_URGENCY, "Urgency is invalid.")
    topic = headers.get("topic")
    if topic is not None:
        is_impossible = service is APPLE and len(topic) % 4 == _IMPOSSIBLE
        if not _TOPIC.fullmatch(topic) or is_impossible:
            raise RejectedPushError(Kind.BAD_TOPIC, "Topic is invalid.")
    if headers.get("content-encoding") != "aes128gcm":
        raise RejectedPushError(Kind.BAD_TTL, "Content-Encoding isn't aes128gcm.")


def _log_fields(
    recipient: str, push: Mapping[str, Any] | None, request: IncomingRequest
) -> dict[str, Any]:
    headers = {name: request.headers.get(name) for name in _HEADERS}
    notification = (push or {}).get("notification", {})
    data = notification.get("data", {})
    references = [data.get("notification_id"), notification.get("tag")]
    return {
        "logged_body": msgspec.json.encode({"headers": headers, "push": push}),
        "title": _text(notification, "title") or None,
        "recipients": (recipient,),
        "references": tuple(found for found in references if isinstance(found, str) and found),
    }


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return value if isinstance(value, str) else ""
