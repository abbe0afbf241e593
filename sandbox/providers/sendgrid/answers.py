"""SendGrid's answers, with its texts as far as they are known."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from math import ceil
from typing import Any

import msgspec

from ...outcomes import Outcome
from ...responses import ProviderResponse, ResponseMode
from .. import network_faults

JSON = "application/json"
ERRORS_PAGE = "http://sendgrid.com/docs/API_Reference/Web_API_v3/Mail/errors.html"
_JSON_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
BAD_ADDRESS = "Does not contain a valid address."
HUGE_BODY_BYTES = 10_000_000
"""The body size of the outcome ``huge``, which a client should not read completely."""
RETRY_AFTER = {"ratelimit-long": "120", "ratelimit-odd": "soon"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One error of a SendGrid answer."""

    message: str
    field: str | None = None
    help: str | None = None

    def __str__(self) -> str:
        return f"{self.message} ({self.field})" if self.field else self.message


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refusal of an unauthorized or invalid request."""

    outcome: str
    status: int
    problems: Sequence[Problem]


def help_url(anchor: str) -> str:
    """Return the URL of a section of SendGrid's page of errors."""
    return f"{ERRORS_PAGE}#{anchor}"


TOO_LARGE = Problem("The JSON payload you have included in your request is too large.")
UNAUTHORISED = Problem("The provided authorization grant is invalid, expired, or revoked")

PROBLEMS = {
    400: Problem(
        BAD_ADDRESS, "personalizations.0.to.0.email", help_url("message.personalizations.to")
    ),
    403: Problem(
        "The from address does not match a verified Sender Identity. Mail cannot be sent until "
        "this error is resolved.",
        "from",
    ),
    413: TOO_LARGE,
    429: Problem("too many requests"),
    500: Problem("Internal Server Error"),
    503: Problem("Service Unavailable"),
}


def refusal(refused: Refusal) -> ProviderResponse:
    """Return a refusal as an HTTP response."""
    return ProviderResponse(
        status=refused.status, body=errors(refused.problems), headers={"Content-Type": JSON}
    )


def acceptance(message_id: str | None, *, manner: ResponseMode) -> ProviderResponse:
    """Return the 202, which has no body, and the message ID in a header."""
    headers = {"Content-Type": "text/plain; charset=utf-8"}
    if message_id is not None:
        headers["X-Message-Id"] = message_id
    return ProviderResponse(status=202, headers=headers, mode=manner)


def failure(outcome: Outcome, *, now: datetime, pause: int) -> ProviderResponse:
    """Return the answer for an outcome with a status other than 202."""
    if reply := network_faults.proxy_response(outcome, "/v3/mail/send"):
        return reply
    headers = {"Content-Type": JSON}
    if outcome.status == HTTPStatus.TOO_MANY_REQUESTS:
        headers |= _rate_limit_headers(outcome, now=now, pause=pause)
    problem = PROBLEMS.get(outcome.status)
    body = errors([problem]) if problem else b""
    return ProviderResponse(
        status=outcome.status,
        body=body.ljust(HUGE_BODY_BYTES) if outcome.name == "huge" else body,
        headers=headers,
        mode=outcome.mode,
    )


def _rate_limit_headers(outcome: Outcome, *, now: datetime, pause: int) -> dict[str, str]:
    headers = {"X-RateLimit-Limit": "600", "X-RateLimit-Remaining": "0"}
    if outcome.name == "ratelimit-date":
        until = now + timedelta(seconds=pause)
        return headers | {"Retry-After": format_datetime(until, usegmt=True)}
    if outcome.name in RETRY_AFTER:
        return headers | {"Retry-After": RETRY_AFTER[outcome.name]}
    reset = str(ceil(now.timestamp()) + pause)
    return headers | {"X-RateLimit-Reset": reset, "Retry-After": str(pause)}


def errors(problems: Sequence[Problem]) -> bytes:
    """Return the JSON body of an error answer."""
    return msgspec.json.encode({"errors": [asdict(problem) for problem in problems]})


def wrong_type(field: str, expected: str, given: Any) -> Problem:
    """Return the error for a field of a wrong type."""
    name = _JSON_TYPES.get(type(given), "object")
    return Problem(f"Invalid type. Expected: {expected}, given: {name}.", field)
