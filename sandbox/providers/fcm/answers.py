"""FCM's answers, with Google's texts as far as they are known."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from typing import Any

from ...outcomes import Outcome
from ...responses import ProviderResponse
from ..base import IncomingRequest
from .outcomes import EXPIRED_TOKEN, NO_NAME, NOT_JSON, RETRY_AFTER, RETRY_INFO
from .validation import BAD_TTL, INVALID_TOKEN, TOO_LARGE, Violation

JSON = {"Content-Type": "application/json; charset=UTF-8"}
HTML = {"Content-Type": "text/html; charset=UTF-8"}
_METHOD = {
    "domain": "googleapis.com",
    "method": "google.firebase.fcm.v1.FcmService.SendMessage",
    "service": "fcm.googleapis.com",
}
_GOOGLE = "type.googleapis.com"
PATH_NOT_FOUND = ProviderResponse(
    status=404,
    body=b"<!DOCTYPE html>\n<html lang=en>\n<title>Error 404 (Not Found)!!1</title>\n",
    headers=HTML,
)
_WRONG_CREDENTIALS = (
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie "
    "or other valid authentication credential. See "
    "https://developers.google.com/identity/sign-in/web/devconsole-project."
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error in Google's format."""

    outcome: str
    code: int
    status: str
    message: str
    details: Sequence[Mapping[str, Any]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """FCM's error code, if any, and the message."""
        codes = [detail["errorCode"] for detail in self.details if "errorCode" in detail]
        return ": ".join([*codes, self.message])


FORM = "application/x-www-form-urlencoded"
_SIMPLE: Mapping[str, tuple[int, str, str, str]] = {
    "unregistered": (404, "NOT_FOUND", "UNREGISTERED", "Requested entity was not found."),
    "wrong-sender": (403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "SenderId mismatch"),
    "flaky": (500, "INTERNAL", "INTERNAL", "Internal error encountered."),
    "server-error": (500, "INTERNAL", "INTERNAL", "Internal error encountered."),
    "unavailable": (503, "UNAVAILABLE", "UNAVAILABLE", "The service is currently unavailable."),
    "ratelimit-bare": (
        429,
        "RESOURCE_EXHAUSTED",
        "QUOTA_EXCEEDED",
        "Resource has been exhausted (e.g. check quota).",
    ),
}
"""Refusals with FCM's error detail alone: HTTP status, its name, FCM's code, message."""
_WITHOUT_CODE: Mapping[str, tuple[int, str, str]] = {
    "not-registered": (404, "NOT_FOUND", "NotRegistered"),
    "forbidden": (403, "PERMISSION_DENIED", "Forbidden"),
    "aborted": (409, "ABORTED", "The operation was aborted."),
    "no-project": (404, "NOT_FOUND", "Project not found or deleted."),
}
"""Refusals without details: HTTP status, its name, message."""
_FIELDS = {"invalid": INVALID_TOKEN, "bad-field": BAD_TTL, "too-large": TOO_LARGE}


def fcm_error(code: str) -> dict[str, Any]:
    """Return the error detail ``FcmError``, which has FCM's error code."""
    return {"@type": f"{_GOOGLE}/google.firebase.fcm.v1.FcmError", "errorCode": code}


def bad_request(violations: Sequence[Violation]) -> dict[str, Any]:
    """Return the error detail ``BadRequest``, which names invalid fields."""
    return {
        "@type": f"{_GOOGLE}/google.rpc.BadRequest",
        "fieldViolations": [
            {
                **({"field": violation.field} if violation.field else {}),
                "description": violation.description,
            }
            for violation in violations
        ],
    }


def error_info(reason: str, domain: str, **metadata: str) -> dict[str, Any]:
    """Return the error detail ``ErrorInfo``, which has a reason and metadata."""
    return {
        "@type": f"{_GOOGLE}/google.rpc.ErrorInfo",
        "reason": reason,
        "domain": domain,
        "metadata": metadata,
    }


def apns_error(status: int, reason: str) -> dict[str, Any]:
    """Return the error detail ``ApnsError``, which has the answer of Apple's push service."""
    kind = f"{_GOOGLE}/google.firebase.fcm.v1.ApnsError"
    return {"@type": kind, "statusCode": status, "reason": reason}


def quota_failure(subject: str, description: str) -> dict[str, Any]:
    """Return the error detail ``QuotaFailure``, which says whose quota is used up."""
    violation = {"subject": subject, "description": description}
    return {"@type": f"{_GOOGLE}/google.rpc.QuotaFailure", "violations": [violation]}


def retry_info(seconds: int) -> dict[str, Any]:
    """Return the error detail ``RetryInfo``, which says when to send again."""
    return {"@type": f"{_GOOGLE}/google.rpc.RetryInfo", "retryDelay": f"{seconds}s"}


def _from_apns(name: str, status: int, reason: str, code: str = "INVALID_ARGUMENT") -> Refusal:
    http_status, state = (400, code) if code == "INVALID_ARGUMENT" else (401, "UNAUTHENTICATED")
    details = [fcm_error(code), apns_error(status, reason)]
    return Refusal(name, http_status, state, "Auth error from APNS or Web Push Service", details)


_APNS: Mapping[str, Refusal] = {
    answer.outcome: answer
    for answer in (
        _from_apns("bad-device-token", 400, "BadDeviceToken"),
        _from_apns("not-for-topic", 400, "DeviceTokenNotForTopic"),
        _from_apns("third-party-auth", 403, "InvalidProviderToken", code="THIRD_PARTY_AUTH_ERROR"),
    )
}
"""Refusals by Apple's push service."""
_TARGET_QUOTAS: Mapping[str, Refusal] = {
    f"ratelimit-{owner}": Refusal(
        f"ratelimit-{owner}",
        429,
        "RESOURCE_EXHAUSTED",
        f"{owner.title()} message rate exceeded.",
        [fcm_error("QUOTA_EXCEEDED"), quota_failure(f"{owner}:x", "Message rate")],
    )
    for owner in ("device", "topic")
}
"""Refusals for the quota of one target."""


def wrong_shape(violation: Violation) -> Refusal:
    """Return the 400 for wrong types."""
    details = [bad_request([violation])]
    return Refusal("invalid-request", 400, "INVALID_ARGUMENT", violation.description, details)


def invalid(violation: Violation, *, outcome: str = "invalid-request") -> Refusal:
    """Return the 400 for a field with an invalid value."""
    details = [fcm_error("INVALID_ARGUMENT"), bad_request([violation])]
    return Refusal(outcome, 400, "INVALID_ARGUMENT", violation.description, details)


def unauthenticated(
    reason: str, *, message: str = _WRONG_CREDENTIALS, outcome: str | None = None
) -> Refusal:
    """Return the 401 for an access token."""
    return Refusal(
        outcome or reason.lower().replace("_", "-"),
        401,
        "UNAUTHENTICATED",
        message,
        [error_info(reason, **_METHOD)],
        headers={"WWW-Authenticate": 'Bearer realm="https://accounts.google.com/"'},
    )


CREDENTIALS_MISSING = unauthenticated(
    "CREDENTIALS_MISSING",
    message=_WRONG_CREDENTIALS.replace(
        "Request had invalid authentication credentials.",
        "Request is missing required authentication credential.",
    ),
)
OUT_OF_SCOPE = Refusal(
    "access-token-scope-insufficient",
    403,
    "PERMISSION_DENIED",
    "Request had insufficient authentication scopes.",
    [error_info("ACCESS_TOKEN_SCOPE_INSUFFICIENT", **_METHOD)],
)
PROJECT_NOT_FOUND = Refusal("wrong-project", 404, "NOT_FOUND", "Requested entity was not found.")


def _permission_denied(project: str) -> Refusal:
    permission = "cloudmessaging.messages.create"
    resource = f"//cloudresourcemanager.googleapis.com/projects/{project}"
    text = f"Permission '{permission}' denied on resource '{resource}' (or it may not exist)."
    metadata = {"permission": permission, "resource": f"projects/{project}"}
    info = error_info("IAM_PERMISSION_DENIED", "iam.googleapis.com", **metadata)
    return Refusal("no-permission", 403, "PERMISSION_DENIED", text, [info])


def for_outcome(outcome: Outcome, *, project: str, pause: int, now: datetime) -> Refusal:
    """Return the refusal for an outcome that is no acceptance."""
    name = outcome.name
    if name in _SIMPLE:
        code, status, fcm_code, message = _SIMPLE[name]
        return Refusal(name, code, status, message, [fcm_error(fcm_code)])
    if name in _FIELDS:
        return invalid(_FIELDS[name], outcome=name)
    if name in ("no-permission", "wrong-project"):
        return _permission_denied(project) if name == "no-permission" else PROJECT_NOT_FOUND
    if name in (EXPIRED_TOKEN, "unauthenticated"):
        return unauthenticated("ACCESS_TOKEN_EXPIRED", outcome=name)
    if name in _WITHOUT_CODE:
        return Refusal(name, *_WITHOUT_CODE[name])
    return (
        _APNS.get(name)
        or _TARGET_QUOTAS.get(name)
        or _quota(name, project=project, pause=pause, now=now)
    )


def too_large(limit: int) -> Refusal:
    """Return the 400 for a body of more than ``limit`` bytes."""
    text = f"Request payload size exceeds the limit: {limit} bytes."
    return Refusal("too-large", 400, "INVALID_ARGUMENT", text)


def not_json(incoming: IncomingRequest) -> Refusal:
    """Return the 400 for a body that is not JSON."""
    beginning = (incoming.body or b"")[:40].decode(errors="replace")
    kind = incoming.headers.get("content-type", "").partition(";")[0].strip().lower()
    problem = (
        f'Unknown name "{beginning}": Cannot bind query parameter. Field could not be found in '
        "request message."
        if kind == FORM
        else f"Unexpected token.\n{beginning}\n^"
    )
    text = f"Invalid JSON payload received. {problem}"
    return Refusal("not-json", 400, "INVALID_ARGUMENT", text, [bad_request([Violation("", text)])])


def _quota(name: str, *, project: str, pause: int, now: datetime) -> Refusal:
    if name == RETRY_INFO:
        details = [fcm_error("QUOTA_EXCEEDED"), retry_info(pause)]
        return Refusal(name, 429, "RESOURCE_EXHAUSTED", "Quota exceeded.", details)
    headers = retry_after(pause, at=now if name == "ratelimit-date" else None)
    text = (
        "Quota exceeded for quota metric 'Send requests' and limit 'Send requests per "
        f"minute' of service 'fcm.googleapis.com' for consumer 'projects/{project}'."
    )
    limit = {"quota_limit": "SendsPerMinutePerProject", "quota_unit": "1/min/{project}"}
    details = [
        fcm_error("QUOTA_EXCEEDED"),
        quota_failure(f"project:{project}", "Send requests per minute"),
        error_info("RATE_LIMIT_EXCEEDED", "googleapis.com", **limit),
    ]
    return Refusal(name, 429, "RESOURCE_EXHAUSTED", text, details, headers)


def success(outcome: Outcome, name: str) -> ProviderResponse:
    """Return the 200 for a message with this name (its ID)."""
    if outcome.name == NOT_JSON:
        return ProviderResponse(status=200, body=b"<html></html>", headers=HTML)
    if outcome.name == NO_NAME:
        return ProviderResponse(status=200, body=b"{}\n", headers=JSON)
    headers = {**JSON, **(retry_after(1) if outcome.name == RETRY_AFTER else {})}
    return ProviderResponse(
        status=200, body=_json({"name": name}), headers=headers, mode=outcome.mode
    )


def refusal(refused: Refusal) -> ProviderResponse:
    """Return a refusal as an HTTP response."""
    error = {"code": refused.code, "message": refused.message, "status": refused.status}
    if refused.details:
        error["details"] = list(refused.details)
    return ProviderResponse(
        status=refused.code, body=_json({"error": error}), headers={**JSON, **refused.headers}
    )


def retry_after(pause: int, *, at: datetime | None = None) -> dict[str, str]:
    """Return a ``Retry-After`` of ``pause`` seconds, as a date if ``at`` (now) is given."""
    if at is None:
        return {"Retry-After": str(pause)}
    end = (at + timedelta(seconds=pause + 1)).replace(microsecond=0)
    return {"Retry-After": format_datetime(end, usegmt=True)}


def _json(body: Any) -> bytes:
    return json.dumps(body, indent=2, ensure_ascii=False).encode() + b"\n"
