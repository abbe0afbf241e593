"""Classifies the errors of AWS by their names, reasons, and texts."""

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any

from domain.errors import FailureCode, ProviderError, ProviderResponse, Reach, RecipientAction

from . import http
from .json_items import read_text
from .response_rules import ResponseKind as Kind
from .response_rules import ResponseRule, build_error, classify

MIN_ERROR = 400
"""The lowest status of an error."""
MAX_NAME = 100
"""Characters of a name or reason. AWS's are shorter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsError:
    """What an error response of AWS says."""

    name: str
    """Such as ``ThrottlingException``; empty if it has none."""
    text: str
    reason: str = ""
    """The code of a reason, which some services give."""
    fields: tuple[str, ...] = ()
    """Names of the rejected members of the request."""

    @property
    def code(self) -> str:
        """The most exact name of the problem."""
        return self.reason or self.name


@dataclass(frozen=True, slots=True)
class ErrorRule:
    """One row of a table: conditions, and the class of the errors that meet them all."""

    names: Sequence[str]
    """Any of these names or reasons."""
    kind: Kind
    message: str
    code: FailureCode | None = None
    _: KW_ONLY
    about: str = ""
    """What the error's text or field is about, for the documentation."""
    words: str = ""
    """Regular expression for a part of the error's text, in lower case."""
    field: str = ""
    """Name of a rejected member."""
    action: RecipientAction = RecipientAction.SUSPECT
    reach: Reach | None = None
    """None: that of ``kind``."""
    is_of_country: bool = False
    """Whether it concerns the recipient's country alone, if the country is known."""

    def matches(self, error: AwsError) -> bool:
        """Return whether an error meets all conditions of the rule."""
        return (
            (error.name in self.names or error.reason in self.names)
            and (not self.words or re.search(self.words, error.text.lower()) is not None)
            and (not self.field or self.field in error.fields)
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
    fields = body.get("Fields")
    return AwsError(
        # Either may have a namespace before a #, and a URL after a colon.
        name=name.partition(":")[0].rpartition("#")[2][:MAX_NAME],
        text=read_text(body, "message", is_prose=True)
        or read_text(body, "Message", is_prose=True)
        or "",
        reason=read_text(body, "Reason", limit=MAX_NAME) or "",
        fields=tuple(_field_names(fields if isinstance(fields, list) else [])),
    )


def classify_response(
    rules: Sequence[ErrorRule],
    response: http.Response,
    *,
    now: datetime,
    scope: str | None = None,
) -> ProviderError:
    """Return the error for a response other than the documented acceptance.

    ``rules`` are those of the service. ``scope``: the country of the recipient, if it is known.
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
        scope=(scope or None) if rule.is_of_country else None,
        reach=rule.reach,
    )


def _field_names(fields: Sequence[Any]) -> list[str]:
    found = (read_text(item, "Name", limit=MAX_NAME) for item in fields if isinstance(item, dict))
    return [name for name in found if name]
