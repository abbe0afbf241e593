"""The OpenAPI schema: made of the same structures that bodies are checked against."""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from access.models import Scope

from ..intake import NotificationRequest
from .devices_answers import DeviceList, DeviceView
from .devices_requests import (
    DeviceChanges,
    DevicePreferencesRequest,
    DeviceReceiptRequest,
    DeviceRequest,
    HeartbeatRequest,
)
from .lists import DEFAULT_PAGE, MOMENTS, TEXTS, VOCABULARIES
from .preview_answers import PreviewView
from .problems import MEDIA_TYPE, ProblemView
from .representations import AttemptList, NotificationList, NotificationView
from .templates_answers import TypeView, VersionList, VersionView
from .templates_requests import TemplateRequest, TypeRequest

REFERENCE = "#/components/schemas/{name}"
ALWAYS = (401, 403, 503)
"""Problems any route may answer with."""


class KeyScheme(OpenApiAuthenticationExtension):
    """How API keys appear in the schema."""

    target_class = "access.authentication.KeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "ntf_<prefix>_<secret>"}


class ChannelsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which channels an action is for; left out: all of them."""

    channels: list[str] | None = None


class UpdatedView(msgspec.Struct, kw_only=True, frozen=True):
    """How many notifications were changed."""

    updated: int


STRUCTURES = (
    NotificationRequest,
    ChannelsRequest,
    NotificationView,
    NotificationList,
    AttemptList,
    UpdatedView,
    DeviceRequest,
    DeviceChanges,
    DevicePreferencesRequest,
    HeartbeatRequest,
    DeviceReceiptRequest,
    DeviceView,
    DeviceList,
    TypeRequest,
    TypeView,
    TemplateRequest,
    VersionView,
    VersionList,
    PreviewView,
    ProblemView,
)


def describe(
    *,
    operation: str,
    scope: Scope,
    response: type[msgspec.Struct] | None,
    status: int = 200,
    request: type[msgspec.Struct] | None = None,
    problems: Sequence[int] = (),
    parameters: Sequence[OpenApiParameter] = (),
) -> Callable[[Any], Any]:
    """Describe a view's method; its docstring is the summary. ``response`` None: without a body."""
    body = _reference(response) if response else None
    responses: dict[Any, Any] = {status: OpenApiResponse(body, HTTPStatus(status).phrase)}
    for code in sorted({*ALWAYS, *problems}):
        responses[code, MEDIA_TYPE] = OpenApiResponse(
            _reference(ProblemView), HTTPStatus(code).phrase
        )
    return extend_schema(
        operation_id=operation,
        request={"application/json": _reference(request)} if request else None,
        responses=responses,
        parameters=list(parameters),
        extensions={"x-scope": scope.value},
    )


def list_parameters(*, without: Sequence[str] = ()) -> list[OpenApiParameter]:
    """Return the parameters of a list of notifications."""
    parameters = [OpenApiParameter(name, str) for name in TEXTS]
    parameters += [
        OpenApiParameter(name, str, enum=[member.value for member in vocabulary])
        for name, vocabulary in VOCABULARIES.items()
    ]
    parameters += [
        OpenApiParameter(name, {"type": "string", "format": "date-time"}) for name in MOMENTS
    ]
    parameters += [
        OpenApiParameter(
            "unread",
            bool,
            description="Delivered in-app and not read; no other channel or delivery_status.",
        ),
        OpenApiParameter(
            "limit",
            {"type": "integer", "minimum": 1, "maximum": 100, "default": DEFAULT_PAGE},
        ),
        OpenApiParameter("cursor", str, description="next or previous of another page."),
    ]
    return [p for p in parameters if p.name not in without]


def identifier(name: str, description: str) -> OpenApiParameter:
    """Return a parameter in the path."""
    return OpenApiParameter(name, str, OpenApiParameter.PATH, description=description)


def add_structures(result: dict[str, Any], **_context: Any) -> dict[str, Any]:
    """Put the structures among the schema's components; for ``POSTPROCESSING_HOOKS``."""
    _references, components = msgspec.json.schema_components(STRUCTURES, ref_template=REFERENCE)
    result.setdefault("components", {}).setdefault("schemas", {}).update(components)
    return result


def _reference(structure: type[msgspec.Struct]) -> Mapping[str, str]:
    return {"$ref": REFERENCE.format(name=structure.__name__)}
