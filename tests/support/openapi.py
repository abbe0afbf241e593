"""The OpenAPI document, which takes a second to generate, so tests share it."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from drf_spectacular.generators import SchemaGenerator


@cache
def api_document() -> Any:
    """Return the document as the API serves it."""
    return SchemaGenerator().get_schema(request=None, public=True)


@cache
def api_operations() -> Mapping[str, Any]:
    """Return each operation by its ID, with its path, its method, and shared parts in place."""
    return {
        operation["operationId"]: {
            **operation,
            "path": path,
            "method": method.upper(),
            "parameters": [resolved(parameter) for parameter in operation.get("parameters", ())],
            "responses": {code: resolved(part) for code, part in operation["responses"].items()},
        }
        for path, operations in api_document()["paths"].items()
        for method, operation in operations.items()
    }


def resolved(part: Any) -> Any:
    """Return a part of the document, or what it refers to."""
    while "$ref" in part:
        _, _, section, name = part["$ref"].split("/")
        part = api_document()["components"][section][name]
    return part
