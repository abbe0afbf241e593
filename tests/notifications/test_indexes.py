"""Declared, existing, and required indexes agree."""

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from pymongo import TEXT

from notifyproject.db.collections import database
from notifyproject.db.indexes import EXTERNAL_INDEXES, MongoIndex
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
[Decision 45](../decisions/0045-replaced-structures.md) says what replaced other structures.

## Additional indexes

| index | purpose | keys |
|---|---|---|
"""
TAIL = """
Unique fields (`staff_users.username`, `api_clients.name`) have indexes of their own, partial on the
least value of the field's type: [decision 2](../decisions/0002-database-engine.md).
"""


def render(existing: Callable[[str], Mapping[str, Mapping[str, Any]]]) -> str:
    """Return the text of docs/reference/indexes.md. ``existing`` returns a collection's indexes."""
    lines = [
        f"| `{index.collection}` | {index.purpose} | {_keys(index.keys)} | {_served(index)} |"
        for index in REQUIRED
    ]
    collections = {
        *(index.collection for index in REQUIRED),
        "metrics_due",
        "incidents",
        "webhook_log",
        "request_log",
        "provider_events",
        "recipients",
        "suppressions",
        "topic_members",
        "service_windows",
        "soft_bounces",
        "early_receipts",
        "whatsapp_identities",
        "muted_problems",
        "saved_views",
        "api_clients",
        "limit_uses",
        "country_units",
        "daily_units",
        "test_clocks",
        "test_outbox",
        "inbox_visits",
        "inbox_revocations",
        "login_failures",
        "oidc_sessions",
        "oidc_logouts",
        "digests",
        "broadcasts",
        "audience_files",
        "audience_file_parts",
        "callback_messages",
        "operations",
        "operation_results",
        "django_admin_log",
    }
    found = {name: index for c in collections for name, index in existing(c).items()}
    others = [
        f"| `{name}` | {OTHER_INDEXES[name]} | {_all_keys(found[name])} |" for name in OTHER_INDEXES
    ]
    return HEAD + "\n".join(lines) + "\n" + MIDDLE + "\n".join(others) + "\n" + TAIL


def _served(required: RequiredIndex) -> str:
    index = (
        f"`{required.served_by}`{', unique' if required.unique else ''}"
        if required.served_by
        else "none"
    )
    return f"{index}. {required.why}" if required.why else index


def _all_keys(index: Mapping[str, Any]) -> str:
    words = index.get("weights", {})
    return ", ".join(f"words of `{name}`" for name in words) or _keys(index["key"])


def _keys(keys: Key) -> str:
    return ", ".join(f"`{name}`{' ↓' if direction == -1 else ''}" for name, direction in keys)


pytestmark = pytest.mark.usefixtures("db")

Key = list[tuple[str, int | str]]
MODELS = [model for model in apps.get_models() if not model._meta.proxy]
OURS = [model for model in MODELS if not model.__module__.startswith("django")]
PAGE = Path(settings.BASE_DIR, "docs", "reference", "indexes.md")


def existing(name: str) -> dict[str, dict[str, Any]]:
    """Return the indexes of a collection, without the index on ``_id``."""
    found = database()[name].index_information()
    assert found.pop("_id_")["key"] == [("_id", 1)]
    return dict(found)


def declared(model: Any) -> dict[str, Key | None]:
    """Return the keys of a model's declared indexes by name; None if Django defines the keys."""
    options, names = model._meta, dict[str, Key | None]()
    with connection.schema_editor() as editor:
        for index in (*options.indexes, *EXTERNAL_INDEXES.get(options.db_table, ())):
            names[index.name] = None
            if isinstance(index, MongoIndex):
                document = index.get_pymongo_index_model(model, editor).document
                key = list(dict(document["key"]).items())
                # MongoDB lists a full-text index under keys of its own.
                names[index.name] = None if TEXT in dict(key).values() else key
        columns = [([f.column], "_uniq") for f in options.local_fields if f.unique]
        columns += [([f.column], "") for f in options.local_fields if f.db_index and not f.unique]
        columns += [
            ([options.get_field(name).column for name in fields], "_uniq")
            for fields in options.unique_together
        ]
        for some, suffix in columns:
            if some != ["_id"]:
                name = str(editor._create_index_name(options.db_table, some, suffix))
                names[name] = [(column, 1) for column in some]
    return names | {constraint.name: None for constraint in options.constraints}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.db_table)
def test_declared_indexes_exist_and_no_others(model: Any) -> None:
    assert set(existing(model._meta.db_table)) == set(declared(model))


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.db_table)
def test_index_has_its_declared_keys_and_options(model: Any) -> None:
    found = existing(model._meta.db_table)
    for name, key in declared(model).items():
        assert key is None or [(f, d) for f, d in found[name]["key"]] == key
    for index in model._meta.indexes:
        if isinstance(index, MongoIndex):
            stored = found[index.name]
            assert bool(stored.get("unique")) == bool(index.options.get("unique"))
            assert bool(stored.get("sparse")) == bool(index.options.get("sparse"))
            assert stored.get("expireAfterSeconds") == index.options.get("expire_after_seconds")
            assert _plain(stored.get("partialFilterExpression")) == index.options.get("partial")


def _plain(value: Any) -> Any:
    return {k: _plain(v) for k, v in value.items()} if hasattr(value, "items") else value


def test_no_index_is_a_prefix_of_another() -> None:
    """An index that is a prefix of another slows writes and serves no further query."""
    for model in OURS:
        whole = {
            name: list(index["key"])
            for name, index in existing(model._meta.db_table).items()
            if not {"partialFilterExpression", "sparse", "unique", "expireAfterSeconds"}
            & set(index)
        }
        for name, key in whole.items():
            longer = [n for n, k in whole.items() if n != name and k[: len(key)] == key]
            assert not longer, f"{name} is a prefix of {longer}"


def test_models_have_migrations() -> None:
    output = io.StringIO()
    call_command("makemigrations", check=True, dry_run=True, stdout=output)
    assert "No changes detected" in output.getvalue()


@pytest.mark.parametrize(
    "required", REQUIRED, ids=lambda required: f"{required.collection}: {required.purpose}"
)
def test_required_indexes_are_served(required: RequiredIndex) -> None:
    assert required.served_by or required.why, "served, or a reason why not"
    if required.served_by in (None, "_id_"):
        return
    assert required.served_by in existing(required.collection)
    key = list(existing(required.collection)[required.served_by]["key"])
    if not required.why:
        assert key[: len(required.keys)] == list(required.keys)
    if required.unique:
        assert existing(required.collection)[required.served_by].get("unique")


def test_unserved_requirements_have_a_reason() -> None:
    for required in REQUIRED:
        assert not required.why or required.why.endswith(".")


def test_index_page_is_up_to_date() -> None:
    assert PAGE.read_text() == render(existing)


def test_index_page_lists_every_index() -> None:
    page = PAGE.read_text()
    ours = {"notifications", "recipients", "devices", "analytics", "access", "callbacks"}
    indexes = [i for model in OURS if model._meta.app_label in ours for i in model._meta.indexes]
    assert [index.name for index in indexes if f"`{index.name}`" not in page] == []
