"""Google's own description of FCM's bodies, and whether a body keeps to it.

The discovery document writes names in camel case; Google's JSON takes both spellings, and so does
this. Beyond the types it knows the few rules that the document has in its texts only.

Every test of the suite is held to it: what is wrong with a body that it sent, in whatever thread,
is noted, and fails the test at its end.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
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
from providers.http import Exchange, Response
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
    """Return what FCM's schema does not allow in a request's body."""
    return list(_problems(json.loads(body), {"$ref": "SendMessageRequest"}, "request"))


def check(body: bytes) -> dict[str, Any]:
    """Return a request's message; raises AssertionError unless FCM's schema allows the request."""
    assert problems(body) == []
    return json.loads(body)["message"]


@contextmanager
def watching() -> Iterator[None]:
    """Look at each body as this process sends it, whoever takes it."""
    exchange = Client.exchange

    def watched(client: Client, payload: bytes, **others: Any) -> Exchange[Response]:
        _noted.extend(problems(payload))
        return exchange(client, payload, **others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "exchange", watched)
        yield


def look_at(outbound: SendRequest) -> None:
    """Look at the body that a push to a provider of a test would have."""
    arguments = messages.build_payload(outbound, now=utc_now())
    _noted.extend(problems(_BUILDER.parse_payload(**arguments)))


def look_into(requests: Path) -> None:
    """Look at the bodies in a sandbox's log, whatever process sent them."""
    for record in log.read_records(requests):
        if record.provider == "fcm":
            _noted.extend(problems(bytes(record.body)))


def take_noted() -> list[str]:
    """Return what was wrong since the last time."""
    found = _noted[:]
    _noted.clear()
    return found


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
