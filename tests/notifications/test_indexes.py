"""Every index that is declared exists, and nothing more; and each is what somebody asked for."""

import io
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection

from notifyproject.db.collections import database
from notifyproject.db.indexes import MongoIndex
from tests.support.docs_pages.indexes import render
from tests.support.mongo.indexes import REQUIRED, RequiredIndex

pytestmark = pytest.mark.usefixtures("db")

Key = list[tuple[str, int | str]]
MODELS = [model for model in apps.get_models() if not model._meta.proxy]
OURS = [model for model in MODELS if not model.__module__.startswith("django")]
PAGE = Path(settings.BASE_DIR, "docs", "reference", "indexes.md")


def existing(name: str) -> dict[str, dict[str, Any]]:
    """Return the indexes of a collection without the one every collection has."""
    found = database()[name].index_information()
    assert found.pop("_id_")["key"] == [("_id", 1)]
    return dict(found)


def declared(model: Any) -> dict[str, Key | None]:
    """Return the indexes a model declares by name; the keys of all but Django's own."""
    options, names = model._meta, dict[str, Key | None]()
    with connection.schema_editor() as editor:
        for index in options.indexes:
            names[index.name] = None
            if isinstance(index, MongoIndex):
                document = index.get_pymongo_index_model(model, editor).document
                names[index.name] = list(dict(document["key"]).items())
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
def test_the_declared_indexes_exist_and_nothing_more(model: Any) -> None:
    assert set(existing(model._meta.db_table)) == set(declared(model))


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.db_table)
def test_an_index_has_the_keys_that_are_declared(model: Any) -> None:
    found = existing(model._meta.db_table)
    for name, key in declared(model).items():
        assert key is None or [(f, d) for f, d in found[name]["key"]] == key


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.db_table)
def test_an_index_has_the_options_that_are_declared(model: Any) -> None:
    found = existing(model._meta.db_table)
    for index in model._meta.indexes:
        if isinstance(index, MongoIndex):
            one = found[index.name]
            assert bool(one.get("unique")) == bool(index.options.get("unique"))
            assert bool(one.get("sparse")) == bool(index.options.get("sparse"))
            assert one.get("expireAfterSeconds") == index.options.get("expire_after_seconds")
            assert _plain(one.get("partialFilterExpression")) == index.options.get("partial")


def _plain(value: Any) -> Any:
    return {k: _plain(v) for k, v in value.items()} if hasattr(value, "items") else value


def test_no_index_is_the_beginning_of_another() -> None:
    """Such an index would cost every write and serve nothing that the longer one does not."""
    for model in OURS:
        whole = {
            name: list(one["key"])
            for name, one in existing(model._meta.db_table).items()
            if not {"partialFilterExpression", "sparse", "unique", "expireAfterSeconds"} & set(one)
        }
        for name, key in whole.items():
            longer = [n for n, k in whole.items() if n != name and k[: len(key)] == key]
            assert not longer, f"{name} is the beginning of {longer}"


def test_every_model_has_its_migrations() -> None:
    output = io.StringIO()
    call_command("makemigrations", check=True, dry_run=True, stdout=output)
    assert "No changes detected" in output.getvalue()


@pytest.mark.parametrize(
    "asked", REQUIRED, ids=lambda asked: f"{asked.collection}: {asked.purpose}"
)
def test_every_index_that_was_asked_for_is_served(asked: RequiredIndex) -> None:
    assert asked.served_by or asked.why, "served, or a reason why not"
    if asked.collection == "idempotency_keys" or not asked.served_by:
        return
    assert asked.served_by in existing(asked.collection)
    key = list(existing(asked.collection)[asked.served_by]["key"])
    if not asked.why:
        assert key[: len(asked.keys)] == list(asked.keys)
    if asked.unique:
        assert existing(asked.collection)[asked.served_by].get("unique")


def test_every_asked_for_field_that_is_not_served_as_asked_has_a_reason() -> None:
    for asked in REQUIRED:
        assert not asked.why or asked.why.endswith(".")


def test_the_page_about_indexes_says_what_is_so() -> None:
    assert PAGE.read_text() == render(existing)


def test_every_index_of_ours_is_on_the_page() -> None:
    page = PAGE.read_text()
    for model in OURS:
        if model._meta.app_label in (
            "notifications",
            "recipients",
            "devices",
            "analytics",
            "access",
            "callbacks",
        ):
            for index in model._meta.indexes:
                assert f"`{index.name}`" in page, index.name
