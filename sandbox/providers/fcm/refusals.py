"""The refusals of magic tokens, and of unreadable bodies."""

from collections.abc import Callable, Mapping
from datetime import datetime

from ...outcomes import Outcome
from ..base import IncomingRequest
from . import answers
from .answers import Refusal, Violation, bad_request, fcm_error
from .outcomes import EXPIRED_TOKEN
from .validation import BAD_TTL, INVALID_TOKEN, TOO_LARGE

FORM = "application/x-www-form-urlencoded"
_APNS = {
    "@type": "type.googleapis.com/google.firebase.fcm.v1.ApnsError",
    "statusCode": 403,
    "reason": "InvalidProviderToken",
}
_SIMPLE: Mapping[str, tuple[int, str, str, str]] = {
    "unregistered": (404, "NOT_FOUND", "UNREGISTERED", "Requested entity was not found."),
    "wrong-sender": (403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "SenderId mismatch"),
    "flaky": (500, "INTERNAL", "INTERNAL", "Internal error encountered."),
    "server-error": (500, "INTERNAL", "INTERNAL", "Internal error encountered."),
    "unavailable": (503, "UNAVAILABLE", "UNAVAILABLE", "The service is currently unavailable."),
}
"""Refusals with FCM's error detail alone: HTTP status, its name, FCM's code, message."""
_FIELDS: Mapping[str, Violation] = {
    "invalid": INVALID_TOKEN,
    "bad-field": BAD_TTL,
    "too-large": TOO_LARGE,
}
_BY_PROJECT: Mapping[str, Callable[[str], Refusal]] = {
    "no-permission": lambda project: answers.permission_denied(project, outcome="no-permission"),
    "wrong-project": lambda _: answers.project_not_found(outcome="wrong-project"),
}


def for_outcome(outcome: Outcome, *, project: str, pause: int, now: datetime) -> Refusal:
    """Return the refusal of an outcome."""
    name = outcome.name
    if name in _SIMPLE:
        code, status, fcm_code, message = _SIMPLE[name]
        return Refusal(name, code, status, message, [fcm_error(fcm_code)])
    if name in _FIELDS:
        return answers.invalid(_FIELDS[name], outcome=name)
    if name in _BY_PROJECT:
        return _BY_PROJECT[name](project)
    if name in (EXPIRED_TOKEN, "unauthenticated"):
        return answers.unauthenticated("ACCESS_TOKEN_EXPIRED", outcome=name)
    if name == "third-party-auth":
        return Refusal(
            name,
            401,
            "UNAUTHENTICATED",
            "Auth error from APNS or Web Push Service",
            [fcm_error("THIRD_PARTY_AUTH_ERROR"), _APNS],
        )
    return _quota(name, project=project, pause=pause, now=now)


def too_large(limit: int) -> Refusal:
    """Return the refusal of a body over the limit."""
    return Refusal(
        "too-large",
        400,
        "INVALID_ARGUMENT",
        f"Request payload size exceeds the limit: {limit} bytes.",
    )


def not_json(incoming: IncomingRequest) -> Refusal:
    """Return the refusal of an unreadable body."""
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
    headers = {"ratelimit-date": answers.retry_after(pause, at=now), "ratelimit-bare": {}}.get(
        name, answers.retry_after(pause)
    )
    return Refusal(
        name,
        429,
        "RESOURCE_EXHAUSTED",
        "Quota exceeded for quota metric 'Send requests' and limit 'Send requests per "
        f"minute' of service 'fcm.googleapis.com' for consumer 'projects/{project}'.",
        [
            fcm_error("QUOTA_EXCEEDED"),
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [
                    {"subject": f"project:{project}", "description": "Send requests per minute"}
                ],
            },
        ],
        headers=headers,
    )
