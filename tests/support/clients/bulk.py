"""Calls that bring many notifications."""

import itertools
from typing import Any

from notifyproject.db.collections import collection
from tests.support.clients.api import App, request

PATH = "/notifications/bulk"
_keys = itertools.count()


def post_bulk(app: App, *items: Any, key: str | None = None) -> Any:
    """POST these items, under a key of their own unless one is given."""
    headers = {"Idempotency-Key": key or f"key-{next(_keys)}"}
    return app.post(PATH, {"notifications": list(items)}, headers=headers)


def item(number: int, **fields: Any) -> dict[str, Any]:
    """Return a valid item like no other."""
    return request(external_id=f"o-{number}", **fields)


def ids(answer: Any) -> list[str | None]:
    """Return the ids of what was accepted, None for what was not."""
    return [one.get("id") for one in answer.json()["results"]]


def problems(result: dict[str, Any]) -> dict[str, str]:
    """Return what is wrong with an item: code by pointer."""
    return {error["pointer"]: error["code"] for error in result["error"]["errors"]}


def stored() -> list[dict[str, Any]]:
    """Return every notification, as it was accepted."""
    return list(collection("notifications").find().sort("_id", 1))
