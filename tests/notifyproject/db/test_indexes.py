"""MongoIndex in migrations and in MongoDB."""

from typing import Any

from django.apps import apps
from django.db.migrations.writer import MigrationWriter

from notifyproject.db.indexes import MongoIndex
from tests.support.tables import each_case

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
UNIQUE_IN_PART = {"unique": True, "partialFilterExpression": {"b": None}}
OURS = [
    index
    for model in apps.get_models()
    for index in model._meta.indexes
    if isinstance(index, MongoIndex)
]


@each_case("index", [*EXAMPLES, *OURS])
def test_deconstructed_and_cloned_index_is_equal_and_not_the_same(index: MongoIndex) -> None:
    path, args, kwargs = index.deconstruct()
    assert path == "notifyproject.db.indexes.MongoIndex"
    for copy in (MongoIndex(*args, **kwargs), index.clone()):
        assert copy == index
        assert copy is not index
        assert hash(copy) == hash(index)
        assert copy.deconstruct() == index.deconstruct()


@each_case("index", EXAMPLES)
def test_migration_can_be_written(index: MongoIndex) -> None:
    text, imports = MigrationWriter.serialize(index)
    assert imports == {"import notifyproject.db.indexes"}
    names: dict[str, Any] = {}
    exec("import notifyproject.db.indexes", names)
    assert eval(text, names) == index


@each_case(
    "name, key, options",
    [
        ("one", {"a": 1}, {}),
        ("several", {"a": 1, "b.c": -1, "_id": -1}, {}),
        ("hashed", {"a": "hashed"}, {}),
        ("unique", {"a": 1}, {"unique": True}),
        ("sparse", {"a": 1}, {"sparse": True}),
        ("partial", {"a": 1}, {"partialFilterExpression": {"a": {"$exists": True}}}),
        ("ttl", {"a": 1}, {"expireAfterSeconds": 0}),
        ("all", {"a": 1}, {**UNIQUE_IN_PART, "expireAfterSeconds": 60}),
    ],
)
def test_index_becomes_a_pymongo_model(
    name: str, key: dict[str, Any], options: dict[str, Any]
) -> None:
    (index,) = (example for example in EXAMPLES if example.name == name)
    model = index.get_pymongo_index_model(None, None).document
    assert {**model, "key": dict(model["key"])} == {"name": name, "key": key, **options}
    assert list(model["key"]) == list(key)


def test_column_prefix_applies_to_every_key() -> None:
    model = EXAMPLES[1].get_pymongo_index_model(None, None, column_prefix="x.").document
    assert list(model["key"]) == ["x.a", "x.b.c", "x._id"]


@each_case(
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
def test_different_index_is_not_equal(other: object) -> None:
    assert MongoIndex("a", name="one") != other


def test_repr_shows_name_and_fields() -> None:
    assert repr(EXAMPLES[1]) == "<MongoIndex several: a, -b.c, -_id >"


def test_index_copies_its_filter() -> None:
    partial = {"a": {"$exists": True}}
    index = MongoIndex("a", name="i", partial=partial)
    partial["b"] = {"$exists": True}
    assert index.options["partial"] == {"a": {"$exists": True}}


def test_index_names_are_unique_in_a_collection() -> None:
    for model in apps.get_models():
        names = [index.name for index in model._meta.indexes]
        assert len(names) == len(set(names))


def test_index_names_start_with_their_collection() -> None:
    assert len(OURS) > 30
    assert all(len(index.name) <= 30 and index.name[3] == "_" for index in OURS)
