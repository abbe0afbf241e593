"""Classifies the responses of push services, which have a body of their own each.

A browser subscribed with one VAPID key. Either the device was registered with the name of another,
or the wrong key is configured. If the service accepted a push with the same key within the hour, it
is the device. Otherwise, the message waits, and the device stays active.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from domain.errors import FailureCode, ProviderError, ProviderResponse, Reach, RecipientAction
from domain.web_push import Fingerprint

from .. import http
from ..response_rules import ResponseKind as Kind
from ..response_rules import build_error

RECENT_SUCCESS_PERIOD = timedelta(hours=1)
ACCEPTED = frozenset({200, 201, 202})
ANY_ERROR, CLIENT_ERROR = range(400, 600), range(400, 500)
MISMATCH = "SENDER_ID_MISMATCH"
"""What the engine calls a subscription that belongs to another key."""
MAX_CODE = 100
SHORTEST_SECRET = 8
NOTIFICATION_STATUS = "x-wns-notificationstatus"
ERROR_DESCRIPTION = "x-wns-error-description"
APPLE_TOKEN_REASONS = frozenset({"BadJwtToken", "ExpiredJwtToken", "BadVapidPublicKey"})
APPLE_HEADER_REASONS = frozenset({"BadTtl", "BadUrgency", "BadWebPushTopic", "BadWebPushRequest"})
APPLE_PAUSE = 60.0
"""Seconds to wait for a device that Apple limits without a Retry-After."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The relevant parts of a response that is no acceptance."""

    status: int
    reason: str | None = None
    """Apple's reason, such as ``VapidPkHashMismatch``."""
    number: int | None = None
    """Mozilla's number, such as 109."""
    notification_status: str | None = None
    """Microsoft's word for what became of the notification."""
    text: str = ""


def read_refusal(response: http.Response) -> Refusal:
    """Return what is readable of a response."""
    answer = http.decode_object(response.body)
    reason, number = answer.get("reason"), answer.get("errno")
    return Refusal(
        status=response.status,
        reason=reason if isinstance(reason, str) else None,
        number=number if isinstance(number, int) else None,
        notification_status=response.headers.get(NOTIFICATION_STATUS, "").lower() or None,
        text=response.text[: http.EXCERPT_LENGTH] or response.headers.get(ERROR_DESCRIPTION, ""),
    )


class KeyHistory:
    """When each push service last accepted a push with each key; for one event loop."""

    def __init__(self) -> None:
        self._accepted_at: dict[tuple[str, Fingerprint], datetime] = {}

    def record_accepted(self, host: str, key: Fingerprint, *, now: datetime) -> None:
        """Record an accepted push."""
        self._accepted_at[host, key] = now

    def is_proven(self, host: str, key: Fingerprint, *, now: datetime) -> bool:
        """Return whether the service accepted this key within the hour."""
        at = self._accepted_at.get((host, key))
        return at is not None and now - at <= RECENT_SUCCESS_PERIOD


@dataclass(frozen=True, slots=True)
class WebPushRule:
    """One row of the table: conditions, and the class of the responses that meet them all."""

    description: str
    statuses: Collection[int]
    kind: Kind
    reason: str
    failure_code: FailureCode | None = None
    _: KW_ONLY
    reasons: Collection[str] | None = None
    numbers: Collection[int] | None = None
    text: str | None = None
    """Pattern of the body, or of Microsoft's description in a header."""
    notification_status: str | None = None
    is_proven: bool | None = None
    """Whether the service accepted this key within the hour."""
    is_mismatch: bool = False
    action: RecipientAction | None = None
    reach: Reach | None = None
    """None: that of ``kind``."""
    pause: float | None = None
    """Seconds to wait if the response has no Retry-After."""

    def matches(self, refusal: Refusal, *, is_proven: bool) -> bool:
        """Return whether a response meets all conditions of the rule."""
        return (
            refusal.status in self.statuses
            and self.is_proven in (None, is_proven)
            and self.notification_status in (None, refusal.notification_status)
            and (self.reasons is None or refusal.reason in self.reasons)
            and (self.numbers is None or refusal.number in self.numbers)
            and (self.text is None or re.search(self.text, refusal.text, re.IGNORECASE) is not None)
        )


_OTHER_KEY = (
    r"VapidPkHashMismatch|\bdo(?:es)? not correspond to the (?:credentials|sender ID) used"
    r"|VAPID public key mismatch|Unauthorized ?Registration"
)
RULES: Sequence[WebPushRule] = (
    WebPushRule(
        "404 or 410",
        (404, 410),
        Kind.INVALID_RECIPIENT,
        "The browser's subscription has ended",
        action=RecipientAction.DEACTIVATE,
    ),
    WebPushRule(
        "an error about the key that the browser subscribed with, if this key was accepted within "
        "the hour",
        (400, 401, 403),
        Kind.INVALID_RECIPIENT,
        "The browser subscribed with another VAPID key",
        text=_OTHER_KEY,
        is_proven=True,
        is_mismatch=True,
        action=RecipientAction.SUSPECT,
        reach=Reach.UNCERTAIN,
    ),
    WebPushRule(
        "an error about the key that the browser subscribed with",
        (400, 401, 403),
        Kind.UNAVAILABLE,
        "The browser subscribed with another VAPID key, or WEBPUSH_KEYS has the wrong one.",
        text=_OTHER_KEY,
        is_mismatch=True,
        reach=Reach.UNCERTAIN,
    ),
    WebPushRule(
        "BadJwtToken, ExpiredJwtToken, or BadVapidPublicKey of Apple",
        CLIENT_ERROR,
        Kind.UNAVAILABLE,
        "Apple rejected the signature. Check WEBPUSH_SUBJECT and this machine's clock.",
        reasons=APPLE_TOKEN_REASONS,
    ),
    WebPushRule(
        "BadTtl, BadUrgency, BadWebPushTopic, or BadWebPushRequest of Apple",
        CLIENT_ERROR,
        Kind.UNAVAILABLE,
        "Apple rejected a header of the push.",
        reasons=APPLE_HEADER_REASONS,
    ),
    WebPushRule(
        "TooManyRequests of Apple",
        (429,),
        Kind.TRANSIENT,
        "Apple limits the messages to this device.",
        FailureCode.RECIPIENT_RATE_LIMITED,
        reasons={"TooManyRequests"},
        reach=Reach.RECIPIENT,
        pause=APPLE_PAUSE,
    ),
    WebPushRule(
        "400 with errno 108 of Mozilla",
        (400,),
        Kind.INVALID_RECIPIENT,
        "Mozilla doesn't know the kind of the endpoint",
        numbers={108},
        action=RecipientAction.SUSPECT,
    ),
    WebPushRule(
        "errno 109 of Mozilla with another text",
        (401, 403),
        Kind.UNAVAILABLE,
        "Mozilla rejected the signature. Check this machine's clock.",
        numbers={109},
    ),
    WebPushRule(
        "400 with errno 101 or 110 to 113 of Mozilla",
        (400,),
        Kind.UNAVAILABLE,
        "Mozilla rejected a header of the push.",
        numbers={101, *range(110, 114)},
    ),
    WebPushRule(
        "any status with the notification status channelthrottled of Microsoft",
        range(200, 600),
        Kind.TRANSIENT,
        "Microsoft limits the messages to this browser.",
        FailureCode.RECIPIENT_RATE_LIMITED,
        notification_status="channelthrottled",
        reach=Reach.RECIPIENT,
        pause=APPLE_PAUSE,
    ),
    WebPushRule(
        "2xx with the notification status dropped of Microsoft",
        range(200, 300),
        Kind.TRANSIENT,
        "Microsoft dropped the push.",
        notification_status="dropped",
        reach=Reach.RECIPIENT,
    ),
    WebPushRule(
        "406 of Microsoft",
        (406,),
        Kind.TRANSIENT,
        "Rate limited by the push service.",
        FailureCode.RATE_LIMITED,
    ),
    WebPushRule(
        "any other 401, 403, or 407",
        (401, 403, 407),
        Kind.UNAVAILABLE,
        "The push service, or a proxy before it, refused the push or its signature.",
        reach=Reach.UNCERTAIN,
    ),
    WebPushRule(
        "413",
        (413,),
        Kind.PERMANENT,
        "The message exceeds the push service's size limit.",
        FailureCode.TOO_LARGE,
    ),
    WebPushRule(
        "any other 429",
        (429,),
        Kind.TRANSIENT,
        "Rate limited by the push service.",
        FailureCode.RATE_LIMITED,
    ),
    WebPushRule(
        "a redirect",
        range(300, 400),
        Kind.UNAVAILABLE,
        "The push service, or a proxy before it, redirects requests.",
        reach=Reach.UNCERTAIN,
    ),
    WebPushRule(
        "408, 409, 425, or 499",
        (408, 409, 425, 499),
        Kind.TRANSIENT,
        "The push service, or a proxy before it, gave up the request.",
    ),
    WebPushRule("any other 4xx", CLIENT_ERROR, Kind.PERMANENT, "The push service refused it."),
    WebPushRule(
        "504 or 524 without Mozilla's errno",
        (504, 524),
        Kind.AMBIGUOUS,
        "A gateway got no answer of the push service in time.",
    ),
    WebPushRule("any other 5xx", range(500, 600), Kind.TRANSIENT, "The push service failed."),
    WebPushRule(
        "any other status",
        range(1000),
        Kind.AMBIGUOUS,
        "The push service sent an undocumented response.",
    ),
)
"""The first match applies."""


def is_accepted(response: http.Response) -> bool:
    """Return whether a push service took a push. Microsoft says in a header that it did not."""
    status = response.headers.get(NOTIFICATION_STATUS, "").lower()
    return response.status in ACCEPTED and status in ("", "received")


def message_id(headers: Mapping[str, str]) -> str | None:
    """Return the push service's ID of a message."""
    location = headers.get("location", "").rstrip("/").rpartition("/")[2]
    return headers.get("apns-id") or headers.get("x-wns-msg-id") or location or None


def classify_response(
    response: http.Response, *, endpoint: str, scope: str | None, is_proven: bool, now: datetime
) -> ProviderError:
    """Return the error for a response. The endpoint, or a part of it, is redacted from its text."""
    refusal = read_refusal(response)
    rule = next(rule for rule in RULES if rule.matches(refusal, is_proven=is_proven))
    code = refusal.reason or refusal.notification_status
    if code is None and refusal.number is not None:
        code = str(refusal.number)
    text = refusal.text
    address = urlsplit(endpoint)
    _, _, name = address.path.rpartition("/")
    for part in (address.path, name, address.query.partition("=")[2]):
        text = text.replace(part, "[endpoint]") if len(part) >= SHORTEST_SECRET else text
    pause = http.retry_after_seconds(response.headers, now=now)
    return build_error(
        rule.kind,
        rule.reason if rule.action is not None else f"{rule.reason} ({response.status})",
        code=rule.failure_code,
        action=rule.action or RecipientAction.SUSPECT,
        response=ProviderResponse(
            status=response.status,
            code=MISMATCH if rule.is_mismatch else (code and http.redact(code)[:MAX_CODE]),
            excerpt=http.excerpt(text),
        ),
        retry_after=rule.pause if pause is None else pause,
        scope=scope,
        reach=rule.reach,
    )
