"""Builds and caches the OpenAPI document: summaries, headers, examples, webhooks."""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from inspect import cleandoc
from itertools import chain, count
from operator import itemgetter
from threading import Lock
from types import SimpleNamespace
from typing import Any

import msgspec
from django.http import HttpResponse
from django.utils.http import parse_etags
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from notifications.validation import FieldProblem
from notifyproject.platform.middleware import HEADER as REQUEST_ID

from ..http.fields import EXAMPLE_ID
from ..http.idempotency_header import HEADER as IDEMPOTENCY_KEY
from ..http.idempotency_header import REPLAYED_HEADER
from ..http.problems import MEDIA_TYPE, TEST_KEY, VALIDATION_FAILED, ApiError
from ..http.query import INVALID_VALUE
from .examples import REFERENCE, example_of
from .operations import STRUCTURE_REFERENCE, Operation, operations, structures, webhooks
from .samples import samples_of

INTRODUCTION = """

**Authentication.** Clients send `Authorization: Bearer ntf_…`, an API key; each operation names the
scope that it requires. Recipients read their inbox with an inbox token, which a client issues.

**Test mode.** A key that begins with `ntf_test_` sends to the sandbox and reaches no recipient. It
can't change live data (recipients, topics, devices, suppressions, types, templates): such a request
gets 403 `test_key`. `GET /test/outbox` lists what it has sent, as it was rendered, and
`POST /test/clock` moves its time.

**Errors.** Every response from 400 on is a problem document (RFC 9457, `application/problem+json`).
`code` is stable and meant for programs; `errors` points at each invalid field; `request_id` finds
the request in the logs.

**Idempotency.** A request that is repeated with the same `Idempotency-Key` has no second effect.
After a timeout, send it again.

**Rate limits.** `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` (seconds) show what
is left of a minute's requests. On 429 and 503, wait for the seconds in `Retry-After`.

**Pagination.** Lists come in pages. Pass `next` as `cursor` to get the next page; null marks the
last page."""
"""Appended to the description in the settings."""
RESOURCES = (
    "notifications",
    "broadcasts",
    "files",
    "recipients",
    "devices",
    "topics",
    "inbox",
    "digests",
    "callbacks",
    "suppressions",
    "limits",
    "rooms",
    "types",
    "design",
    "type-files",
    "test",
)
"""The first segments of the paths, in the order of the document."""
STREAM = "text/event-stream"
STREAM_EXAMPLE = (
    "retry: 3000\n\nevent: counts\n"
    'data: {"unread":3,"unseen":1}\n\n'
    f"id: {EXAMPLE_ID}\nevent: notification\n"
    f'data: {{"id":"{EXAMPLE_ID}","type":"payment_confirmed"}}\n\n'
)
EXAMPLE_PATH = "/api/v1/notifications"  # The ``instance`` of the example problems
EXAMPLE_REQUEST_ID = "5b0c7f6e2a914d38"
RATE_LIMIT_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
UNCOUNTED_STATUSES = frozenset({401, 403})
"""Statuses of requests that are rejected before they count toward a rate limit."""
RETRY_AFTER_STATUSES = frozenset({429, 503})
HEADERS: Mapping[str, tuple[str, Any]] = {
    REQUEST_ID: ("Finds the request in the logs.", EXAMPLE_REQUEST_ID),
    "RateLimit-Limit": ("Requests of this kind allowed per minute.", 60_000),
    "RateLimit-Remaining": ("Requests left in this minute.", 59_999),
    "RateLimit-Reset": ("Seconds until the count starts again.", 42),
    "Retry-After": ("Seconds to wait before the next request.", 17),
    "WWW-Authenticate": ("The required credential.", "Bearer"),
    "Location": ("URL of the new resource.", f"/api/v1/notifications/{EXAMPLE_ID}"),
    REPLAYED_HEADER: ("true: the response to the first request with this key.", "true"),
}


def add_components(result: dict[str, Any], **_context: Any) -> dict[str, Any]:
    """Add the structures and the webhooks; the first of the ``POSTPROCESSING_HOOKS``."""
    result["webhooks"] = webhooks
    _references, components = msgspec.json.schema_components(
        structures.values(), ref_template=STRUCTURE_REFERENCE
    )
    for component in components.values():
        if "description" in component:
            # Before Python 3.13, docstrings keep the indentation of their lines.
            component["description"] = cleandoc(component["description"])
    result.setdefault("components", {}).setdefault("schemas", {}).update(sorted(components.items()))
    return result


def complete_document(result: dict[str, Any], **_context: Any) -> dict[str, Any]:
    """Add summaries, headers, and examples; the second of the ``POSTPROCESSING_HOOKS``."""
    result["info"]["description"] += INTRODUCTION
    components = result["components"]
    components["headers"] = {name: _header(name) for name in HEADERS}
    components["examples"] = {}
    _set_time_formats(components["schemas"])
    for name in _request_structures(result):
        _make_defaults_optional(components["schemas"][name])
    for schema in _schemas_in(result):
        if schema.get("type") == "object" and "properties" not in schema:
            # Without it, a generator of types may read "no property is allowed".
            schema.setdefault("additionalProperties", True)
    paths = sorted(result["paths"].items(), key=lambda path: _place_of(path[0]))
    result["paths"] = dict(paths)
    result["tags"] = [{"name": name} for name in RESOURCES]
    for path, item in result["paths"].items():
        for method, description in item.items():
            for parameter in description.get("parameters", ()):
                _add_parameter_example(parameter)
            is_live_only = method != "get" and not operations[description["operationId"]].test_mode
            _describe_operation(description, is_live_only=is_live_only)
            _add_body_example(description, components["schemas"])
            _complete_responses(description, components, is_live_only=is_live_only)
            description["x-codeSamples"] = samples_of(method, path, description)
    _share_repeated(result)
    return result


def _place_of(path: str) -> int:
    """Return where a path's resource is in the document."""
    resource = path.removeprefix("/api/v1/").partition("/")[0]
    return RESOURCES.index(resource)


def _request_structures(document: Mapping[str, Any]) -> set[str]:
    """Return the names of the structures that request bodies consist of."""
    found: set[str] = set()
    pending = [
        operation["requestBody"]
        for item in document["paths"].values()
        for operation in item.values()
        if "requestBody" in operation
    ]
    while pending:
        for schema in _schemas_in(pending.pop()):
            name = str(schema.get("$ref", "")).removeprefix(REFERENCE)
            if name and name not in found:
                found.add(name)
                pending.append(document["components"]["schemas"][name])
    return found


def _make_defaults_optional(structure: dict[str, Any]) -> None:
    """Move the defaults of a request's fields to their descriptions.

    A generator of types may make a field with a default required, since a response has it always.
    """
    for schema in structure.get("properties", {}).values():
        default = schema.pop("default", None)
        if isinstance(default, bool | int | str):
            text = schema.get("description", "")
            schema["description"] = f"{text} Default: `{json.dumps(default)}`.".strip()


def _schemas_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object within a part of the document, but nothing within examples."""
    if isinstance(value, dict):
        yield value
        for name, branch in value.items():
            if name == "properties":
                # A property may have any name.
                yield from chain.from_iterable(map(_schemas_in, branch.values()))
            elif name not in ("example", "examples", "default", "enum", "const"):
                yield from _schemas_in(branch)
    elif isinstance(value, list):
        for branch in value:
            yield from _schemas_in(branch)


def _describe_operation(description: dict[str, Any], *, is_live_only: bool) -> None:
    """Split a docstring into the summary and the description, and add the required credential."""
    text = description["description"]
    first, _, _more = text.partition("\n\n")
    sentence, _, _rest = " ".join(first.split()).partition(". ")
    description["summary"] = sentence.partition("; ")[0].rstrip(".")
    scope = description.get("x-scope")
    credential = f"an API key with the scope `{scope}`" if scope else "an inbox token"
    live_only = " A test key gets 403 `test_key`." if is_live_only else ""
    description["description"] = f"{text}\n\nTakes {credential}.{live_only}"


def _complete_responses(
    description: dict[str, Any], components: dict[str, Any], *, is_live_only: bool
) -> None:
    operation = operations[description["operationId"]]
    problems = [*operation.problems, *([TEST_KEY] if is_live_only else [])]
    values = {"scope": description.get("x-scope"), "kilobytes": operation.max_bytes // 1024}
    for code, response in description["responses"].items():
        response["headers"] = {
            name: {"$ref": f"#/components/headers/{name}"}
            for name in _header_names(description, operation, int(code))
        }
        for media_type, content in response.get("content", {}).items():
            if media_type == MEDIA_TYPE:
                content["examples"] = {
                    problem.code: _problem_example(
                        problem.example_error(
                            errors=[_field_error(description)]
                            if problem is VALIDATION_FAILED
                            else (),
                            **values,
                        ),
                        components["examples"],
                    )
                    for problem in problems
                    if problem.status == int(code)
                }
            else:
                is_stream = media_type == STREAM
                schemas = components["schemas"]
                value = STREAM_EXAMPLE if is_stream else example_of(content["schema"], schemas)
                content["examples"] = {"answer": {"value": value}}


def _problem_example(problem: ApiError, shared: dict[str, Any]) -> dict[str, str]:
    """Return a reference to an example of a problem; equal examples are shared."""
    request: Any = SimpleNamespace(path=EXAMPLE_PATH, request_id=EXAMPLE_REQUEST_ID)
    example = {"value": msgspec.to_builtins(problem.body(request))}
    return {"$ref": f"#/components/examples/{_share(example, shared, name=problem.code)}"}


def _share(part: Mapping[str, Any], shared: dict[str, Any], *, name: str) -> str:
    """Add a part to the shared ones unless an equal one is there. Return its name.

    The second part of the same name gets ``_2``.
    """
    return next(
        candidate
        for candidate in chain([name], (f"{name}_{number}" for number in count(2)))
        if shared.setdefault(candidate, part) == part
    )


def _share_repeated(document: dict[str, Any]) -> None:
    """Refer to responses and parameters that several operations have, and to every problem."""
    components = document["components"]
    for section, name_of in (("responses", _response_name), ("parameters", itemgetter("name"))):
        shared = components.setdefault(section, {})
        places = [
            (parts, key)
            for item in document["paths"].values()
            for operation in item.values()
            if (parts := operation.get(section))
            for key in (parts if isinstance(parts, dict) else range(len(parts)))
        ]
        uses = Counter(json.dumps(parts[key], sort_keys=True) for parts, key in places)
        for parts, key in places:
            part = parts[key]
            if uses[json.dumps(part, sort_keys=True)] > 1 or MEDIA_TYPE in part.get("content", ()):
                name = _share(part, shared, name=name_of(part))
                parts[key] = {"$ref": f"#/components/{section}/{name}"}


def _response_name(response: Mapping[str, Any]) -> str:
    """Return the name of a response's structure, or of its status if that says more."""
    for media_type, content in response.get("content", {}).items():
        if media_type != MEDIA_TYPE and "$ref" in content["schema"]:
            return str(content["schema"]["$ref"].removeprefix(REFERENCE))
    return str(response["description"]).title().replace(" ", "")


def _field_error(description: Mapping[str, Any]) -> FieldProblem:
    names = [p["name"] for p in description.get("parameters", ()) if p["in"] == "query"]
    if "415" in description["responses"]:
        return FieldProblem("/colour", "unknown_field", "Unknown field.")
    if "limit" in names:
        return FieldProblem("/limit", "out_of_range", "Expected a number from 1 to 100.")
    return FieldProblem(f"/{names[0]}" if names else "", "invalid", INVALID_VALUE)


def _add_body_example(description: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    body = description.get("requestBody")
    if body is not None:
        (content,) = body["content"].values()
        content["examples"] = {"request": {"value": example_of(content["schema"], schemas)}}
        body["required"] = operations[description["operationId"]].is_body_required


def _add_parameter_example(parameter: dict[str, Any]) -> None:
    if parameter["name"] == IDEMPOTENCY_KEY:
        parameter["example"] = "payment-1001"
    elif parameter["in"] == "path":
        (parameter["example"],) = parameter["schema"].pop("examples")
    elif parameter.get("required"):
        # The only required query parameter.
        parameter["example"] = {"user_id": "ada"}[parameter["name"]]


def _header_names(
    description: Mapping[str, Any], operation: Operation, status: int
) -> Iterator[str]:
    yield REQUEST_ID
    if status == HTTPStatus.UNAUTHORIZED:
        yield "WWW-Authenticate"
    if status not in UNCOUNTED_STATUSES:
        yield from RATE_LIMIT_HEADERS
    if status in RETRY_AFTER_STATUSES:
        yield "Retry-After"
    yield from operation.headers.get(status, ())
    has_key = any(p["name"] == IDEMPOTENCY_KEY for p in description.get("parameters", ()))
    if status < HTTPStatus.BAD_REQUEST and has_key:
        yield REPLAYED_HEADER


def _header(name: str) -> dict[str, Any]:
    description, example = HEADERS[name]
    kind = "integer" if isinstance(example, int) else "string"
    return {"description": description, "schema": {"type": kind}, "example": example}


def _set_time_formats(schemas: dict[str, Any]) -> None:
    """Set the format of timestamps: msgspec sets it only for types that require a time zone."""
    for info in msgspec.inspect.multi_type_info(structures.values()):
        for structure in _structures(info):
            properties = schemas[structure.cls.__name__]["properties"]
            for field in structure.fields:
                if _is_time(field.type):
                    schema = properties[field.encode_name]
                    (schema.get("anyOf") or [schema])[0]["format"] = "date-time"


def _structures(info: Any) -> Iterator[msgspec.inspect.StructType]:
    seen: set[type] = set()
    pending: list[Any] = [info]
    while pending:
        kind = pending.pop()
        if isinstance(kind, msgspec.inspect.StructType):
            if kind.cls in seen:
                continue
            seen.add(kind.cls)
            yield kind
            pending += [field.type for field in kind.fields]
        else:
            pending += _inner_types(kind)


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
        return any(_is_time(type_) for type_ in info.types)
    if isinstance(info, msgspec.inspect.Metadata):
        return _is_time(info.type)
    return isinstance(info, msgspec.inspect.DateTimeType)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rendered:
    """The document in one media type, and compressed by gzip."""

    content: bytes
    compressed: bytes
    tag: str
    """Its entity tag."""


_rendered: dict[str | None, _Rendered] = {}
_rendering = Lock()


class OpenAPIDocument(SpectacularAPIView):
    """OpenAPI 3.1, as YAML or as JSON."""

    content_negotiation_class = DefaultContentNegotiation
    schema = None

    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        """Return the document in the requested media type."""
        renderer: BaseRenderer = request.accepted_renderer
        rendered = _rendered.get(renderer.media_type)
        if rendered is None:
            # One thread at a time: the generator isn't made for several, and takes seconds.
            with _rendering:
                rendered = _rendered.get(renderer.media_type) or _render(renderer)
                _rendered[renderer.media_type] = rendered
        headers = {
            "ETag": rendered.tag,
            "Cache-Control": "no-cache",
            "Vary": "Accept, Accept-Encoding",
        }
        if rendered.tag in parse_etags(request.headers.get("If-None-Match", "")):
            return HttpResponse(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        is_compressed = "gzip" in request.headers.get("Accept-Encoding", "")
        if is_compressed:
            headers["Content-Encoding"] = "gzip"
        content = rendered.compressed if is_compressed else rendered.content
        return HttpResponse(content, content_type=renderer.media_type, headers=headers)


def _render(renderer: BaseRenderer) -> _Rendered:
    document = SchemaGenerator().get_schema(request=None, public=True)
    content: bytes = renderer.render(document, renderer_context={})
    tag = f'W/"{hashlib.sha256(content).hexdigest()[:32]}"'
    return _Rendered(content=content, compressed=gzip.compress(content, mtime=0), tag=tag)
