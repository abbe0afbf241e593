"""Classification of FCM's responses, including sender mismatches.

The FCM error code in the body has precedence over the HTTP status, since a 404 may concern a device
or the project. Only a code about the device deactivates it. A wrong project or a missing permission
is a configuration error.

``SENDER_ID_MISMATCH`` has two causes: a token of another project, or a wrong service account. The
latest responses for the project decide. Each process keeps its own history; without one, the
message waits, and no device is affected.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from threading import Lock
from typing import Any

from domain.errors import FailureCode, ProviderError, ProviderResponse, RecipientAction

from .. import http
from ..response_rules import ResponseKind, build_error

_FCM_ERROR = "google.firebase.fcm.v1.FcmError"
_BAD_REQUEST = "google.rpc.BadRequest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The relevant fields of an error response."""

    status: int
    name: str | None = None
    """Google's status name, such as ``NOT_FOUND``."""
    code: str | None = None
    """FCM's error code, such as ``UNREGISTERED``."""
    fields: Sequence[str] = ()
    text: str = ""


def read_refusal(response: http.Response) -> Refusal:
    """Parse an error response, as far as it's readable."""
    error = http.as_object(http.decode_object(response.body).get("error"))
    details = list(_details(error))
    code = next(
        (d["errorCode"] for d in details if _has_type(d, _FCM_ERROR) and "errorCode" in d), None
    )
    return Refusal(
        status=response.status,
        name=_text(error.get("status")),
        code=_text(code),
        fields=tuple(_fields(details)),
        text=_text(error.get("message")) or "",
    )


def accepted_name(response: http.Response) -> str | None:
    """Return FCM's message name; None for anything but the documented acceptance."""
    name = http.decode_object(response.body).get("name")
    return name if isinstance(name, str) and name else None


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None


def _details(error: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    found = error.get("details")
    return (one for one in found if isinstance(one, dict)) if isinstance(found, list) else iter(())


def _has_type(detail: Mapping[str, Any], kind: str) -> bool:
    name = detail.get("@type")
    return isinstance(name, str) and name.rpartition("/")[2] == kind


def _fields(details: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for detail in details:
        violations = detail.get("fieldViolations") if _has_type(detail, _BAD_REQUEST) else None
        for one in violations if isinstance(violations, list) else ():
            name = http.as_object(one).get("field")
            if isinstance(name, str):
                yield name


RECENT_SUCCESS_PERIOD = timedelta(hours=1)
"""A project that accepted a message within this time is taken to be right."""
MISMATCH_LIMIT = 5
"""Mismatches of this many different devices in a row mean that the project is wrong."""
SENDER_SCOPE = "sender"
"""The circuit of a mismatch with unknown cause; no other message waits for it."""


class MismatchCause(StrEnum):
    """The cause of a sender mismatch."""

    DEVICE = "device"
    PROJECT = "project"
    UNKNOWN = "unknown"
    """Not decided yet."""


class SenderHistory:
    """Recent responses to this process for one account. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._accepted_at: datetime | None = None
        self._mismatched_devices: set[bytes] = set()
        """Devices with a mismatch since the last acceptance."""

    def record_accepted(self, *, now: datetime) -> None:
        """Record an accepted message."""
        with self._lock:
            self._accepted_at = max(now, self._accepted_at or now)
            self._mismatched_devices.clear()

    def classify_mismatch(self, token: str, *, now: datetime) -> MismatchCause:
        """Record a mismatch of a token and return its cause."""
        with self._lock:
            if len(self._mismatched_devices) < MISMATCH_LIMIT:
                self._mismatched_devices.add(hashlib.sha256(token.encode()).digest())
            if len(self._mismatched_devices) >= MISMATCH_LIMIT:
                return MismatchCause.PROJECT
            at = self._accepted_at
        return (
            MismatchCause.DEVICE
            if at is not None and now - at <= RECENT_SUCCESS_PERIOD
            else MismatchCause.UNKNOWN
        )


ANY_ERROR, CLIENT_ERROR = range(400, 600), range(400, 500)
QUOTA_PAUSE = 60.0
"""Seconds; Google's recommendation for a quota error without Retry-After."""
MAX_CODE = 100
MISMATCH = "SENDER_ID_MISMATCH"


@dataclass(frozen=True, slots=True, kw_only=True)
class FcmRule:
    """One row of the table: the class of responses that match every condition."""

    description: str
    """The response in words."""
    kind: ResponseKind
    reason: str
    """The reason stored with a delivery."""
    statuses: Sequence[int] | range
    name: str | None = None
    code: str | None = None
    field: str | None = None
    text: str | None = None
    """Pattern of the error text, for responses that don't name the field elsewhere."""
    failure_code: FailureCode = FailureCode.REJECTED
    """Of transient, ambiguous, and permanent errors; the other classes have their own."""
    action: RecipientAction | None = None
    pause: float | None = None
    """Seconds to wait without Retry-After."""
    cause: MismatchCause | None = None
    is_platform_only: bool = False
    """Only the device's platform is unavailable."""
    is_sender_only: bool = False
    """Only this device is affected, as far as known."""
    needs_new_token: bool = False
    """The access token is invalid: fetch another one and send again."""

    def matches(self, refusal: Refusal, cause: MismatchCause | None) -> bool:
        """Return whether the rule applies to a response."""
        return (
            refusal.status in self.statuses
            and self.cause in (None, cause)
            and self.name in (None, refusal.name)
            and self.code in (None, refusal.code)
            and (self.field is None or self.field in refusal.fields)
            and (self.text is None or re.search(self.text, refusal.text, re.IGNORECASE) is not None)
        )


RULES: tuple[FcmRule, ...] = (
    FcmRule(
        description="UNREGISTERED, with a 404",
        statuses=CLIENT_ERROR,
        code="UNREGISTERED",
        kind=ResponseKind.INVALID_RECIPIENT,
        action=RecipientAction.DEACTIVATE,
        reason="Device token invalid",
    ),
    FcmRule(
        description="SENDER_ID_MISMATCH, with a 403, if the project accepted one within the hour",
        statuses=CLIENT_ERROR,
        code=MISMATCH,
        cause=MismatchCause.DEVICE,
        kind=ResponseKind.INVALID_RECIPIENT,
        action=RecipientAction.SUSPECT,
        reason="Device token belongs to another Firebase project",
    ),
    FcmRule(
        description="SENDER_ID_MISMATCH for the fifth device without an acceptance in between",
        statuses=CLIENT_ERROR,
        code=MISMATCH,
        cause=MismatchCause.PROJECT,
        kind=ResponseKind.UNAVAILABLE,
        reason="The devices belong to another Firebase project than the service account.",
    ),
    FcmRule(
        description="any other SENDER_ID_MISMATCH",
        statuses=CLIENT_ERROR,
        code=MISMATCH,
        kind=ResponseKind.UNAVAILABLE,
        is_sender_only=True,
        reason="The device and the service account belong to different Firebase projects.",
    ),
    FcmRule(
        description="THIRD_PARTY_AUTH_ERROR, with a 401",
        statuses=CLIENT_ERROR,
        code="THIRD_PARTY_AUTH_ERROR",
        kind=ResponseKind.UNAVAILABLE,
        is_platform_only=True,
        reason="Apple's or the browser's push service rejected the key configured in Firebase.",
    ),
    FcmRule(
        description="QUOTA_EXCEEDED, with a 429",
        statuses=ANY_ERROR,
        code="QUOTA_EXCEEDED",
        kind=ResponseKind.TRANSIENT,
        failure_code=FailureCode.RATE_LIMITED,
        pause=QUOTA_PAUSE,
        reason="Rate limited by Firebase.",
    ),
    FcmRule(
        description="UNAVAILABLE, with a 503",
        statuses=ANY_ERROR,
        code="UNAVAILABLE",
        kind=ResponseKind.TRANSIENT,
        failure_code=FailureCode.PROVIDER_ERROR,
        reason="Firebase is overloaded.",
    ),
    FcmRule(
        description="INTERNAL, with a 500",
        statuses=ANY_ERROR,
        code="INTERNAL",
        kind=ResponseKind.TRANSIENT,
        failure_code=FailureCode.PROVIDER_ERROR,
        reason="Firebase error.",
    ),
    FcmRule(
        description="400 INVALID_ARGUMENT for the field message.token",
        statuses=(400,),
        name="INVALID_ARGUMENT",
        field="message.token",
        kind=ResponseKind.INVALID_RECIPIENT,
        action=RecipientAction.SUSPECT,
        reason="Device token malformed",
    ),
    FcmRule(
        description="400 INVALID_ARGUMENT with a text about an invalid registration token",
        statuses=(400,),
        name="INVALID_ARGUMENT",
        text=r"not a valid FCM registration token",
        kind=ResponseKind.INVALID_RECIPIENT,
        action=RecipientAction.SUSPECT,
        reason="Device token malformed",
    ),
    FcmRule(
        description="400 with a text about a too large message",
        statuses=(400,),
        text=r"\bmessage is too (?:big|large)\b",
        kind=ResponseKind.PERMANENT,
        failure_code=FailureCode.TOO_LARGE,
        reason="The message exceeds Firebase's size limit.",
    ),
    FcmRule(
        description="any other 400",
        statuses=(400,),
        kind=ResponseKind.PERMANENT,
        reason="Firebase rejected the message.",
    ),
    FcmRule(
        description="401 UNAUTHENTICATED, again with a new access token",
        statuses=(401,),
        name="UNAUTHENTICATED",
        kind=ResponseKind.UNAVAILABLE,
        needs_new_token=True,
        reason="Firebase rejected the service account's access token.",
    ),
    FcmRule(
        description="any other 401",
        statuses=(401,),
        kind=ResponseKind.UNAVAILABLE,
        reason="A proxy before Firebase requires credentials.",
    ),
    FcmRule(
        description="any other 403",
        statuses=(403,),
        kind=ResponseKind.UNAVAILABLE,
        reason="The service account lacks permission for this Firebase project.",
    ),
    FcmRule(
        description="any other 404",
        statuses=(404,),
        kind=ResponseKind.UNAVAILABLE,
        reason="Unknown Firebase project.",
    ),
    FcmRule(
        description="a redirect",
        statuses=range(300, 400),
        kind=ResponseKind.UNAVAILABLE,
        reason="A proxy before Firebase redirects requests.",
    ),
    FcmRule(
        description="413",
        statuses=(413,),
        kind=ResponseKind.PERMANENT,
        failure_code=FailureCode.TOO_LARGE,
        reason="The message exceeds Firebase's size limit.",
    ),
    FcmRule(
        description="any other 429",
        statuses=(429,),
        kind=ResponseKind.TRANSIENT,
        failure_code=FailureCode.RATE_LIMITED,
        pause=QUOTA_PAUSE,
        reason="Rate limited by Firebase.",
    ),
    FcmRule(
        description="any other 4xx",
        statuses=CLIENT_ERROR,
        kind=ResponseKind.PERMANENT,
        reason="Firebase rejected the message.",
    ),
    FcmRule(
        description="any other 5xx",
        statuses=range(500, 600),
        kind=ResponseKind.TRANSIENT,
        failure_code=FailureCode.PROVIDER_ERROR,
        reason="Firebase error.",
    ),
    FcmRule(
        description="200 without a message's name, or another status",
        statuses=range(1000),
        kind=ResponseKind.AMBIGUOUS,
        failure_code=FailureCode.PROVIDER_ERROR,
        reason="Firebase sent an undocumented response.",
    ),
)
"""The first match applies."""


def rule_for(refusal: Refusal, cause: MismatchCause | None = None) -> FcmRule:
    """Return the first matching rule; the last one matches everything."""
    return next(rule for rule in RULES if rule.matches(refusal, cause))


def classify_response(
    response: http.Response,
    *,
    sender: SenderHistory,
    token: str,
    platform: str | None,
    now: datetime,
) -> ProviderError:
    """Return the error of a response, with the device token redacted."""
    refusal = read_refusal(response)
    is_mismatch = refusal.code == MISMATCH and refusal.status in CLIENT_ERROR
    rule = rule_for(refusal, sender.classify_mismatch(token, now=now) if is_mismatch else None)
    provider_code = refusal.code or refusal.name
    provider_response = ProviderResponse(
        status=response.status,
        code=http.redact(provider_code)[:MAX_CODE] if provider_code else None,
        excerpt=http.excerpt(response.text.replace(token, "[token]") if token else response.text),
    )
    pause = http.parse_retry_after(response.headers, now=now)
    scope = SENDER_SCOPE if rule.is_sender_only else None
    return build_error(
        rule.kind,
        rule.reason if rule.action is not None else f"{rule.reason} ({response.status})",
        code=rule.failure_code,
        action=rule.action or RecipientAction.SUSPECT,
        response=provider_response,
        retry_after=rule.pause if pause is None else pause,
        scope=platform if rule.is_platform_only else scope,
    )
