"""Bulk requests."""

import itertools
from typing import Any

from notifyproject.db.collections import collection
from tests.support.clients.api import App, request

PATH = "/notifications/bulk"
_keys = itertools.count()


def post_bulk(app: App, *items: Any, key: str | None = None) -> Any:
    """POST items as a bulk request, with a new idempotency key unless a key is given."""
    headers = {"Idempotency-Key": key or f"key-{next(_keys)}"}
    return app.post(PATH, {"notifications": list(items)}, headers=headers)


def item(number: int, **fields: Any) -> dict[str, Any]:
    """Return a valid item that differs for each number."""
    return request(external_id=f"o-{number}", **fields)


def ids(answer: Any) -> list[str | None]:
    """Return the IDs by item, None for refused items."""
    return [result.get("id") for result in answer.json()["results"]]


def problems(result: dict[str, Any]) -> dict[str, str]:
    """Return the codes of an item's problems by pointer."""
    return {error["pointer"]: error["code"] for error in result["error"]["errors"]}


def stored() -> list[dict[str, Any]]:
    """Return every notification in the order of acceptance."""
    return list(collection("notifications").find().sort("_id", 1))
