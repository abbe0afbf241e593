"""The content of docs/reference/indexes.md."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.support.mongo.indexes import OTHER_INDEXES, REQUIRED, Key, RequiredIndex

HEAD = """\
# Indexes

Each write updates every index whose fields it changes. A test compares this page with the
collections that `migrate` creates.

## Required indexes

| collection | purpose | keys | served by |
|---|---|---|---|
"""
MIDDLE = """
An index serves each prefix of its keys: one on (user, time) serves every query by user.

## Additional indexes

| index | purpose | keys |
|---|---|---|
"""
TAIL = """
Unique fields (`staff_users.username`, `api_clients.name`) have indexes of their own, partial on the
least value of the field's type: [decision 2](../decisions/0002-database-engine.md).
"""


def render(existing: Callable[[str], Mapping[str, Mapping[str, Any]]]) -> str:
    """Return the page. ``existing`` returns a collection's indexes."""
    lines = [
        f"| `{one.collection}` | {one.purpose} | {_keys(one.keys)} | {_served(one)} |"
        for one in REQUIRED
    ]
    collections = dict.fromkeys(required.collection for required in REQUIRED) | dict.fromkeys(
        (
            "metrics_due",
            "incidents",
            "webhook_log",
            "provider_events",
            "recipients",
            "suppressions",
            "topic_members",
            "conversations",
            "suspicions",
            "early_receipts",
            "api_clients",
            "inbox_visits",
            "inbox_revocations",
            "login_failures",
            "broadcasts",
            "callback_messages",
            "operations",
            "operation_results",
        )
    )
    found = {name: index for c in collections for name, index in existing(c).items()}
    others = [
        f"| `{name}` | {OTHER_INDEXES[name]} | {_keys(found[name]['key'])} |"
        for name in OTHER_INDEXES
    ]
    return HEAD + "\n".join(lines) + "\n" + MIDDLE + "\n".join(others) + "\n" + TAIL


def _served(required: RequiredIndex) -> str:
    index = (
        f"`{required.served_by}`{', unique' if required.unique else ''}"
        if required.served_by
        else "none"
    )
    return f"{index}. {required.why}" if required.why else index


def _keys(keys: Key) -> str:
    return ", ".join(f"`{name}`{' ↓' if direction == -1 else ''}" for name, direction in keys)
