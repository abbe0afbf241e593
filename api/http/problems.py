"""Errors as RFC 9457 problems: the catalogue, the exception, and the error handlers."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from django.core.exceptions import DisallowedHost, PermissionDenied
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import select_template
from pymongo.errors import PyMongoError
from rest_framework import exceptions
from rest_framework.request import Request

from access.clients.authentication import TestKeyError
from callbacks.outbox import StillPendingError
from callbacks.subscriptions import NoCallbackError, TooManySecretsError
from notifications.actions.actions import InvalidStateError
from notifications.catalog.designs import MovedError
from notifications.content.templates import UnknownVersionError, VersionConflictError
from notifications.inbox.actions import UnknownNotificationError
from notifications.intake.replacement import NotReplaceableError
from notifications.intake.requests import (
    AlreadyNotifiedError,
    KeyReusedError,
    OverloadedError,
    RepeatedItemError,
    ScopeRequiredError,
)
from notifications.receipts.device_receipts import NotPushedError
from notifications.validation import FieldProblem, InvalidRequestError
from notifyproject.platform import doc_pages

from .rendering import Response

log = structlog.get_logger(__name__)
MEDIA_TYPE = "application/problem+json"
STORE_ERRORS = (PyMongoError, DatabaseError)
RETRY_SECONDS = 5  # ``Retry-After`` while the database is unavailable
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}", re.ASCII)
"""Names that a problem may quote from a request."""
_STATUS_TITLES = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Request Entity Too Large",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Unprocessable Entity",
}
"""Statuses that Python 3.13 renamed. The OpenAPI document must not depend on the version."""


def status_title(status: int) -> str:
    """Return the name of an HTTP status."""
    http_status = HTTPStatus(status)
    return _STATUS_TITLES.get(http_status, http_status.phrase)


class FieldErrorView(msgspec.Struct, kw_only=True, frozen=True):
    """One invalid field. The value isn't repeated."""

    pointer: str  # JSON Pointer to the field
    code: str
    detail: str


class ProblemView(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """RFC 9457 problem details, the body of every error response."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str  # For programs; stable
    request_id: str | None  # Finds the request in the logs
    errors: list[FieldErrorView]
    notification_id: str | None = None  # The existing notification; with ``already_notified`` only


@dataclass(frozen=True, kw_only=True)
class ApiError(Exception):
    """An exception that becomes an error response."""

    type: "ProblemType"
    detail: str
    errors: Sequence[FieldProblem] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    notification_id: str | None = None

    @property
    def code(self) -> str:
        """The problem type's code."""
        return self.type.code

    @property
    def status(self) -> int:
        """The problem type's HTTP status."""
        return self.type.status

    def body(self, request: HttpRequest) -> ProblemView:
        """Return the problem document."""
        return ProblemView(
            type=doc_pages.problem_type(self.code),
            title=self.type.title,
            status=self.status,
            detail=self.detail,
            instance=request.path,
            code=self.code,
            request_id=getattr(request, "request_id", None),
            errors=[
                FieldErrorView(pointer=e.pointer, code=e.code, detail=e.detail) for e in self.errors
            ],
            notification_id=self.notification_id,
        )


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A kind of problem in the catalogue. ``detail`` may contain placeholders."""

    code: str
    status: int
    title: str
    detail: str
    example: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Values of the placeholders in the OpenAPI document."""

    def error(
        self,
        detail: str | None = None,
        *,
        errors: Sequence[FieldProblem] = (),
        headers: Mapping[str, str] | None = None,
        retry_after: int | None = None,
        **values: Any,
    ) -> ApiError:
        """Return an error of this type. ``values`` fill the placeholders of its detail.

        ``detail`` replaces the catalogue's. ``retry_after`` is in seconds.
        """
        all_headers = dict(headers or {})
        if retry_after is not None:
            all_headers["Retry-After"] = str(retry_after)
        text = detail if detail is not None else self.detail.format(**values)
        return ApiError(type=self, detail=text, errors=errors, headers=all_headers)

    def example_error(self, *, errors: Sequence[FieldProblem] = (), **values: Any) -> ApiError:
        """Return an error for the OpenAPI document. ``values`` override the example's values."""
        return self.error(errors=errors, **{**self.example, **values})


_MALFORMED = "Malformed request"
WRONG_HOST = "The request names a host that isn't in ALLOWED_HOSTS. The log has its name."
BAD_REQUEST = ProblemType("bad_request", 400, _MALFORMED, "The request can't be parsed.")
MALFORMED_JSON = ProblemType(
    "malformed_json",
    400,
    _MALFORMED,
    "Invalid JSON at line {line}, column {column}.",
    {"line": 3, "column": 5},
)
EMPTY_BODY = ProblemType("empty_body", 400, _MALFORMED, "The body is empty; send a JSON object.")
INCOMPLETE_BODY = ProblemType("incomplete_body", 400, _MALFORMED, "The body is incomplete.")
NOT_UTF8 = ProblemType("not_utf8", 400, _MALFORMED, "The body isn't valid UTF-8.")
BYTE_ORDER_MARK = ProblemType("byte_order_mark", 400, _MALFORMED, "Remove the byte order mark.")

_UNSUPPORTED_JSON = "Unsupported JSON"
DUPLICATE_KEY = ProblemType("duplicate_key", 400, _UNSUPPORTED_JSON, "Duplicate object key.")
TOO_DEEP = ProblemType(
    "too_deep", 400, _UNSUPPORTED_JSON, "Nesting exceeds {levels} levels.", {"levels": 20}
)
NUMBER_TOO_LONG = ProblemType(
    "number_too_long",
    400,
    _UNSUPPORTED_JSON,
    "A number has {digits} or more digits.",
    {"digits": 400},
)
NUMBER_TOO_LARGE = ProblemType(
    "number_too_large", 400, _UNSUPPORTED_JSON, "A number exceeds the double range."
)

_INVALID_PARAMETER = "Invalid query parameter"
UNKNOWN_PARAMETER = ProblemType(
    "unknown_parameter", 400, _INVALID_PARAMETER, "Unknown parameter `{name}`.", {"name": "colour"}
)
REPEATED_PARAMETER = ProblemType(
    "repeated_parameter",
    400,
    _INVALID_PARAMETER,
    "Parameter `{name}` is repeated.",
    {"name": "limit"},
)
INVALID_CURSOR = ProblemType(
    "invalid_cursor", 400, _INVALID_PARAMETER, "Invalid or expired cursor."
)

_INVALID_HEADER = "Invalid header"
MISSING_IDEMPOTENCY_KEY = ProblemType(
    "missing_idempotency_key", 400, _INVALID_HEADER, "`Idempotency-Key` is required."
)
INVALID_IDEMPOTENCY_KEY = ProblemType(
    "invalid_idempotency_key",
    400,
    _INVALID_HEADER,
    "`Idempotency-Key` must be 1 to 255 visible ASCII characters.",
)
INVALID_EVENT_ID = ProblemType(
    "invalid_event_id", 400, _INVALID_HEADER, "`Last-Event-ID` must be 24 hex digits."
)

UNAUTHENTICATED = ProblemType(
    "unauthenticated",
    401,
    "Authentication required",
    "The API key or inbox token is missing or invalid.",
)
_PERMISSION_DENIED = "Permission denied"
INSUFFICIENT_SCOPE = ProblemType(
    "insufficient_scope",
    403,
    _PERMISSION_DENIED,
    "The API key needs the scope `{scope}`.",
    {"scope": "recipients:write"},
)
TEST_KEY = ProblemType(
    "test_key", 403, _PERMISSION_DENIED, "Test keys can't change live data. Use a live key."
)
LIVE_KEY = ProblemType(
    "live_key",
    403,
    _PERMISSION_DENIED,
    "Only a test key, which begins with `ntf_test_`, has a test outbox and a test clock.",
)
_INVALID_SIGNATURE = "Invalid webhook signature"
INVALID_SIGNATURE = ProblemType(
    "invalid_signature", 403, _INVALID_SIGNATURE, "The webhook signature is invalid."
)
UNVERIFIED_WEBHOOK = ProblemType(
    "unverified_webhook",
    503,
    "Webhook not verified",
    "The webhook can't be verified now. Send it again later.",
)
INVALID_VERIFY_TOKEN = ProblemType(
    "invalid_verify_token",
    403,
    "Webhook verification failed",
    "The webhook verification token is invalid.",
)
NOT_FOUND = ProblemType(
    "not_found", 404, "Not found", "The resource doesn't exist or belongs to another client."
)
METHOD_NOT_ALLOWED = ProblemType(
    "method_not_allowed", 405, "Method not allowed", "Use {methods}.", {"methods": "GET or POST"}
)
NOT_ACCEPTABLE = ProblemType("not_acceptable", 406, "Not acceptable", "Responses are JSON only.")

ALREADY_NOTIFIED = ProblemType(
    "already_notified",
    409,
    "Duplicate notification",
    "A notification of this type already exists for this recipient and entity.",
)
_NOT_REPLACEABLE = "Too late to replace"
ALREADY_SENDING = ProblemType(
    "already_sending",
    409,
    _NOT_REPLACEABLE,
    "Its sending has begun. What is still pending can be cancelled.",
)
ALREADY_SENT = ProblemType(
    "already_sent", 409, _NOT_REPLACEABLE, "It was sent. Use another key for another message."
)
ALREADY_CANCELLED = ProblemType(
    "already_cancelled",
    409,
    _NOT_REPLACEABLE,
    "It was cancelled or deleted. Use another key.",
)
CLOCK_MOVING = ProblemType(
    "clock_moving",
    409,
    "Clock is moving",
    "Another request moves the clock. Retry after the time in `Retry-After`.",
)
DUPLICATE_ITEM = ProblemType(
    "duplicate_item",
    409,
    "Duplicate item",
    "Identical to item {index} of this request.",
    {"index": 3},
)
INVALID_STATE = ProblemType(
    "invalid_state",
    409,
    "Action not allowed in this state",
    "The current state doesn't allow this action.",
)
RECIPIENT_SUPPRESSED = ProblemType(
    "recipient_suppressed",
    409,
    "Recipient suppressed",
    "The address is suppressed: hard bounce.",
)
_CONTENT_GONE = "Content no longer available"
SENSITIVE_DATA_DESTROYED = ProblemType(
    "sensitive_data_destroyed",
    409,
    _CONTENT_GONE,
    "Its sensitive data was destroyed. Send a new notification.",
)
CONTENT_REMOVED = ProblemType(
    "content_removed",
    409,
    _CONTENT_GONE,
    "Content was removed on {date} by retention. Send a new notification.",
    {"date": "2026-07-01"},
)
_CALLBACK_CONFLICT = "Callback conflict"
CALLBACK_DISABLED = ProblemType(
    "callback_disabled", 409, _CALLBACK_CONFLICT, "The callback endpoint is disabled."
)
CALLBACK_PENDING = ProblemType(
    "callback_pending", 409, _CALLBACK_CONFLICT, "The callback is still being retried."
)
TOO_MANY_SECRETS = ProblemType(
    "too_many_secrets", 409, _CALLBACK_CONFLICT, "Too many secret rotations in 24 hours."
)
RECIPIENT_OPTED_OUT = ProblemType(
    "recipient_opted_out",
    409,
    "Recipient opted out",
    "The recipient opted out. "
    "To lift the suppression, pass `reason=unsubscribed` or `reason=complaint`.",
)
VERSION_CONFLICT = ProblemType(
    "version_conflict",
    409,
    "Concurrent update",
    "Others changed the type, its template, or the design at the same time. Retry.",
)
REVISION_CONFLICT = ProblemType(
    "revision_conflict",
    409,
    "Changed meanwhile",
    "A type has changed since the revision that the request names. See `errors`.",
)

TOO_LARGE = ProblemType(
    "too_large", 413, "Request too large", "The body exceeds {kilobytes} KB.", {"kilobytes": 256}
)
UNSUPPORTED_MEDIA_TYPE = ProblemType(
    "unsupported_media_type",
    415,
    "Unsupported media type",
    "Send uncompressed `application/json` in UTF-8.",
)
WRONG_ENDPOINT = ProblemType(
    "wrong_endpoint",
    421,
    "Misdirected request",
    "Use the stream at {url}.",
    {"url": "https://stream.example.com/api/v1/inbox/stream"},
)
VALIDATION_FAILED = ProblemType(
    "validation_failed", 422, "Validation failed", "One or more fields are invalid. See `errors`."
)
IDEMPOTENCY_KEY_REUSED = ProblemType(
    "idempotency_key_reused",
    422,
    "Idempotency key reused",
    "This key was used with a different request.",
)
RATE_LIMITED = ProblemType(
    "rate_limited", 429, "Rate limit exceeded", "Retry after the time in `Retry-After`."
)
INTERNAL_ERROR = ProblemType(
    "internal_error", 500, "Internal error", "Unexpected error. Report the request ID."
)
OVERLOADED = ProblemType(
    "overloaded",
    503,
    "Service overloaded",
    "The backlog is full. Retry after the time in `Retry-After`.",
)
_UNAVAILABLE = "Service unavailable"
STORE_UNAVAILABLE = ProblemType(
    "store_unavailable",
    503,
    _UNAVAILABLE,
    "The database is unavailable; the request wasn't accepted.",
)
RESTARTING = ProblemType("restarting", 503, _UNAVAILABLE, "The process is restarting.")
TOO_MANY_STREAMS = ProblemType("too_many_streams", 503, _UNAVAILABLE, "Stream limit reached.")

_STATE_TYPES = {
    problem.code: problem
    for problem in (
        INVALID_STATE,
        RECIPIENT_SUPPRESSED,
        SENSITIVE_DATA_DESTROYED,
        CONTENT_REMOVED,
        ALREADY_SENDING,
        ALREADY_SENT,
        ALREADY_CANCELLED,
    )
}
_TYPES_BY_STATUS = {
    problem.status: problem
    for problem in (
        UNAUTHENTICATED,
        INSUFFICIENT_SCOPE,
        METHOD_NOT_ALLOWED,
        NOT_ACCEPTABLE,
        UNSUPPORTED_MEDIA_TYPE,
        RATE_LIMITED,
    )
}
_TYPES_BY_EXCEPTION: Sequence[tuple[tuple[type[Exception], ...], ProblemType, int | None]] = (
    ((KeyReusedError,), IDEMPOTENCY_KEY_REUSED, None),
    (STORE_ERRORS, STORE_UNAVAILABLE, RETRY_SECONDS),
    ((TestKeyError,), TEST_KEY, None),
    ((StillPendingError,), CALLBACK_PENDING, None),
    ((TooManySecretsError,), TOO_MANY_SECRETS, None),
    ((VersionConflictError, MovedError), VERSION_CONFLICT, None),
    (
        (NoCallbackError, UnknownNotificationError, NotPushedError, UnknownVersionError),
        NOT_FOUND,
        None,
    ),
    ((Http404, exceptions.NotFound), NOT_FOUND, None),
)


def validation_failed(errors: Sequence[FieldProblem]) -> ApiError:
    """Return 422 with the invalid fields."""
    return VALIDATION_FAILED.error(errors=errors)


def exception_handler(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """Return the problem for an exception in a view; REST framework's ``EXCEPTION_HANDLER``."""
    problem = to_api_error(error, view=context.get("view"))
    request: Request = context["request"]
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # Logged by the route's name: some paths hold an address.
        route = getattr(request.resolver_match, "view_name", None)
        # During an outage of a store, each request fails alike: its reason says where, and a
        # traceback of each would bury what else happens.
        is_outage = problem.status == HTTPStatus.SERVICE_UNAVAILABLE
        log.error(
            "request_failed",
            route=route,
            code=problem.code,
            reason=type(error).__name__,
            exc_info=None if is_outage else error,
        )
    return problem_response(problem, request._request)


def to_api_error(error: Exception, *, view: Any = None) -> ApiError:
    """Return the error response to an exception; ``view`` is where it was raised."""
    if isinstance(error, ApiError):
        return error
    for exception_types, problem_type, retry_after in _TYPES_BY_EXCEPTION:
        if isinstance(error, exception_types):
            return problem_type.error(retry_after=retry_after)
    problem = INTERNAL_ERROR.error()
    match error:
        case InvalidRequestError():
            problem = validation_failed(error.problems)
        case AlreadyNotifiedError(notification_id=existing_id):
            problem = replace(
                ALREADY_NOTIFIED.error(), notification_id=str(existing_id) if existing_id else None
            )
        case RepeatedItemError():
            problem = DUPLICATE_ITEM.error(index=error.first_index)
        case InvalidStateError() | NotReplaceableError():
            existing_id = getattr(error, "notification_id", None)
            problem = replace(
                _STATE_TYPES[error.code].error(str(error)),
                notification_id=str(existing_id) if existing_id else None,
            )
        case OverloadedError():
            problem = OVERLOADED.error(retry_after=int(error.retry_after.total_seconds()))
        case exceptions.APIException() | PermissionDenied() | ScopeRequiredError():
            problem = _from_rest_framework(error, view)
    return problem


def _from_rest_framework(error: Exception, view: Any) -> ApiError:
    headers = {}
    if auth_header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    problem_type = _TYPES_BY_STATUS.get(getattr(error, "status_code", 403), BAD_REQUEST)
    request = getattr(view, "request", None)
    if problem_type is METHOD_NOT_ALLOWED:
        methods = [name for name in getattr(view, "allowed_methods", ()) if name != "OPTIONS"]
        detail = f"Use {' or '.join(methods)}." if methods else "Use another method."
    elif problem_type is INSUFFICIENT_SCOPE:
        of_view = getattr(view, "scopes", {}).get(request.method) if request else None
        scope = getattr(error, "scope", of_view)
        detail = INSUFFICIENT_SCOPE.detail.format(scope=scope) if scope else "Permission denied."
    else:
        detail = problem_type.detail
    return problem_type.error(detail, headers=headers)


def problem_response(problem: ApiError, request: HttpRequest) -> HttpResponse:
    """Return a problem document."""
    return Response(
        problem.body(request),
        status=problem.status,
        headers=problem.headers,
        content_type=MEDIA_TYPE,
    )


def error_page(problem: ApiError, request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
    """Return an HTML page in the console, and a problem document anywhere else."""
    if request.path.startswith("/admin/"):
        template = select_template(
            [f"console/errors/{problem.status}.html", "console/errors/problem.html"]
        )
        page = template.render({"title": problem.type.title, "detail": problem.detail}, request)
        return HttpResponse(page, status=problem.status, headers=problem.headers)
    return problem_response(problem, request)


# Django's handler400, handler403, handler404 and handler500.
def bad_request_page(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Return the page or problem for a request that Django refuses."""
    detail = WRONG_HOST if isinstance(exception, DisallowedHost) else None
    return error_page(BAD_REQUEST.error(detail), request)


forbidden_page = partial(error_page, INSUFFICIENT_SCOPE.error("Permission denied."))
not_found_page = partial(error_page, NOT_FOUND.error())


def server_error_page(request: HttpRequest) -> HttpResponse:
    """Return the page or problem for the exception that Django handles.

    It comes from where no handler of the API is: middleware, the console, pages, and probes.
    """
    error = sys.exc_info()[1]
    if isinstance(error, (*STORE_ERRORS, MovedError)):
        return error_page(to_api_error(error), request)
    return error_page(INTERNAL_ERROR.error(), request)
