"""Shard keys in docs/guides/scale.md: every collection has one or stays unsharded."""

import re
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django_mongodb_backend.models import EmbeddedModel

from notifyproject.db.collections import database
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

PAGE = Path(settings.BASE_DIR, "docs", "guides", "scale.md").read_text()
SECTION = PAGE.partition("## Sharding")[2].partition("\n## ")[0]
KEYS = {
    name: (field, int(kind) if kind.isdigit() else kind.strip('"'))
    for name, field, kind in re.findall(r"^\| `(\w+)` \| `\{(\w+): ([^}]+)\}` \|", SECTION, re.M)
}
"""The field of each shard key and its kind: 1 or hashed."""
UNSHARDED = set(re.findall(r"`(\w+)`", SECTION.partition("All other")[2].partition("\n\n")[0]))
OURS = {
    model._meta.db_table
    for model in apps.get_models()
    if not model._meta.proxy
    and not issubclass(model, EmbeddedModel)
    and not model.__module__.startswith("django")
}


def indexes(name: str) -> dict[str, Any]:
    return dict(database()[name].index_information())


def test_every_collection_has_a_shard_key_or_stays_unsharded() -> None:
    assert KEYS.keys() | UNSHARDED == OURS
    assert not KEYS.keys() & UNSHARDED


@each_case("name", KEYS)
def test_unique_indexes_begin_with_the_shard_key(name: str) -> None:
    """MongoDB doesn't shard a collection with another unique index."""
    field, _kind = KEYS[name]
    for index, found in indexes(name).items():
        if found.get("unique"):
            assert found["key"][0][0] == field, index


@each_case("name", [name for name, (_, kind) in KEYS.items() if kind == 1])
def test_index_serves_the_shard_key(name: str) -> None:
    """A hashed one is made for it; another needs an index that holds every document."""
    field, _kind = KEYS[name]
    whole = [
        index["key"]
        for index in indexes(name).values()
        if not {"partialFilterExpression", "sparse"} & set(index)
    ]
    assert any(key[0] == (field, 1) for key in whole)
