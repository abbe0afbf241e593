"""Classifies FCM's responses by error code, since a 404 may concern a device or the project.

A sender mismatch has two possible causes: the device's token belongs to another project, or the
configured service account is wrong. Each process infers the cause from its latest responses. With
no evidence, the message waits, and the device stays active.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from threading import Lock
from typing import Any

from domain.errors import FailureCode, ProviderError, ProviderResponse, RecipientAction

from .. import http
from ..response_rules import ResponseKind as Kind
from ..response_rules import build_error

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
    """Return what is readable of an error response."""
    error = http.as_object(http.decode_object(response.body).get("error"))
    found = error.get("details")
    details = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
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


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None


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
"""If FCM accepted a message within this time, a mismatch is the device's."""
MISMATCH_LIMIT = 5
"""This many different devices with a mismatch in a row mean that the project is wrong."""
SENDER_SCOPE = "sender"
"""Name of the circuit that opens for a mismatch of unknown cause. It blocks no other message."""


class MismatchCause(StrEnum):
    """The cause of a sender mismatch."""

    DEVICE = "device"
    PROJECT = "project"
    UNKNOWN = "unknown"


class SenderHistory:
    """Recent responses for one account in this process, to tell a mismatch's cause. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._accepted_at: datetime | None = None
        self._mismatched_devices: set[bytes] = set()

    def record_accepted(self, *, now: datetime) -> None:
        """Record an accepted message."""
        with self._lock:
            self._accepted_at = max(now, self._accepted_at or now)
            self._mismatched_devices.clear()

    def classify_mismatch(self, token: str, *, now: datetime) -> MismatchCause:
        """Record a mismatch of a device's token and return its likely cause."""
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


@dataclass(frozen=True, slots=True)
class FcmRule:
    """One row of the table: conditions, and the class of the responses that meet them all."""

    description: str
    statuses: Sequence[int]
    kind: Kind
    reason: str
    failure_code: FailureCode | None = None
    _: KW_ONLY
    name: str | None = None
    code: str | None = None
    field: str | None = None
    text: str | None = None
    """Pattern of the error text, for responses that don't name the field elsewhere."""
    action: RecipientAction | None = None
    pause: float | None = None
    """Seconds to wait if the response has no Retry-After."""
    cause: MismatchCause | None = None
    is_platform_only: bool = False
    """Only the device's platform is unavailable."""
    is_sender_only: bool = False
    """Only this device is known to be affected."""
    needs_new_token: bool = False
    """The access token is invalid: fetch another one and send again."""

    def matches(self, refusal: Refusal, cause: MismatchCause | None) -> bool:
        """Return whether a response meets all conditions of the rule."""
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
        "UNREGISTERED, with a 404",
        CLIENT_ERROR,
        Kind.INVALID_RECIPIENT,
        "Device token invalid",
        code="UNREGISTERED",
        action=RecipientAction.DEACTIVATE,
    ),
    FcmRule(
        "SENDER_ID_MISMATCH, with a 403, if the project accepted one within the hour",
        CLIENT_ERROR,
        Kind.INVALID_RECIPIENT,
        "Device token belongs to another Firebase project",
        code=MISMATCH,
        cause=MismatchCause.DEVICE,
        action=RecipientAction.SUSPECT,
    ),
    FcmRule(
        "SENDER_ID_MISMATCH for the fifth device without an acceptance in between",
        CLIENT_ERROR,
        Kind.UNAVAILABLE,
        "The devices belong to another Firebase project than the service account.",
        code=MISMATCH,
        cause=MismatchCause.PROJECT,
    ),
    FcmRule(
        "any other SENDER_ID_MISMATCH",
        CLIENT_ERROR,
        Kind.UNAVAILABLE,
        "The device and the service account belong to different Firebase projects.",
        code=MISMATCH,
        is_sender_only=True,
    ),
    FcmRule(
        "THIRD_PARTY_AUTH_ERROR, with a 401",
        CLIENT_ERROR,
        Kind.UNAVAILABLE,
        "Apple's or the browser's push service rejected the key configured in Firebase.",
        code="THIRD_PARTY_AUTH_ERROR",
        is_platform_only=True,
    ),
    FcmRule(
        "QUOTA_EXCEEDED, with a 429",
        ANY_ERROR,
        Kind.TRANSIENT,
        "Rate limited by Firebase.",
        FailureCode.RATE_LIMITED,
        code="QUOTA_EXCEEDED",
        pause=QUOTA_PAUSE,
    ),
    FcmRule(
        "UNAVAILABLE, with a 503",
        ANY_ERROR,
        Kind.TRANSIENT,
        "Firebase is overloaded.",
        code="UNAVAILABLE",
    ),
    FcmRule("INTERNAL, with a 500", ANY_ERROR, Kind.TRANSIENT, "Firebase error.", code="INTERNAL"),
    FcmRule(
        "400 INVALID_ARGUMENT for the field message.token",
        (400,),
        Kind.INVALID_RECIPIENT,
        "Device token malformed",
        name="INVALID_ARGUMENT",
        field="message.token",
        action=RecipientAction.SUSPECT,
    ),
    FcmRule(
        "400 INVALID_ARGUMENT with a text about an invalid registration token",
        (400,),
        Kind.INVALID_RECIPIENT,
        "Device token malformed",
        name="INVALID_ARGUMENT",
        text=r"not a valid FCM registration token",
        action=RecipientAction.SUSPECT,
    ),
    FcmRule(
        "400 with a text about a too large message",
        (400,),
        Kind.PERMANENT,
        "The message exceeds Firebase's size limit.",
        FailureCode.TOO_LARGE,
        text=r"\bmessage is too (?:big|large)\b",
    ),
    FcmRule("any other 400", (400,), Kind.PERMANENT, "Firebase rejected the message."),
    FcmRule(
        "401 UNAUTHENTICATED, again with a new access token",
        (401,),
        Kind.UNAVAILABLE,
        "Firebase rejected the service account's access token.",
        name="UNAUTHENTICATED",
        needs_new_token=True,
    ),
    FcmRule(
        "any other 401", (401,), Kind.UNAVAILABLE, "A proxy before Firebase requires credentials."
    ),
    FcmRule(
        "any other 403",
        (403,),
        Kind.UNAVAILABLE,
        "The service account lacks permission for this Firebase project.",
    ),
    FcmRule("any other 404", (404,), Kind.UNAVAILABLE, "Unknown Firebase project."),
    FcmRule(
        "a redirect",
        range(300, 400),
        Kind.UNAVAILABLE,
        "A proxy before Firebase redirects requests.",
    ),
    FcmRule(
        "413",
        (413,),
        Kind.PERMANENT,
        "The message exceeds Firebase's size limit.",
        FailureCode.TOO_LARGE,
    ),
    FcmRule(
        "any other 429",
        (429,),
        Kind.TRANSIENT,
        "Rate limited by Firebase.",
        FailureCode.RATE_LIMITED,
        pause=QUOTA_PAUSE,
    ),
    FcmRule("any other 4xx", CLIENT_ERROR, Kind.PERMANENT, "Firebase rejected the message."),
    FcmRule("any other 5xx", range(500, 600), Kind.TRANSIENT, "Firebase error."),
    FcmRule(
        "200 without a message's name, or another status",
        range(1000),
        Kind.AMBIGUOUS,
        "Firebase sent an undocumented response.",
    ),
)
"""The first match applies."""


def rule_for(refusal: Refusal, cause: MismatchCause | None = None) -> FcmRule:
    """Return the first matching rule. The last rule matches everything."""
    return next(rule for rule in RULES if rule.matches(refusal, cause))


def classify_response(
    response: http.Response,
    *,
    sender: SenderHistory,
    token: str,
    platform: str | None,
    now: datetime,
) -> ProviderError:
    """Return the error for a response. The device token is redacted from its text."""
    refusal = read_refusal(response)
    is_mismatch = refusal.code == MISMATCH and refusal.status in CLIENT_ERROR
    rule = rule_for(refusal, sender.classify_mismatch(token, now=now) if is_mismatch else None)
    provider_code = refusal.code or refusal.name
    provider_response = ProviderResponse(
        status=response.status,
        code=http.redact(provider_code)[:MAX_CODE] if provider_code else None,
        excerpt=http.excerpt(response.text.replace(token, "[token]") if token else response.text),
    )
    pause = http.retry_after_seconds(response.headers, now=now)
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
