"""Classifies FCM's responses by error code, since a 404 may concern a device or the project.

A sender mismatch has two possible causes: the device's token belongs to another project, or the
configured service account is wrong. If the account sent something within the hour, the token is.
Otherwise, the message waits, and the device stays active.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from threading import Lock
from typing import Any

from domain.errors import FailureCode, ProviderError, ProviderResponse, Reach, RecipientAction

from .. import http
from ..response_rules import ResponseKind as Kind
from ..response_rules import build_error

_FCM_ERROR = "google.firebase.fcm.v1.FcmError"
_APNS_ERROR = "google.firebase.fcm.v1.ApnsError"
_BAD_REQUEST = "google.rpc.BadRequest"
_ERROR_INFO = "google.rpc.ErrorInfo"
_QUOTA_FAILURE = "google.rpc.QuotaFailure"
_RETRY_INFO = "google.rpc.RetryInfo"
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)s", re.ASCII)
_PROJECT_NAME = re.compile(r"\b(?:consumer|projects?|project_number)\b\W{0,3}[\w:/.-]*")
_OF_DEVICE = re.compile(r"\b(?:device|topic|token|registration)s?\b", re.IGNORECASE)
_OF_PROJECT = re.compile(r"project|consumer", re.IGNORECASE)
_WORD_LIMIT = re.compile("(?<=[a-z])(?=[A-Z])|_")
MISMATCH, THIRD_PARTY = "SENDER_ID_MISMATCH", "THIRD_PARTY_AUTH_ERROR"
_CODES_BY_TEXT: Mapping[str, re.Pattern[str]] = {
    MISMATCH: re.compile(r"\bsender ?id mismatch\b|\bmismatch(?:ed)? ?sender ?id\b", re.IGNORECASE),
    THIRD_PARTY: re.compile(r"auth\w* error from (?:apns|web push)", re.IGNORECASE),
}
"""Texts of errors that lack their code."""
FCM_CODES = frozenset({"UNREGISTERED", "QUOTA_EXCEEDED", MISMATCH, THIRD_PARTY})
"""FCM's codes that no status name of Google equals."""
RECENT_SUCCESS_PERIOD = timedelta(hours=1)
"""If FCM accepted a message within this time, a mismatch is the device's."""
ANY_ERROR, CLIENT_ERROR = range(400, 600), range(400, 500)
QUOTA_PAUSE = 60.0
"""Seconds; Google's recommendation for a quota error without Retry-After."""
MAX_CODE = 100
APNS_DEVICE_REASONS = frozenset(
    {"BadDeviceToken", "DeviceTokenNotForTopic", "ExpiredToken", "Unregistered"}
)
"""Apple's reasons against a device token: invalid, of another app or environment, or expired."""
APNS_KEY_REASONS = frozenset(
    {
        "BadCertificate",
        "BadCertificateEnvironment",
        "BadEnvironmentKeyInToken",
        "BadEnvironmentKeyIdInToken",
        "BadTopic",
        "ExpiredProviderToken",
        "Forbidden",
        "InvalidProviderToken",
        "MissingProviderToken",
        "MissingTopic",
        "TooManyProviderTokenUpdates",
        "TopicDisallowed",
        "TopicMismatch",
        "UnrelatedKeyIdInToken",
    }
)
"""Apple's reasons against the key, the certificate, or the app's bundle ID in Firebase."""
APNS_SERVER_REASONS = frozenset(
    {"IdleTimeout", "InternalServerError", "ServiceUnavailable", "Shutdown"}
)
ACCOUNT_REASONS = frozenset(
    {
        "ACCESS_TOKEN_SCOPE_INSUFFICIENT",
        "BILLING_DISABLED",
        "CONSUMER_INVALID",
        "CONSUMER_SUSPENDED",
        "IAM_PERMISSION_DENIED",
        "SERVICE_DISABLED",
    }
)
"""Google's reasons against the project or its service account."""
ACCOUNT_TEXT = r"permission '|has not been used in project|caller does not have permission"


class QuotaOwner(StrEnum):
    """Whose quota is used up."""

    DEVICE = "device"
    """A device or a topic has got too many messages."""
    PROJECT = "project"


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
    info: str | None = None
    """Google's reason, such as ``IAM_PERMISSION_DENIED``."""
    apns: str | None = None
    """The reason of Apple's push service, such as ``BadDeviceToken``."""
    quota: QuotaOwner | None = None
    """None if the response doesn't say."""
    pause: float | None = None
    """Seconds that the response asks to wait."""


def read_refusal(response: http.Response) -> Refusal:
    """Return what is readable of an error response."""
    error = http.as_object(http.decode_object(response.body).get("error"))
    found = error.get("details")
    details = (
        [detail for detail in found if isinstance(detail, dict)] if isinstance(found, list) else []
    )
    text = _text(error.get("message")) or ""
    name = _text(error.get("status"))
    code = (_detail(details, _FCM_ERROR, "errorCode") or "").upper() or None
    if code is None:
        by_text = (code for code, pattern in _CODES_BY_TEXT.items() if pattern.search(text))
        code = name if name in FCM_CODES else next(by_text, None)
    return Refusal(
        status=response.status,
        name=name,
        code=code,
        fields=tuple(_fields(details)),
        text=text,
        info=_detail(details, _ERROR_INFO, "reason"),
        apns=_detail(details, _APNS_ERROR, "reason"),
        quota=_quota_owner(details, text),
        pause=_pause(_detail(details, _RETRY_INFO, "retryDelay")),
    )


def _pause(text: str | None) -> float | None:
    found = _DURATION.fullmatch(text or "")
    return http.clamp_pause(float(found[1])) if found else None


def _detail(details: Sequence[Mapping[str, Any]], kind: str, name: str) -> str | None:
    return next((_text(d[name]) for d in details if _has_type(d, kind) and name in d), None)


def _quota_owner(details: Sequence[Mapping[str, Any]], text: str) -> QuotaOwner | None:
    """Return whose quota the violations, the metadata, or the text of an error name.

    The subject of a device's quota may be the project, so that a device in any of them counts.
    """
    texts = [text]
    for detail in details:
        violations = detail.get("violations") if _has_type(detail, _QUOTA_FAILURE) else None
        for item in violations if isinstance(violations, list) else ():
            violation = http.as_object(item)
            subject = _text(violation.get("subject")) or ""
            texts += [re.split("[:/]", subject)[0], _text(violation.get("description")) or ""]
        if _has_type(detail, _ERROR_INFO):
            metadata = http.as_object(detail.get("metadata"))
            texts += [_text(metadata.get("quota_limit")) or ""]
    # As in SendsPerMinutePerProject and DEVICE_MESSAGE_RATE_EXCEEDED.
    words = (_WORD_LIMIT.sub(" ", _PROJECT_NAME.sub("", text)) for text in texts)
    if any(map(_OF_DEVICE.search, words)):
        return QuotaOwner.DEVICE
    return QuotaOwner.PROJECT if any(map(_OF_PROJECT.search, texts)) else None


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None


def _has_type(detail: Mapping[str, Any], kind: str) -> bool:
    name = detail.get("@type")
    return isinstance(name, str) and name.rpartition("/")[2] == kind


def _fields(details: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for detail in details:
        violations = detail.get("fieldViolations") if _has_type(detail, _BAD_REQUEST) else None
        for item in violations if isinstance(violations, list) else ():
            name = http.as_object(item).get("field")
            if isinstance(name, str):
                yield name


class SenderHistory:
    """When FCM last accepted a message of one account from this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._accepted_at: datetime | None = None

    def record_accepted(self, *, now: datetime) -> None:
        """Record an accepted message."""
        with self._lock:
            self._accepted_at = max(now, self._accepted_at or now)

    def is_proven(self, *, now: datetime) -> bool:
        """Return whether the account has proven itself within the last hour."""
        with self._lock:
            at = self._accepted_at
        return at is not None and now - at <= RECENT_SUCCESS_PERIOD


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
    infos: Collection[str] | None = None
    apns: Collection[str | None] | None = None
    """Apple's reasons; None among them stands for an error without one."""
    quota: QuotaOwner | None = None
    is_proven: bool | None = None
    """Whether the account has proven itself within the last hour."""
    action: RecipientAction | None = None
    pause: float | None = None
    """Seconds to wait if the response has no Retry-After."""
    reach: Reach | None = None
    """None: that of ``kind``."""
    is_platform_only: bool = False
    """At most the device's platform is unavailable."""
    needs_new_token: bool = False
    """The access token is invalid: fetch another one and send again."""

    def matches(self, refusal: Refusal, *, is_proven: bool) -> bool:
        """Return whether a response meets all conditions of the rule."""
        return (
            refusal.status in self.statuses
            and self.is_proven in (None, is_proven)
            and self.name in (None, refusal.name)
            and self.code in (None, refusal.code)
            and self.quota in (None, refusal.quota)
            and (self.infos is None or refusal.info in self.infos)
            and (self.apns is None or refusal.apns in self.apns)
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
        is_proven=True,
        action=RecipientAction.SUSPECT,
        reach=Reach.UNCERTAIN,
    ),
    FcmRule(
        "any other SENDER_ID_MISMATCH",
        CLIENT_ERROR,
        Kind.UNAVAILABLE,
        "The device and the service account belong to different Firebase projects.",
        code=MISMATCH,
        reach=Reach.UNCERTAIN,
    ),
    FcmRule(
        "an error of APNs about the device token, such as BadDeviceToken",
        CLIENT_ERROR,
        Kind.INVALID_RECIPIENT,
        "Apple rejected the device token",
        apns=APNS_DEVICE_REASONS,
        action=RecipientAction.SUSPECT,
    ),
    FcmRule(
        "TooManyRequests of APNs",
        CLIENT_ERROR,
        Kind.TRANSIENT,
        "Apple limits the messages to this device.",
        FailureCode.RECIPIENT_RATE_LIMITED,
        apns={"TooManyRequests"},
        pause=QUOTA_PAUSE,
        reach=Reach.RECIPIENT,
    ),
    FcmRule(
        "THIRD_PARTY_AUTH_ERROR, with a 401",
        CLIENT_ERROR,
        Kind.UNAVAILABLE,
        "Apple's or the browser's push service rejected the key configured in Firebase.",
        code=THIRD_PARTY,
        is_platform_only=True,
        reach=Reach.UNCERTAIN,
    ),
    FcmRule(
        "an error of APNs about the key or the bundle ID, such as TopicDisallowed",
        CLIENT_ERROR,
        Kind.UNAVAILABLE,
        "Apple rejected the key or the bundle ID configured in Firebase.",
        apns=APNS_KEY_REASONS,
        is_platform_only=True,
        reach=Reach.UNCERTAIN,
    ),
    FcmRule(
        "an error of Apple's server, such as InternalServerError",
        ANY_ERROR,
        Kind.TRANSIENT,
        "Apple's push service failed.",
        apns=APNS_SERVER_REASONS,
        reach=Reach.RECIPIENT,
    ),
    FcmRule(
        "PayloadTooLarge of APNs",
        CLIENT_ERROR,
        Kind.PERMANENT,
        "The message exceeds Apple's size limit.",
        FailureCode.TOO_LARGE,
        apns={"PayloadTooLarge"},
    ),
    FcmRule(
        "429 about the quota of a device or topic",
        (429,),
        Kind.TRANSIENT,
        "Firebase limits the messages to this device.",
        FailureCode.RECIPIENT_RATE_LIMITED,
        quota=QuotaOwner.DEVICE,
        pause=QUOTA_PAUSE,
        reach=Reach.RECIPIENT,
    ),
    FcmRule(
        "429 about the quota of the project",
        (429,),
        Kind.TRANSIENT,
        "Rate limited by Firebase.",
        FailureCode.RATE_LIMITED,
        quota=QuotaOwner.PROJECT,
        pause=QUOTA_PAUSE,
    ),
    FcmRule(
        "any other QUOTA_EXCEEDED",
        ANY_ERROR,
        Kind.TRANSIENT,
        "Rate limited by Firebase.",
        FailureCode.RATE_LIMITED,
        code="QUOTA_EXCEEDED",
        pause=QUOTA_PAUSE,
        reach=Reach.UNCERTAIN,
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
        "400 INVALID_ARGUMENT with a text about the registration token",
        (400,),
        Kind.INVALID_RECIPIENT,
        "Device token malformed",
        name="INVALID_ARGUMENT",
        text=r"not a valid FCM registration token|\binvalid ?registration\b|\bnot ?registered\b"
        r"|\bmessage\.token\b",
        action=RecipientAction.SUSPECT,
    ),
    FcmRule(
        "400 INVALID_ARGUMENT that names no field",
        (400,),
        Kind.INVALID_RECIPIENT,
        "Firebase or Apple rejected the device token",
        name="INVALID_ARGUMENT",
        apns={None},
        # Google names a wrong field.
        text=r"\A(?:request contains an )?invalid argument\.?\Z",
        action=RecipientAction.SUSPECT,
    ),
    FcmRule(
        "400 with a text about a too large message",
        (400,),
        Kind.PERMANENT,
        "The message exceeds Firebase's size limit.",
        FailureCode.TOO_LARGE,
        text=r"\b(?:message|payload)\b.{0,20}\b(?:too (?:big|large)|exceeds)\b"
        r"|\bmessage ?too ?big\b|\bsize\b.{0,20}\bexceeded\b",
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
        "any other 401, or 407",
        (401, 407),
        Kind.UNAVAILABLE,
        "A proxy before Firebase requires credentials.",
    ),
    FcmRule(
        "403 with a reason such as IAM_PERMISSION_DENIED or SERVICE_DISABLED",
        (403,),
        Kind.UNAVAILABLE,
        "The service account lacks permission for this Firebase project.",
        infos=ACCOUNT_REASONS,
    ),
    FcmRule(
        "403 with a text about a missing permission",
        (403,),
        Kind.UNAVAILABLE,
        "The service account lacks permission for this Firebase project.",
        text=ACCOUNT_TEXT,
    ),
    FcmRule(
        "any other 403",
        (403,),
        Kind.UNAVAILABLE,
        "Firebase, or a proxy before it, refused the message or the service account.",
        reach=Reach.UNCERTAIN,
    ),
    FcmRule(
        "404 with the text NotRegistered",
        (404,),
        Kind.INVALID_RECIPIENT,
        "Device token invalid",
        text=r"\bnot ?registered\b",
        action=RecipientAction.SUSPECT,
    ),
    FcmRule(
        "404 with a text about the project",
        (404,),
        Kind.UNAVAILABLE,
        "Unknown Firebase project.",
        text=r"\bproject\b",
        reach=Reach.UNCERTAIN,
    ),
    FcmRule(
        "any other 404 NOT_FOUND, if the project accepted one within the hour",
        (404,),
        Kind.INVALID_RECIPIENT,
        "Device token invalid",
        name="NOT_FOUND",
        is_proven=True,
        action=RecipientAction.SUSPECT,
        reach=Reach.UNCERTAIN,
    ),
    FcmRule(
        "any other 404 NOT_FOUND",
        (404,),
        Kind.UNAVAILABLE,
        "Unknown Firebase project or device.",
        name="NOT_FOUND",
        reach=Reach.UNCERTAIN,
    ),
    FcmRule("any other 404", (404,), Kind.UNAVAILABLE, "No FCM API at the configured URL."),
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
        reach=Reach.UNCERTAIN,
    ),
    FcmRule(
        "408, 409 ABORTED, 425, or 499 CANCELLED",
        (408, 409, 425, 499),
        Kind.TRANSIENT,
        "Firebase, or a proxy before it, gave up the request.",
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


def rule_for(refusal: Refusal, *, is_proven: bool = False) -> FcmRule:
    """Return the first matching rule. The last rule matches everything."""
    return next(rule for rule in RULES if rule.matches(refusal, is_proven=is_proven))


def classify_response(
    response: http.Response,
    *,
    sender: SenderHistory,
    token: str,
    scope: str | None,
    now: datetime,
) -> ProviderError:
    """Return the error for a response. The device token is redacted from its text."""
    refusal = read_refusal(response)
    rule = rule_for(refusal, is_proven=sender.is_proven(now=now))
    provider_code = refusal.code or refusal.name
    provider_response = ProviderResponse(
        status=response.status,
        code=http.redact(provider_code)[:MAX_CODE] if provider_code else None,
        excerpt=http.excerpt(response.text.replace(token, "[token]") if token else response.text),
    )
    pauses = (http.retry_after_seconds(response.headers, now=now), refusal.pause, rule.pause)
    return build_error(
        rule.kind,
        rule.reason if rule.action is not None else f"{rule.reason} ({response.status})",
        code=rule.failure_code,
        action=rule.action or RecipientAction.SUSPECT,
        response=provider_response,
        retry_after=next((pause for pause in pauses if pause is not None), None),
        scope=scope if rule.is_platform_only else None,
        reach=rule.reach,
    )
