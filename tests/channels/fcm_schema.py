"""Google's own description of FCM's bodies, and whether a body keeps to it.

The discovery document writes names in camel case; Google's JSON takes both spellings, and so does
this. Beyond the types it knows the few rules that the document has in its texts only.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

DOCUMENT = files("googleapiclient") / "discovery_cache" / "documents" / "fcm.v1.json"
_DURATION = re.compile(r"\d+(\.\d{1,9})?s", re.ASCII)
_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
    "any": object,
}


def check(body: bytes) -> dict[str, Any]:
    """Return a request's message; raises AssertionError unless FCM's schema allows the request."""
    request = json.loads(body)
    assert list(_problems(request, {"$ref": "SendMessageRequest"}, "request")) == []
    return request["message"]


@cache
def schemas() -> dict[str, Any]:
    """Return the schemas of the discovery document."""
    return json.loads(DOCUMENT.read_text(encoding="utf-8"))["schemas"]


def _problems(value: Any, schema: dict[str, Any], place: str) -> Iterator[str]:
    if "$ref" in schema:
        schema = schemas()[schema["$ref"]]
    kind = _KINDS[schema["type"]]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
        yield f"{place}: {value!r} is no {schema['type']}"
    elif isinstance(value, dict) and schema["type"] == "object":
        yield from _problems_of_fields(value, schema, place)
    elif isinstance(value, list) and schema["type"] == "array":
        for number, one in enumerate(value):
            yield from _problems(one, schema["items"], f"{place}[{number}]")
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    elif schema.get("format") == "google-duration" and not _DURATION.fullmatch(value):
        yield f"{place}: {value!r} is no duration"


def _problems_of_fields(value: dict[str, Any], schema: dict[str, Any], place: str) -> Iterator[str]:
    for name, one in value.items():
        inner = schema.get("properties", {}).get(_camel(name)) or schema.get("additionalProperties")
        if inner is None:
            yield f"{place}: there is no field {name}"
        else:
            yield from _problems(one, inner, f"{place}.{name}")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)
