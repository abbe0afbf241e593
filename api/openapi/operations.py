"""``@operation`` declares the scope and the OpenAPI description of a view function."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from django.http.response import HttpResponseBase
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from access.clients.authentication import SafeWrite
from access.models import Scope
from notifyproject.platform.audit import Unaudited

from ..http import idempotency_header
from ..http.body import MAX_BYTES
from ..http.problems import (
    EMPTY_BODY,
    IDEMPOTENCY_KEY_REUSED,
    INSUFFICIENT_SCOPE,
    INVALID_CURSOR,
    INVALID_EVENT_ID,
    INVALID_IDEMPOTENCY_KEY,
    MALFORMED_JSON,
    MEDIA_TYPE,
    MISSING_IDEMPOTENCY_KEY,
    NOT_FOUND,
    RATE_LIMITED,
    STORE_UNAVAILABLE,
    TOO_LARGE,
    UNAUTHENTICATED,
    UNKNOWN_PARAMETER,
    UNSUPPORTED_MEDIA_TYPE,
    VALIDATION_FAILED,
    WRONG_ENDPOINT,
    ProblemType,
    ProblemView,
    status_title,
)

STRUCTURE_REFERENCE = "#/components/schemas/{name}"
CSV_EXAMPLE = "row,problem\r\n4,email: Expected one address such as ada@example.com.\r\n"
S = TypeVar("S", bound=type[msgspec.Struct])
Handler = TypeVar("Handler", bound=Callable[..., HttpResponseBase])


class ApiKeyScheme(OpenApiAuthenticationExtension):
    """Security scheme of API keys."""

    target_class = "access.clients.authentication.KeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "ntf_<prefix>_<secret>"}


class InboxTokenScheme(OpenApiAuthenticationExtension):
    """Security scheme of inbox tokens."""

    target_class = "access.clients.authentication.InboxAuthentication"
    name = "inboxToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The authorization of an operation, and details that drf-spectacular doesn't keep."""

    scope: Scope | None = None
    test_mode: SafeWrite | None = None
    unaudited: Unaudited | None = None
    relies_on_copies: bool = False
    parameters: Sequence[OpenApiParameter] = ()
    problems: Sequence[ProblemType]
    is_body_required: bool = True
    max_bytes: int = MAX_BYTES
    headers: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Headers of a response by its status, apart from those that all responses have."""


operations: dict[str, Operation] = {}
"""The operations by their ID; complete once all views are loaded."""
structures: dict[str, type[msgspec.Struct]] = {}
webhooks: dict[str, Any] = {}  # The requests that the service sends to clients, by name


def register(structure: S) -> S:
    """Add a structure that no operation refers to; a class decorator."""
    structures[structure.__name__] = structure
    return structure


def operation_id(handler: Callable[..., Any]) -> str:
    """Return the ID of an operation: the name of its function in camel case."""
    first, *others = handler.__name__.split("_")
    return first + "".join(word.title() for word in others)


def operation(
    *,
    scope: Scope | None,
    response: type[msgspec.Struct] | None,
    status: int = 200,
    also_status: int | None = None,
    request: type[msgspec.Struct] | None = None,
    is_body_required: bool = True,
    max_bytes: int = MAX_BYTES,
    problems: Sequence[ProblemType] = (),
    parameters: Sequence[OpenApiParameter] = (),
    headers: Mapping[int, Sequence[str]] | None = None,
    test_mode: SafeWrite | None = None,
    unaudited: Unaudited | None = None,
    relies_on_copies: bool = False,
) -> Callable[[Handler], Handler]:
    """Make a function an operation, whose docstring becomes the summary and the description.

    Without ``scope``, it takes an inbox token. Without ``response``, it returns no body.
    ``also_status`` is another status with the same response. ``problems`` are added to those of the
    authentication, the request and the parameters. ``test_mode`` says why a test key may write, and
    ``unaudited`` why a write leaves no audit entry. ``relies_on_copies`` is explained at
    ``ApiView``.
    """
    standard = _standard_problems(scope, request, parameters, is_body_required=is_body_required)
    described = Operation(
        scope=scope,
        test_mode=test_mode,
        unaudited=unaudited,
        relies_on_copies=relies_on_copies,
        parameters=parameters,
        problems=tuple(dict.fromkeys([*standard, *problems])),
        is_body_required=is_body_required,
        max_bytes=max_bytes,
        headers=headers or {},
    )
    body = _reference(response) if response else None
    responses: dict[Any, Any] = {
        code: OpenApiResponse(body, status_title(code)) for code in (status, also_status) if code
    }
    return _describe(
        described, responses, request={"application/json": _reference(request)} if request else None
    )


def event_stream(handler: Handler) -> Handler:
    """Make a function an operation whose response is a stream of server-sent events."""
    last_event_id = OpenApiParameter(
        "Last-Event-ID",
        {"type": "string", "pattern": "^[0-9a-f]{24}$"},
        OpenApiParameter.HEADER,
        description="The id of the last event received.",
    )
    standard = _standard_problems(None, None, (), is_body_required=False)
    described = Operation(
        parameters=[last_event_id],
        problems=(*standard, UNKNOWN_PARAMETER, INVALID_EVENT_ID, WRONG_ENDPOINT),
    )
    events = OpenApiResponse({"type": "string"}, "Server-sent events")
    return _describe(described, {(200, "text/event-stream"): events}, request=None)(handler)


def csv_download(
    *, scope: Scope, parameters: Sequence[OpenApiParameter]
) -> Callable[[Handler], Handler]:
    """Make a function an operation whose response is a CSV file."""
    standard = _standard_problems(scope, None, parameters, is_body_required=False)
    described = Operation(scope=scope, parameters=parameters, problems=tuple(standard))
    file = OpenApiResponse({"type": "string", "examples": [CSV_EXAMPLE]}, "A CSV file")
    return _describe(described, {(200, "text/csv"): file}, request=None)


def _describe(
    described: Operation, responses: Mapping[Any, Any], *, request: Mapping[str, Any] | None
) -> Callable[[Handler], Handler]:
    body = _reference(ProblemView)
    problem_responses = {
        (status, MEDIA_TYPE): OpenApiResponse(body, status_title(status))
        for status in sorted({problem.status for problem in described.problems})
    }

    def decorate(handler: Handler) -> Handler:
        operations[operation_id(handler)] = described
        extend_schema(
            operation_id=operation_id(handler),
            request=request,
            responses={**responses, **problem_responses},
            parameters=list(described.parameters),
            extensions={"x-scope": described.scope.value} if described.scope else {},
        )(handler)
        return handler

    return decorate


def _standard_problems(
    scope: Scope | None,
    request: type[msgspec.Struct] | None,
    parameters: Sequence[OpenApiParameter],
    *,
    is_body_required: bool,
) -> Iterator[ProblemType]:
    yield from (UNAUTHENTICATED, RATE_LIMITED, STORE_UNAVAILABLE, UNKNOWN_PARAMETER)
    if scope is not None:
        yield INSUFFICIENT_SCOPE
    if request is not None:
        yield from (MALFORMED_JSON, TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, VALIDATION_FAILED)
        if is_body_required:
            yield EMPTY_BODY
    for parameter in parameters:
        if parameter.location == OpenApiParameter.PATH:
            yield NOT_FOUND
        elif parameter.location == OpenApiParameter.QUERY:
            yield VALIDATION_FAILED
            if parameter.name == "cursor":
                yield INVALID_CURSOR
        elif parameter.name == idempotency_header.HEADER:
            yield from (INVALID_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_REUSED)
            if parameter.required:
                yield MISSING_IDEMPOTENCY_KEY


def _reference(structure: type[msgspec.Struct]) -> Mapping[str, str]:
    register(structure)
    return {"$ref": STRUCTURE_REFERENCE.format(name=structure.__name__)}
