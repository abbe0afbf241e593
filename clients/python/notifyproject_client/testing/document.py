"""What the service in memory knows of the API: operations, structures, and problems.

The build writes ``api.json`` from the OpenAPI document of the client.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the API, as far as a request of a test key goes."""

    name: str
    method: str
    path: re.Pattern[str]
    query: Mapping[str, Schema]
    """The parameters of the query, and what each value must be."""
    needs_key: bool
    """Whether an idempotency key is required."""
    refuses_test_keys: bool
    body: Schema | None
    is_body_required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The operations by their order, the schemas by name, and a problem of each code."""

    operations: tuple[Operation, ...]
    schemas: Mapping[str, Schema]
    problems: Mapping[str, Mapping[str, Any]]

    def resolved(self, schema: Schema) -> Schema:
        """Return what a reference names, or the schema itself."""
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        return schema

    def find(self, path: str) -> Mapping[str, tuple[Operation, Mapping[str, str]]]:
        """Return the operations of a path by method, each with the parts that the path names."""
        return {
            one.method: (one, found.groupdict())
            for one in self.operations
            if (found := one.path.fullmatch(path))
        }


@cache
def document() -> Document:
    """Return the API of this client."""
    stored = json.loads(files(__package__).joinpath("api.json").read_text(encoding="utf-8"))
    return Document(
        # A path without parameters is the one meant where another would match, too.
        operations=tuple(
            sorted(
                (_operation(one) for one in stored["operations"]),
                key=lambda one: one.path.groups,
                reverse=True,
            )
        ),
        schemas=stored["schemas"],
        problems=stored["problems"],
    )


def _operation(stored: Mapping[str, Any]) -> Operation:
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(stored["path"]))
    return Operation(
        name=stored["name"],
        method=stored["method"],
        path=re.compile(pattern),
        query=stored["query"],
        needs_key=stored["needs_key"],
        refuses_test_keys=stored["refuses_test_keys"],
        body=stored.get("body"),
        is_body_required=stored["is_body_required"],
    )
