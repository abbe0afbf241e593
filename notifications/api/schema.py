"""The OpenAPI schema: made of the same structures that bodies are checked against."""

from collections.abc import Callable, Mapping, Sequence
from inspect import cleandoc
from typing import Any

import msgspec
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema

from access.models import Scope

from ..broadcasts.requests import BroadcastRequest
from ..catalog.definitions import TypeRequest
from ..intake.requests import NotificationRequest, Timestamp
from . import paging
from .broadcasts_answers import BroadcastList, BroadcastView
from .bulk_answers import BulkView
from .bulk_requests import BulkRequest
from .callbacks_answers import CallbackDeliveryList, CallbackSecretView, CallbackView
from .callbacks_requests import CallbackRequest
from .callbacks_schema import WEBHOOKS, CallbackEvent
from .cleanup_requests import CleanupRequest, CleanupView
from .devices_answers import DeviceList, DeviceView
from .devices_requests import (
    DeviceChanges,
    DevicePreferencesRequest,
    DeviceReceiptRequest,
    DeviceRequest,
    HeartbeatRequest,
)
from .inbox_answers import InboxCounts, InboxItem, InboxList, InboxTokenRequest, InboxTokenView
from .lists import MOMENTS, TEXTS, VOCABULARIES
from .preview_answers import PreviewView
from .problems import MEDIA_TYPE, ProblemView, title_of
from .recipients_answers import ErasureView, ExportView, PersonView, PreferencesView
from .recipients_preferences import PreferencesRequest, WishRequest
from .recipients_requests import PersonRequest
from .representations import AttemptList, NotificationList, NotificationView
from .statistics_answers import StatisticsView
from .suppressions_answers import LiftedView, SuppressionList
from .suppressions_requests import SuppressionRequest
from .templates_answers import TypeView, VersionList, VersionView
from .templates_requests import TemplateRequest
from .topics_answers import MemberList, MemberView

REFERENCE = "#/components/schemas/{name}"
ALWAYS = (401, 403, 429, 503)
"""Problems any route may answer with."""
IN_AN_INBOX = (401, 429, 503)
"""The same, where there are no scopes."""


class KeyScheme(OpenApiAuthenticationExtension):
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


class ChannelsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which channels an action is for; left out: all of them."""

    channels: list[str] | None = None


class RescheduleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When to send instead."""

    scheduled_at: Timestamp


class UpdatedView(msgspec.Struct, kw_only=True, frozen=True):
    """How many notifications were changed."""

    updated: int


STRUCTURES = (
    NotificationRequest,
    BroadcastRequest,
    BroadcastView,
    BroadcastList,
    BulkRequest,
    BulkView,
    CleanupRequest,
    CleanupView,
    StatisticsView,
    ChannelsRequest,
    RescheduleRequest,
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
    PersonRequest,
    PersonView,
    PreferencesRequest,
    WishRequest,
    PreferencesView,
    ErasureView,
    ExportView,
    MemberView,
    MemberList,
    SuppressionRequest,
    SuppressionList,
    LiftedView,
    CallbackRequest,
    CallbackView,
    CallbackSecretView,
    CallbackDeliveryList,
    CallbackEvent,
    InboxTokenRequest,
    InboxTokenView,
    InboxItem,
    InboxList,
    InboxCounts,
    ProblemView,
)


def describe(
    *,
    operation: str,
    scope: Scope | None,
    response: type[msgspec.Struct] | None,
    status: int = 200,
    or_else: int | None = None,
    request: type[msgspec.Struct] | None = None,
    problems: Sequence[int] = (),
    parameters: Sequence[OpenApiParameter] = (),
) -> Callable[[Any], Any]:
    """Describe a view's method; its docstring is the summary. ``response`` None: without a body.

    ``scope`` None: it takes an inbox token, which opens one inbox and nothing else. ``or_else`` is
    another status of the same answer.
    """
    body = _reference(response) if response else None
    responses: dict[Any, Any] = {
        one: OpenApiResponse(body, title_of(one)) for one in (status, or_else) if one
    }
    always = {*(ALWAYS if scope else IN_AN_INBOX)}
    if any(one.location == OpenApiParameter.PATH for one in parameters):
        always.add(404)
    return extend_schema(
        operation_id=operation,
        request={"application/json": _reference(request)} if request else None,
        responses=responses | _problems({*always, *problems}),
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
        responses={(200, "text/event-stream"): events} | _problems({*IN_AN_INBOX, 400, 421}),
        parameters=[last],
    )


def _problems(codes: set[int]) -> dict[Any, Any]:
    body = _reference(ProblemView)
    return {(code, MEDIA_TYPE): OpenApiResponse(body, title_of(code)) for code in sorted(codes)}


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
        *paging.DESCRIBED,
    ]
    return [p for p in parameters if p.name not in without]


def identifier(
    name: str, description: str, *, at_most: int = 64, pattern: str | None = None
) -> OpenApiParameter:
    """Return a parameter in the path, of at most so many characters."""
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": at_most}
    if pattern is not None:
        schema["pattern"] = f"^{pattern}$"
    return OpenApiParameter(name, schema, OpenApiParameter.PATH, description=description)


def add_structures(result: dict[str, Any], **_context: Any) -> dict[str, Any]:
    """Add the structures and what we send ourselves; for ``POSTPROCESSING_HOOKS``."""
    result["webhooks"] = WEBHOOKS
    _references, components = msgspec.json.schema_components(STRUCTURES, ref_template=REFERENCE)
    for component in components.values():
        if "description" in component:
            # A docstring, which Python before 3.13 keeps with the indentation of its lines.
            component["description"] = cleandoc(component["description"])
    result.setdefault("components", {}).setdefault("schemas", {}).update(components)
    return result


def _reference(structure: type[msgspec.Struct]) -> Mapping[str, str]:
    return {"$ref": REFERENCE.format(name=structure.__name__)}
