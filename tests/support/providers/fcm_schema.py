"""FCM's schema from Google's discovery document, and checks against it.

The document has names in camel case; Google's JSON and this check accept snake case, too. The check
also has the few rules that the document states only in text.

If a test sends an invalid body from any thread, the test fails at its end.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from pyfcm import FCMNotification

from domain.time import utc_now
from providers.contract import SendRequest
from providers.fcm import messages
from providers.fcm.provider import Client
from providers.http import Response
from sandbox import log

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

_BUILDER = FCMNotification(credentials=object())
_noted: list[str] = []


def problems(body: bytes) -> list[str]:
    return list(_problems(json.loads(body), {"$ref": "SendMessageRequest"}, "request"))


def check(body: bytes) -> dict[str, Any]:
    """Return a request's message. Raises AssertionError for a schema violation."""
    assert problems(body) == []
    return json.loads(body)["message"]


@contextmanager
def watching() -> Iterator[None]:
    """Check every body that this process sends."""
    send_payload = Client.send_payload

    async def watched(client: Client, payload: bytes, **others: Any) -> Response:
        _noted.extend(problems(payload))
        return await send_payload(client, payload, **others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "send_payload", watched)
        yield


def built(outbound: SendRequest, *, now: datetime) -> bytes:
    """Return the body that a push would have."""
    return _BUILDER.parse_payload(**messages.build_payload(outbound, now=now))


def look_at(outbound: SendRequest) -> None:
    """Check the body that a push to a scripted provider would have."""
    _noted.extend(problems(built(outbound, now=utc_now())))


def look_into(requests: Path) -> None:
    """Check the FCM bodies in a sandbox's log of requests."""
    for record in log.read_records(requests):
        if record.provider == "fcm":
            _noted.extend(problems(bytes(record.body)))


def take_noted() -> list[str]:
    """Return the violations since the last call."""
    found = _noted[:]
    _noted.clear()
    return found


@cache
def schemas() -> dict[str, Any]:
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
        for number, item in enumerate(value):
            yield from _problems(item, schema["items"], f"{place}[{number}]")
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r} is none of {schema['enum']}"
    elif schema.get("format") == "google-duration" and not _DURATION.fullmatch(str(value)):
        yield f"{place}: {value!r} is no duration"


def _problems_of_fields(value: dict[str, Any], schema: dict[str, Any], place: str) -> Iterator[str]:
    for name, item in value.items():
        inner = schema.get("properties", {}).get(_camel(name)) or schema.get("additionalProperties")
        if inner is None:
            yield f"{place}: there is no field {name}"
        else:
            yield from _problems(item, inner, f"{place}.{name}")


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.title() for other in others)
