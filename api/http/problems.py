"""Errors as RFC 9457 problems: every answer that is not a success is one of these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec
import structlog
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.template.loader import select_template
from pymongo.errors import PyMongoError
from rest_framework import exceptions
from rest_framework.response import Response

from access.clients.authentication import TestKeyError
from notifications.intake.requests import (
    AlreadyNotifiedError,
    KeyReusedError,
    OverloadedError,
    RepeatedItemError,
)
from notifications.resend.actions import InvalidStateError
from notifications.validation import FieldProblem, InvalidRequestError

log = structlog.get_logger(__name__)
MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 5
"""What a caller is asked to wait when the store cannot be reached."""
_TITLES = {
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "Request Entity Too Large",
    HTTPStatus.UNPROCESSABLE_ENTITY: "Unprocessable Entity",
}
"""Statuses that Python 3.13 renamed: the API says the same with every Python."""


def status_title(status: int) -> str:
    """Return the name of an HTTP status, as a problem and the description have it."""
    http_status = HTTPStatus(status)
    return _TITLES.get(http_status, http_status.phrase)


class FieldErrorView(msgspec.Struct, kw_only=True, frozen=True):
    """One thing that is wrong with a request. No value is repeated."""

    pointer: str
    """JSON Pointer to the field."""
    code: str
    detail: str


class ProblemView(msgspec.Struct, kw_only=True, frozen=True):
    """RFC 9457 problem details: what every answer that is not a success looks like."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    """For programs; it does not change."""
    request_id: str | None
    """For whoever looks it up in the logs."""
    errors: list[FieldErrorView]


@dataclass(frozen=True, kw_only=True)
class ApiError(Exception):
    """An answer that is not a success."""

    status: int
    code: str
    detail: str
    errors: Sequence[FieldProblem] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self, request: HttpRequest) -> ProblemView:
        """Return the problem document."""
        return ProblemView(
            type=f"urn:notifications:problem:{self.code}",
            title=status_title(self.status),
            status=self.status,
            detail=self.detail,
            instance=request.path,
            code=self.code,
            request_id=getattr(request, "request_id", None),
            errors=[
                FieldErrorView(pointer=e.pointer, code=e.code, detail=e.detail) for e in self.errors
            ],
        )


def bad_request(code: str, detail: str) -> ApiError:
    """Return 400: it cannot be parsed."""
    return ApiError(status=400, code=code, detail=detail)


def validation_failed(errors: Sequence[FieldProblem]) -> ApiError:
    """Return 422: it was parsed and makes no sense."""
    detail = "The request is understood and not valid; errors says what is wrong."
    return ApiError(status=422, code="invalid_request", detail=detail, errors=errors)


def not_found() -> ApiError:
    """Return 404: it is not there, or not the caller's."""
    return ApiError(status=404, code="not_found", detail="There is no such thing.")


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response:
    """Turn whatever a view raised into a problem; for ``REST_FRAMEWORK["EXCEPTION_HANDLER"]``."""
    problem = to_api_error(error)
    request = context["request"]
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        # By its name: some paths hold an address.
        route = getattr(request.resolver_match, "view_name", None)
        log.error("request_failed", route=route, code=problem.code, exc_info=error)
    response = Response(
        problem.body(request._request), status=problem.status, content_type=MEDIA_TYPE
    )
    for name, value in problem.headers.items():
        response[name] = value
    return response


def to_api_error(error: Exception) -> ApiError:
    """Return what an error is answered with."""
    if isinstance(error, ApiError):
        return error
    problem: ApiError | None = None
    match error:
        case InvalidRequestError():
            problem = validation_failed(error.problems)
        case AlreadyNotifiedError() | RepeatedItemError() | InvalidStateError():
            problem = _conflict(error)
        case KeyReusedError():
            problem = ApiError(
                status=422,
                code="idempotency_key_reused",
                detail="This Idempotency-Key came with a different request before.",
            )
        case OverloadedError():
            problem = ApiError(
                status=503,
                code="overloaded",
                detail="Too much waits to be sent: bring it again later.",
                headers={"Retry-After": str(int(error.retry_after.total_seconds()))},
            )
        case PyMongoError():
            problem = ApiError(
                status=503,
                code="store_unavailable",
                detail="The request was not accepted: the store cannot promise to keep it now.",
                headers={"Retry-After": str(RETRY_SECONDS)},
            )
        case TestKeyError():
            problem = ApiError(
                status=403, code=TestKeyError.default_code, detail=TestKeyError.default_detail
            )
        case Http404() | exceptions.NotFound():
            problem = not_found()
        case exceptions.APIException() | PermissionDenied():
            problem = _from_rest_framework(error)
    return problem or ApiError(
        status=500, code="internal_error", detail="The service failed. The request id tells why."
    )


def _conflict(error: AlreadyNotifiedError | RepeatedItemError | InvalidStateError) -> ApiError:
    match error:
        case AlreadyNotifiedError():
            id_note = f" Its id is {error.notification_id}." if error.notification_id else ""
            code = "already_notified"
            detail = f"This person was told about this entity by this type before.{id_note}"
        case RepeatedItemError():
            code = "repeated_item"
            detail = f"The same as item {error.first_index} of this call: it is accepted once."
        case InvalidStateError():
            code, detail = error.code, str(error)
    return ApiError(status=409, code=code, detail=detail)


def _from_rest_framework(error: Exception) -> ApiError:
    status = getattr(error, "status_code", 403)
    headers = {}
    if auth_header := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = auth_header
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    codes = {
        401: ("unauthenticated", "The key or token for this is missing, or it is not a valid one."),
        403: ("forbidden", "The API key does not have the scope for this."),
        405: ("method_not_allowed", "This address does not take this method."),
        406: ("not_acceptable", "Answers are JSON."),
        415: ("unsupported_media_type", "Send application/json in UTF-8, not compressed."),
        429: ("rate_limited", "Too many requests: wait as long as Retry-After says."),
    }
    code, detail = codes.get(status, ("malformed", "The request cannot be parsed."))
    return ApiError(status=status, code=code, detail=detail, headers=headers)


def bad_request_page(request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
    """Answer what Django refused before any view saw it; for ``handler400``."""
    return error_page(request, bad_request("malformed", "The request cannot be understood."))


def not_found_page(request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
    """Answer an address that is none; for ``handler404``."""
    return error_page(request, not_found())


def forbidden_page(request: HttpRequest, *_: Any, **__: Any) -> HttpResponse:
    """Answer who lacks a permission; for ``handler403``."""
    detail = "The permission for this is missing."
    return error_page(request, ApiError(status=403, code="forbidden", detail=detail))


def server_error_page(request: HttpRequest) -> HttpResponse:
    """Answer when a page failed; for ``handler500``."""
    detail = "The service failed. The request id tells why."
    return error_page(request, ApiError(status=500, code="internal_error", detail=detail))


def error_page(request: HttpRequest, problem: ApiError) -> HttpResponse:
    """Return a problem for programs, and a page that says what to do for people in the admin."""
    if request.path.startswith("/admin/"):
        template = select_template(
            [f"console/errors/{problem.status}.html", "console/errors/problem.html"]
        )
        title = status_title(problem.status)
        page = template.render({"title": title, "detail": problem.detail}, request)
        return HttpResponse(page, status=problem.status)
    return HttpResponse(
        msgspec.json.encode(problem.body(request)), status=problem.status, content_type=MEDIA_TYPE
    )
