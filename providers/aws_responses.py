"""Reads the responses of AWS: the ID of what was accepted, and errors by their names and texts."""

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from http import HTTPStatus

from domain.errors import (
    FailureCode,
    ProviderError,
    ProviderResponse,
    Reach,
    RecipientAction,
)

from . import http
from .json_items import read_text
from .response_rules import ResponseKind as Kind
from .response_rules import ResponseRule, build_error, classify

MIN_ERROR = 400
"""The lowest status of an error."""
MAX_NAME = 100
"""Characters of a name. AWS's are shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsError:
    """What an error response of AWS says."""

    name: str
    """Such as ``ThrottlingException``; empty if it has none."""
    text: str
    reason: str = ""
    """Such as ``RESOURCE_NOT_ACTIVE``, in the errors of some services."""
    members: Sequence[str] = ()
    """What it names of the request, in lower case."""

    @property
    def code(self) -> str:
        """What tells most of it: the reason, or else the name."""
        return self.reason or self.name


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """One row of a table: conditions, and the class of the errors that meet them all."""

    names: Sequence[str]
    """Any of these names."""
    kind: Kind
    message: str
    code: FailureCode | None = None
    _: KW_ONLY
    about: str = ""
    """What the error's text is about, for the documentation."""
    words: str = ""
    """Regular expression for a part of the error's text, in lower case."""
    reasons: Sequence[str] = ()
    """Any of these reasons. Empty: any, or none."""
    members: Sequence[str] = ()
    """Members of the request, any of which the error names. Empty: whatever it names."""
    action: RecipientAction = RecipientAction.SUSPECT
    reach: Reach | None = None
    """None: that of ``kind``."""
    is_of_scope: bool = False
    """Whether it concerns the recipient's scope alone, such as a country, if that is known."""

    def matches(self, error: AwsError) -> bool:
        """Return whether an error meets all conditions of the rule."""
        return (
            error.name in self.names
            and (not self.reasons or error.reason in self.reasons)
            and (not self.members or any(name.lower() in error.members for name in self.members))
            and (not self.words or re.search(self.words, error.text.lower()) is not None)
        )


COMMON_RULES: Sequence[ErrorRule] = (
    ErrorRule(
        ("ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded"),
        Kind.TRANSIENT,
        "Rate limited by AWS.",
        FailureCode.RATE_LIMITED,
    ),
    ErrorRule(
        ("InvalidSignatureException", "SignatureDoesNotMatch"),
        Kind.UNAVAILABLE,
        "AWS rejected the time of the signature: the clock of this machine is wrong.",
        about="the time",
        words=r"signature expired|not yet current",
    ),
    ErrorRule(
        ("RequestExpired", "RequestTimeTooSkewed", "RequestInTheFuture"),
        Kind.UNAVAILABLE,
        "AWS rejected the time of the signature: the clock of this machine is wrong.",
    ),
    ErrorRule(
        (
            "InvalidSignatureException",
            "SignatureDoesNotMatch",
            "IncompleteSignature",
            "IncompleteSignatureException",
            "MissingAuthenticationToken",
            "MissingAuthenticationTokenException",
        ),
        Kind.UNAVAILABLE,
        "AWS rejected the signature: the secret access key or the region is wrong.",
    ),
    ErrorRule(
        ("UnrecognizedClientException", "InvalidClientTokenId"),
        Kind.UNAVAILABLE,
        "AWS doesn't know the access key or its session token.",
    ),
    ErrorRule(
        ("ExpiredToken", "ExpiredTokenException"),
        Kind.UNAVAILABLE,
        "The session token of AWS has expired.",
    ),
    ErrorRule(
        ("AccessDenied", "AccessDeniedException", "NotAuthorized", "OptInRequired"),
        Kind.UNAVAILABLE,
        "The AWS user or account lacks a permission.",
    ),
    ErrorRule(
        ("UnknownOperationException", "InvalidAction"),
        Kind.UNAVAILABLE,
        "The configured URL belongs to another service of AWS.",
    ),
)
"""Errors of every service. They follow those of the service."""
STATUS_RULES: Sequence[ResponseRule] = (
    ResponseRule((429,), Kind.TRANSIENT, "Rate limited by AWS.", FailureCode.RATE_LIMITED),
    ResponseRule((408,), Kind.TRANSIENT, "AWS did not receive the whole request in time."),
    ResponseRule(
        (*range(300, 400), 401, 403, 404, 405),
        Kind.UNAVAILABLE,
        "AWS rejected the configured account or URL.",
    ),
    ResponseRule(
        (413,), Kind.PERMANENT, "The message exceeds AWS's size limit.", FailureCode.TOO_LARGE
    ),
)
"""Responses without a known error."""


def read_error(response: http.Response) -> AwsError:
    """Return what an error response says, in any of the forms of AWS's JSON protocols."""
    body = http.decode_object(response.body)
    header = response.headers.get("x-amzn-errortype", "")
    name = header or read_text(body, "__type") or read_text(body, "code") or ""
    listed = body.get("Fields")
    members = (
        read_text(item, "Name")
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict)
    )
    return AwsError(
        # Either may have a namespace before a #, and a URL after a colon.
        name=name.partition(":")[0].rpartition("#")[2][:MAX_NAME],
        text=read_text(body, "message", is_prose=True)
        or read_text(body, "Message", is_prose=True)
        or "",
        reason=read_text(body, "Reason", limit=MAX_NAME) or "",
        members=tuple(member.lower() for member in members if member),
    )


def accepted_id(response: http.Response, pattern: re.Pattern[str]) -> str | None:
    """Return the ID of an accepted message, or None for another response."""
    if response.status != HTTPStatus.OK:
        return None
    found = http.decode_object(response.body).get("MessageId")
    return found if isinstance(found, str) and pattern.fullmatch(found) else None


def classify_response(
    rules: Sequence[ErrorRule],
    response: http.Response,
    *,
    now: datetime,
    scope: str | None = None,
) -> ProviderError:
    """Return the error for a response other than the documented acceptance.

    ``rules`` are those of the service, and ``scope`` is that of the request.
    """
    error = read_error(response)
    provider_response = ProviderResponse(
        status=response.status, code=http.redact(error.code) or None, excerpt=response.excerpt
    )
    pause = http.retry_after_seconds(response.headers, now=now)
    rule = next((rule for rule in (*rules, *COMMON_RULES) if rule.matches(error)), None)
    if rule is None or response.status < MIN_ERROR:
        return classify(STATUS_RULES, response=provider_response, fields=(), retry_after=pause)
    return build_error(
        rule.kind,
        f"{rule.message} ({error.code})",
        code=rule.code,
        action=rule.action,
        response=provider_response,
        retry_after=pause,
        scope=scope or None if rule.is_of_scope else None,
        reach=rule.reach,
    )
