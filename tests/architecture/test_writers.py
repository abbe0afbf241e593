"""Only the store writes delivery state."""

import ast
from functools import cache
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib import admin
from django.test import RequestFactory

from access.models import StaffUser
from notifications.models import DeliveryAttempt, Notification
from tests.support.source import SERVICE, calls, files, nodes, text

WRITES = frozenset(
    {
        "insert_one",
        "insert_many",
        "update_one",
        "update_many",
        "replace_one",
        "bulk_write",
        "delete_one",
        "delete_many",
        "find_one_and_update",
        "find_one_and_replace",
        "find_one_and_delete",
        "UpdateOne",
        "UpdateMany",
        "InsertOne",
        "ReplaceOne",
        "DeleteOne",
    }
)
ORM_WRITES = frozenset(
    {
        "save",
        "create",
        "get_or_create",
        "update_or_create",
        "bulk_create",
        "bulk_update",
        "update",
        "delete",
        "asave",
        "acreate",
        "adelete",
        "aupdate",
    }
)
OURS = frozenset({"notifications", "delivery_attempts"})
NAMED = {
    ("access/clients/registry.py", "clients"): "api_clients",
}
"""Variables that hold a collection, and its name."""
MAKES = {
    "monitoring/metrics.py": "whole spans of figures, replaced",
    "monitoring/rollup_state.py": "minutes to be counted again",
}
"""Other files that create bulk writes. Their collections are checked like all others."""
MERGES = {"monitoring/rollup.py": '"into": "analytics_events"'}
"""Files that write with ``$merge``, and the stage they may contain."""
TABLES = {model.__name__: model._meta.db_table for model in apps.get_models()}
MODELS = ("Notification.", "Notification(", "DeliveryAttempt.", "DeliveryAttempt(")
STORE = Path("notifications", "store")
LEASES = Path("notifyproject", "db", "leases.py")
"""Writes to the collection of each ``Leases`` that others declare."""
TRIPS = Path("notifyproject", "db", "trips.py")
"""Writes to the collection that is given to ``insert_shared``."""
OTHER_FILES = [
    path for path in files(*SERVICE) if STORE not in path.parents and path not in (LEASES, TRIPS)
]


@cache
def handles() -> dict[str, str]:
    """Return the names of handles of collections, and the collections' names."""
    return {
        ast.unparse(node.targets[0]): ast.literal_eval(node.value.args[0])
        for path in files(*SERVICE)
        for node in nodes(path)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if ast.unparse(node.value.func) == "Documents"
    }


def collection_of(path: Path, node: ast.expr) -> str | None:
    """Return the name of the collection that an expression denotes, or None if unknown."""
    if isinstance(node, ast.Name):
        return NAMED.get((str(path), node.id))
    key: ast.expr | None = None
    if isinstance(node, ast.Call) and not node.args:
        return handles().get(ast.unparse(node.func))
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "collection":
        key = node.args[0]
    if isinstance(node, ast.Subscript):
        key = node.slice
    if isinstance(key, ast.Attribute) and ast.unparse(key).endswith("._meta.db_table"):
        return TABLES.get(ast.unparse(key).partition(".")[0])
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def method(call: ast.Call) -> ast.Attribute:
    assert isinstance(call.func, ast.Attribute)
    return call.func


def test_only_the_store_writes_to_its_collections() -> None:
    named = set()
    for path in OTHER_FILES:
        for place, call in calls(path):
            if method(call).attr in WRITES:
                if isinstance(variable := method(call).value, ast.Name):
                    named.add((str(path), variable.id))
                name = collection_of(path, method(call).value)
                assert name is not None, f"{place}: which collection is written to here?"
                assert name not in OURS, f"{place}: only the store writes to {name}"
    assert NAMED.keys() <= named, "nothing is written by them"


def test_only_the_store_declares_leases_on_its_collections() -> None:
    declared = {
        handles()[ast.unparse(keyword.value)]
        for path in OTHER_FILES
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Leases"
        for keyword in node.keywords
        if keyword.arg == "collection"
    }
    assert "operations" in declared
    assert not declared & OURS


def test_only_the_store_inserts_into_its_collections_together_with_others() -> None:
    inserted = {
        handles()[ast.unparse(node.args[0])]
        for path in OTHER_FILES
        for node in nodes(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "insert_shared"
    }
    assert "idempotency_keys" in inserted
    assert not inserted & OURS


def test_only_the_store_creates_bulk_writes() -> None:
    assert {*MAKES, *MERGES} <= {str(path) for path in OTHER_FILES}
    for path in OTHER_FILES:
        names = {node.id for node in nodes(path) if isinstance(node, ast.Name)}
        assert (str(path) in MAKES) == bool(names & WRITES), path
        merges = text(path).replace("$mergeObjects", "").count("$merge")
        into = MERGES.get(str(path))
        assert merges == (text(path).count(into) if into else 0), path
        assert merges or not into, path
        assert '"$out"' not in text(path), path


def test_orm_does_not_write_delivery_state() -> None:
    for path in OTHER_FILES:
        for place, call in calls(path):
            if method(call).attr in ORM_WRITES:
                written = ast.unparse(method(call).value)
                assert not written.startswith(MODELS), f"{place}: only the store writes this"


def test_scan_finds_known_writes() -> None:
    found = [
        place
        for path in files(*SERVICE)
        for place, call in calls(path)
        if method(call).attr in WRITES
    ]
    assert sum(STORE.name in place for place in found) > 5
    assert len(found) > 15


@pytest.mark.parametrize("model", [Notification, DeliveryAttempt], ids=lambda m: m.__name__)
def test_console_cannot_write_delivery_state(model: type[Notification | DeliveryAttempt]) -> None:
    request = RequestFactory().get("/")
    request.user = StaffUser(is_staff=True, is_superuser=True, is_active=True)
    shown = [a for m, a in admin.site._registry.items() if issubclass(m, model)]
    for page in shown:
        assert not page.has_add_permission(request)
        assert not page.has_change_permission(request)
        assert not page.has_delete_permission(request)
