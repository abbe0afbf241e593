"""MongoIndex: a declaration that migrations understand and MongoDB gets in its own words."""

from typing import Any

import pytest
from django.apps import apps
from django.db.migrations.writer import MigrationWriter

from notifyproject.db.indexes import MongoIndex

EXAMPLES = [
    MongoIndex("a", name="one"),
    MongoIndex("a", "-b.c", "-_id", name="several"),
    MongoIndex("#a", name="hashed"),
    MongoIndex("a", name="unique", unique=True),
    MongoIndex("a", name="sparse", sparse=True),
    MongoIndex("a", name="partial", partial={"a": {"$exists": True}}),
    MongoIndex("a", name="ttl", expire_after_seconds=0),
    MongoIndex("a", name="all", unique=True, partial={"b": None}, expire_after_seconds=60),
]
OURS = [
    index
    for model in apps.get_models()
    for index in model._meta.indexes
    if isinstance(index, MongoIndex)
]


@pytest.mark.parametrize("index", [*EXAMPLES, *OURS], ids=lambda index: index.name)
def test_an_index_is_made_again_from_what_a_migration_writes(index: MongoIndex) -> None:
    path, args, kwargs = index.deconstruct()
    assert path == "notifyproject.db.indexes.MongoIndex"
    assert MongoIndex(*args, **kwargs) == index
    assert MongoIndex(*args, **kwargs).deconstruct() == index.deconstruct()


@pytest.mark.parametrize("index", [*EXAMPLES, *OURS], ids=lambda index: index.name)
def test_a_clone_is_equal_and_another(index: MongoIndex) -> None:
    clone = index.clone()
    assert clone == index
    assert clone is not index
    assert hash(clone) == hash(index)


@pytest.mark.parametrize("index", EXAMPLES, ids=lambda index: index.name)
def test_a_migration_can_be_written(index: MongoIndex) -> None:
    text, imports = MigrationWriter.serialize(index)
    assert imports == {"import notifyproject.db.indexes"}
    names: dict[str, Any] = {}
    exec("import notifyproject.db.indexes", names)
    assert eval(text, names) == index


@pytest.mark.parametrize(
    ("index", "document"),
    [
        (EXAMPLES[0], {"name": "one", "key": {"a": 1}}),
        (EXAMPLES[1], {"name": "several", "key": {"a": 1, "b.c": -1, "_id": -1}}),
        (EXAMPLES[2], {"name": "hashed", "key": {"a": "hashed"}}),
        (EXAMPLES[3], {"name": "unique", "key": {"a": 1}, "unique": True}),
        (EXAMPLES[4], {"name": "sparse", "key": {"a": 1}, "sparse": True}),
        (
            EXAMPLES[5],
            {
                "name": "partial",
                "key": {"a": 1},
                "partialFilterExpression": {"a": {"$exists": True}},
            },
        ),
        (EXAMPLES[6], {"name": "ttl", "key": {"a": 1}, "expireAfterSeconds": 0}),
        (
            EXAMPLES[7],
            {
                "name": "all",
                "key": {"a": 1},
                "unique": True,
                "partialFilterExpression": {"b": None},
                "expireAfterSeconds": 60,
            },
        ),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_mongodb_gets_the_index_in_its_own_words(
    index: MongoIndex, document: dict[str, Any]
) -> None:
    model = index.get_pymongo_index_model(None, None).document
    assert {**model, "key": dict(model["key"])} == document
    assert list(model["key"]) == list(document["key"])


def test_an_index_of_an_embedded_model_has_the_path_before_its_keys() -> None:
    model = EXAMPLES[1].get_pymongo_index_model(None, None, column_prefix="x.").document
    assert list(model["key"]) == ["x.a", "x.b.c", "x._id"]


@pytest.mark.parametrize(
    "other",
    [
        MongoIndex("b", name="one"),
        MongoIndex("a", name="two"),
        MongoIndex("-a", name="one"),
        MongoIndex("a", name="one", unique=True),
        MongoIndex("a", name="one", expire_after_seconds=0),
        "one",
        None,
    ],
)
def test_another_index_is_not_equal(other: object) -> None:
    assert MongoIndex("a", name="one") != other


def test_an_index_tells_what_it_is() -> None:
    assert repr(EXAMPLES[1]) == "<MongoIndex several: a, -b.c, -_id >"


def test_a_filter_may_change_after_the_index_was_made_without_changing_it() -> None:
    partial = {"a": {"$exists": True}}
    index = MongoIndex("a", name="i", partial=partial)
    partial["b"] = {"$exists": True}
    assert index.options["partial"] == {"a": {"$exists": True}}


def test_no_two_indexes_of_a_collection_have_one_name() -> None:
    for model in apps.get_models():
        names = [index.name for index in model._meta.indexes]
        assert len(names) == len(set(names))


def test_every_index_of_ours_is_named_after_its_collection() -> None:
    assert len(OURS) > 30
    assert all(len(index.name) <= 30 and index.name[3] == "_" for index in OURS)
