"""``@describe``: the OpenAPI description of one operation.

It is made of the structures that bodies are checked against.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from access.models import Scope

from ..http.problems import MEDIA_TYPE, ProblemView, status_title

STRUCTURE_REFERENCE = "#/components/schemas/{name}"
COMMON_ERRORS = (401, 403, 429, 503)
"""Problems any route may answer with."""
INBOX_ERRORS = (401, 429, 503)
"""The same, where there are no scopes."""


class ApiKeyScheme(OpenApiAuthenticationExtension):
    """How API keys appear in the schema."""

    target_class = "access.clients.authentication.KeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "ntf_<prefix>_<secret>"}


class InboxTokenScheme(OpenApiAuthenticationExtension):
    """How inbox tokens appear in the schema."""

    target_class = "access.clients.authentication.InboxAuthentication"
    name = "inboxToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}


_structures: dict[str, type[msgspec.Struct]] = {}


def structures() -> Mapping[str, type[msgspec.Struct]]:
    """Return the structures that operations refer to, by name; complete when all views are."""
    return _structures


def describe(
    *,
    operation: str,
    scope: Scope | None,
    response: type[msgspec.Struct] | None,
    status: int = 200,
    also_status: int | None = None,
    request: type[msgspec.Struct] | None = None,
    problems: Sequence[int] = (),
    parameters: Sequence[OpenApiParameter] = (),
) -> Callable[[Any], Any]:
    """Describe a view's method; its docstring is the summary. ``response`` None: without a body.

    ``scope`` None: it takes an inbox token, which opens one inbox and nothing else. ``also_status`` is
    another status of the same answer.
    """
    body = _reference(response) if response else None
    responses: dict[Any, Any] = {
        one: OpenApiResponse(body, status_title(one)) for one in (status, also_status) if one
    }
    codes = {*(COMMON_ERRORS if scope else INBOX_ERRORS)}
    if any(one.location == OpenApiParameter.PATH for one in parameters):
        codes.add(404)
    return extend_schema(
        operation_id=operation,
        request={"application/json": _reference(request)} if request else None,
        responses=responses | _problem_responses({*codes, *problems}),
        parameters=list(parameters),
        extensions={"x-scope": scope.value} if scope else {},
    )


def describe_stream(*, operation: str) -> Callable[[Any], Any]:
    """Describe a method that answers with server-sent events."""
    last = OpenApiParameter(
        "Last-Event-ID",
        {"type": "string", "pattern": "^[0-9a-f]{24}$"},
        OpenApiParameter.HEADER,
        description="The id of the last event that came: a notification's.",
    )
    events = OpenApiResponse({"type": "string"}, "Events, as they happen")
    return extend_schema(
        operation_id=operation,
        request=None,
        responses={(200, "text/event-stream"): events}
        | _problem_responses({*INBOX_ERRORS, 400, 421}),
        parameters=[last],
    )


def _problem_responses(codes: set[int]) -> dict[Any, Any]:
    body = _reference(ProblemView)
    return {(code, MEDIA_TYPE): OpenApiResponse(body, status_title(code)) for code in sorted(codes)}


def _reference(structure: type[msgspec.Struct]) -> Mapping[str, str]:
    _structures[structure.__name__] = structure
    return {"$ref": STRUCTURE_REFERENCE.format(name=structure.__name__)}
