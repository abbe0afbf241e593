"""Builds and caches the OpenAPI document: summaries, headers, webhooks."""

from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from inspect import cleandoc
from typing import Any

import msgspec
from django.http import HttpResponse
from django.urls import resolve
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer

from access.clients.authentication import refuses_test_keys
from notifyproject.platform.middleware import HEADER as REQUEST_ID

from ..callbacks.schemas import EVENT_WEBHOOK, CallbackEvent
from ..http.idempotency import HEADER as IDEMPOTENCY_KEY
from ..http.idempotency import REPLAYED_HEADER
from ..http.problems import MEDIA_TYPE
from ..notifications.schemas import ChannelsRequest
from ..recipients.preferences import PreferenceRequest
from .examples import REFERENCE, example_of
from .operations import STRUCTURE_REFERENCE, structures
from .problems import operation_problems, problem_view
from .wording import EXAMPLE_IDS

INTRODUCTION = """

**Who asks.** Apps send `Authorization: Bearer ntf_…`, an API key; each operation names the scope
it takes. People read their inbox with a token that their app has asked for.

**Test mode.** A key that begins `ntf_test_` sends to the sandbox and reaches nobody. It changes no
live data: people, topics, devices, suppressions, types and templates are changed with a live key,
and a test key gets 403 `test_key`.

**Problems.** Every answer from 400 on is a problem document (RFC 9457, `application/problem+json`).
`code` is for programs and does not change; `errors` points at each field that is wrong;
`request_id` finds the request in the logs.

**Once.** With an `Idempotency-Key`, the same request sent again makes nothing new: after a timeout,
send it again.

**Limits.** `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` (seconds) say what is
left of a minute's requests. 429 and 503 say in `Retry-After` how many seconds to wait.

**Lists** come in pages: give `next` as `cursor` for the following one; null: there is none."""
"""What stands above all operations, below the first sentence."""
JSON = "application/json"
STREAM = "text/event-stream"
STREAM_EXAMPLE = (
    "retry: 3000\n\nevent: counts\n"
    'data: {"unread":3,"unseen":1}\n\n'
    f"id: {EXAMPLE_IDS['notification_id']}\nevent: notification\n"
    f'data: {{"id":"{EXAMPLE_IDS["notification_id"]}","type":"payment_confirmed"}}\n\n'
)
UNREFERENCED = (CallbackEvent, PreferenceRequest)
"""Structures that no operation refers to: of the webhook, and inside an object with free keys."""


def structures_by_name() -> dict[str, type[msgspec.Struct]]:
    """Return every structure of the document."""
    return dict(structures()) | {one.__name__: one for one in UNREFERENCED}


EXAMPLE_PATH = "/api/v1/notifications"
"""The address in the examples of problems that are the same at every address."""
RATE_LIMIT_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
UNCOUNTED_STATUSES = frozenset({401, 403})
"""Who is refused before anybody counts is not told of a limit."""
RETRY_AFTER_STATUSES = frozenset({429, 503})
HEADERS: Mapping[str, tuple[str, Any]] = {
    REQUEST_ID: ("For whoever looks the request up in the logs.", EXAMPLE_IDS["request_id"]),
    "RateLimit-Limit": ("How many such requests a minute takes.", 60_000),
    "RateLimit-Remaining": ("How many are left of them.", 59_999),
    "RateLimit-Reset": ("Seconds until the count begins again.", 42),
    "Retry-After": ("Seconds after which to come again.", 17),
    "WWW-Authenticate": ("What credential is asked for.", "Bearer"),
    "Location": ("The address of what was made.", f"/api/v1/notifications/{EXAMPLE_IDS['id']}"),
    REPLAYED_HEADER: ("true: the answer to the first request with this key.", "true"),
}
"""What the headers of answers say, and an example of each."""
LOCATION_OPERATIONS = frozenset({"createNotification", "createBroadcast", "createTemplateVersion"})


def complete_document(result: dict[str, Any], **_context: Any) -> dict[str, Any]:
    """Complete a description; for ``POSTPROCESSING_HOOKS``, after ``add_components``."""
    result["info"]["description"] += INTRODUCTION
    components = result["components"]
    components["headers"] = {name: _header(name) for name in HEADERS}
    components["examples"] = {}
    _set_time_formats(components["schemas"])
    # A slash at the end is allowed, not asked for.
    result["paths"] = {path.rstrip("/"): item for path, item in result["paths"].items()}
    for path, item in result["paths"].items():
        for method, operation in item.items():
            example_path = _example_path(path)
            is_live_only = refuses_test_keys(resolve(example_path).func.view_class, method.upper())
            _describe_operation(operation, is_live_only=is_live_only)
            _complete_operation(operation, example_path, components, is_live_only=is_live_only)
    return result


def _describe_operation(operation: dict[str, Any], *, is_live_only: bool) -> None:
    """Split a docstring into a summary and all it says, with who may."""
    text = operation["description"]
    first, _, _more = text.partition("\n\n")
    sentence, _, _rest = " ".join(first.split()).partition(". ")
    operation["summary"] = sentence.partition("; ")[0].rstrip(".")
    scope = operation.get("x-scope")
    credential = f"an API key with the scope `{scope}`" if scope else "an inbox token"
    live_only = " A test key gets 403 `test_key`." if is_live_only else ""
    operation["description"] = f"{text}\n\nTakes {credential}.{live_only}"


def _complete_operation(
    operation: dict[str, Any], path: str, components: dict[str, Any], *, is_live_only: bool
) -> None:
    schemas, shared = components["schemas"], components["examples"]
    body, example = _add_body_example(operation, schemas)
    for parameter in operation.get("parameters", ()):
        _add_parameter_example(parameter)
    problems = operation_problems(operation, body=body, example=example, is_live_only=is_live_only)
    for code, response in operation["responses"].items():
        status = int(code)
        response["headers"] = {
            name: {"$ref": f"#/components/headers/{name}"}
            for name in _header_names(operation, status)
        }
        for media_type, content in response.get("content", {}).items():
            if media_type == MEDIA_TYPE:
                content["examples"] = {
                    problem.code: _share_example(problem_view(problem, path=path), shared)
                    for problem in problems[status]
                }
            else:
                is_stream = media_type == STREAM
                value = STREAM_EXAMPLE if is_stream else example_of(content["schema"], schemas)
                content["examples"] = {"answer": {"value": value}}


def _share_example(view: dict[str, Any], shared: dict[str, Any]) -> dict[str, Any]:
    """Return an example of a problem: one for all addresses it looks the same at."""
    name = view["code"]
    common = {"value": {**view, "instance": EXAMPLE_PATH}}
    if shared.setdefault(name, common) == common:
        return {"$ref": f"#/components/examples/{name}"}
    return {"value": view}


def _add_body_example(
    operation: dict[str, Any], schemas: Mapping[str, Any]
) -> tuple[type[msgspec.Struct] | None, Any]:
    """Show what an operation takes, and return its structure and the example."""
    content = operation.get("requestBody", {}).get("content", {}).get(JSON)
    if content is None:
        return None, None
    example = example_of(content["schema"], schemas)
    content["examples"] = {"request": {"value": example}}
    structure = structures_by_name()[content["schema"]["$ref"].removeprefix(REFERENCE)]
    operation["requestBody"]["required"] = structure is not ChannelsRequest
    return structure, example


def _add_parameter_example(parameter: dict[str, Any]) -> None:
    if parameter["name"] == IDEMPOTENCY_KEY:
        parameter["example"] = "payment-1001"
    elif parameter["in"] == "path" or parameter.get("required"):
        parameter["example"] = example_of(parameter["schema"], {}, name=parameter["name"])


def _header_names(operation: Mapping[str, Any], status: int) -> Iterator[str]:
    yield REQUEST_ID
    if status == HTTPStatus.UNAUTHORIZED:
        yield "WWW-Authenticate"
    if status not in UNCOUNTED_STATUSES:
        yield from RATE_LIMIT_HEADERS
    is_incomplete = (operation["operationId"], status) == ("eraseRecipient", HTTPStatus.ACCEPTED)
    if status in RETRY_AFTER_STATUSES or is_incomplete:
        yield "Retry-After"
    if status < HTTPStatus.BAD_REQUEST:
        if operation["operationId"] in LOCATION_OPERATIONS:
            yield "Location"
        if any(p["name"] == IDEMPOTENCY_KEY for p in operation.get("parameters", ())):
            yield REPLAYED_HEADER


def _header(name: str) -> dict[str, Any]:
    description, example = HEADERS[name]
    kind = "integer" if isinstance(example, int) else "string"
    return {"description": description, "schema": {"type": kind}, "example": example}


def _example_path(path: str) -> str:
    """Return a path with an example for each of its parameters."""
    for name, value in {**EXAMPLE_IDS, "channel": "email", "address": "ada@example.com"}.items():
        path = path.replace(f"{{{name}}}", str(value))
    return path


def _set_time_formats(schemas: dict[str, Any]) -> None:
    """Say which texts are times: a schema of msgspec's says it only of types that insist on UTC."""
    for info in msgspec.inspect.multi_type_info(structures_by_name().values()):
        for one in _structures(info):
            properties = schemas[one.cls.__name__]["properties"]
            for field in one.fields:
                if _is_time(field.type):
                    schema = properties[field.encode_name]
                    (schema.get("anyOf") or [schema])[0]["format"] = "date-time"


def _structures(info: Any) -> Iterator[msgspec.inspect.StructType]:
    """Return a structure and all those inside it."""
    seen: set[type] = set()
    pending: list[Any] = [info]
    while pending:
        one = pending.pop()
        if isinstance(one, msgspec.inspect.StructType):
            if one.cls in seen:
                continue
            seen.add(one.cls)
            yield one
            pending += [field.type for field in one.fields]
        else:
            pending += _inner_types(one)


def _inner_types(info: Any) -> Sequence[Any]:
    match info:
        case msgspec.inspect.UnionType():
            return info.types
        case msgspec.inspect.ListType() | msgspec.inspect.VarTupleType():
            return [info.item_type]
        case msgspec.inspect.DictType():
            return [info.value_type]
        case msgspec.inspect.Metadata():
            return [info.type]
        case _:
            return []


def _is_time(info: Any) -> bool:
    if isinstance(info, msgspec.inspect.UnionType):
        return any(_is_time(one) for one in info.types)
    if isinstance(info, msgspec.inspect.Metadata):
        return _is_time(info.type)
    return isinstance(info, msgspec.inspect.DateTimeType)


_rendered: dict[str | None, bytes] = {}
"""What was made already, by its media type."""


class OpenAPIDocument(SpectacularAPIView):
    """OpenAPI 3.1, as YAML or as JSON."""

    content_negotiation_class = DefaultContentNegotiation

    @extend_schema(exclude=True)
    def get(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Answer with the description in the form that was asked for."""
        renderer: BaseRenderer = request.accepted_renderer
        if renderer.media_type not in _rendered:
            document = SchemaGenerator().get_schema(request=None, public=True)
            _rendered[renderer.media_type] = renderer.render(document, renderer_context={})
        return HttpResponse(_rendered[renderer.media_type], content_type=renderer.media_type)


def add_components(result: dict[str, Any], **_context: Any) -> dict[str, Any]:
    """Add the structures and what we send ourselves; for ``POSTPROCESSING_HOOKS``."""
    result["webhooks"] = EVENT_WEBHOOK
    _references, components = msgspec.json.schema_components(
        structures_by_name().values(), ref_template=STRUCTURE_REFERENCE
    )
    for component in components.values():
        if "description" in component:
            # A docstring, which Python before 3.13 keeps with the indentation of its lines.
            component["description"] = cleandoc(component["description"])
    result.setdefault("components", {}).setdefault("schemas", {}).update(sorted(components.items()))
    return result
