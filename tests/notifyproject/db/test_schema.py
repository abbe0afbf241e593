"""Unique indexes that also serve lookups, new fields, and the order of pipeline stages."""

from typing import Any

import pytest
from django.db import connection
from pymongo.operations import IndexModel

from devices.models import Device
from notifyproject.db.collections import collection
from notifyproject.db.compiler import _sort_before_project
from notifyproject.db.schema import LEAST_VALUE, _LookupFriendlyIndex, lookup_friendly
from tests.support.tables import each_case


@each_case("kind", sorted(LEAST_VALUE))
def test_type_filter_becomes_a_comparison(kind: str) -> None:
    assert lookup_friendly({"f": {"$type": kind}}) == {"f": {"$gte": LEAST_VALUE[kind]}}


@each_case(
    "partial",
    [
        {},
        {"f": {"$exists": True}},
        {"f": {"$type": "array"}},
        {"f": {"$type": "string", "$ne": ""}},
        {"f": "value"},
        {"f": None},
    ],
)
def test_other_filters_are_unchanged(partial: dict[str, Any]) -> None:
    assert lookup_friendly(partial) == partial


def test_each_field_is_converted_separately() -> None:
    partial = {"a": {"$type": "string"}, "b": {"$exists": True}, "c": {"$type": "int"}}
    assert lookup_friendly(partial) == {
        "a": {"$gte": ""},
        "b": {"$exists": True},
        "c": {"$gte": float("-inf")},
    }


class Index:
    name = "an_index"

    def __init__(self, model: Any) -> None:
        self.model = model

    def get_pymongo_index_model(self, *_args: Any, **_options: Any) -> Any:
        return self.model


STRINGS, SERVES_LOOKUPS = {"f": {"$type": "string"}}, {"f": {"$gte": ""}}


@each_case(
    "options, changes",
    [
        (
            {"unique": True, "partialFilterExpression": STRINGS},
            {"partialFilterExpression": SERVES_LOOKUPS},
        ),
        ({"unique": True}, {}),
        ({"partialFilterExpression": STRINGS}, {}),
        ({}, {}),
    ],
)
def test_only_the_filter_of_a_unique_index_is_changed(
    options: dict[str, Any], changes: dict[str, Any]
) -> None:
    index = _LookupFriendlyIndex(Index(IndexModel([("f", 1)], **options)))
    model = index.get_pymongo_index_model(None, None)
    assert model is not None
    assert model.document == {**IndexModel([("f", 1)], **options).document, **changes}


def test_missing_index_model_stays_none_and_other_attributes_are_passed_through() -> None:
    index = _LookupFriendlyIndex(Index(None))
    assert index.get_pymongo_index_model(None, None) is None
    assert index.name == "an_index"


@pytest.mark.usefixtures("db")
def test_added_field_is_written_to_stored_documents_only_if_they_need_it() -> None:
    devices = collection("devices")
    devices.insert_one({"_id": "a"})
    with connection.schema_editor() as editor:
        for name in (
            "app_version",
            "deactivated_at",
            "notification_preferences",
            "token_rejections",
        ):
            editor.add_field(Device, Device._meta.get_field(name))
    assert devices.find_one() == {"_id": "a", "token_rejections": 0}


PROJECT, SORT, MATCH = {"$project": {"a": 1, "b": 1}}, {"$sort": {"a": 1}}, {"$match": {"a": 1}}


@each_case(
    "pipeline, expected",
    [
        ([PROJECT, SORT], [SORT, PROJECT]),
        ([MATCH, PROJECT, SORT], [MATCH, SORT, PROJECT]),
        ([PROJECT, {"$sort": {"_id": -1}}], [{"$sort": {"_id": -1}}, PROJECT]),
        ([PROJECT, {"$sort": {"a": 1, "_id": 1}}], [{"$sort": {"a": 1, "_id": 1}}, PROJECT]),
        ([PROJECT, {"$sort": {"c": 1}}], [PROJECT, {"$sort": {"c": 1}}]),
        ([{"$project": {"a": "$b"}}, SORT], [{"$project": {"a": "$b"}}, SORT]),
        ([{"$project": {"a": {"$add": [1]}}}, SORT], [{"$project": {"a": {"$add": [1]}}}, SORT]),
        (
            [{"$project": {"a": 1, "_id": 0}}, {"$sort": {"_id": 1}}],
            [{"$project": {"a": 1, "_id": 0}}, {"$sort": {"_id": 1}}],
        ),
        ([SORT, PROJECT], [SORT, PROJECT]),
        ([PROJECT], [PROJECT]),
        ([], []),
    ],
)
def test_sort_moves_before_a_project_it_commutes_with(
    pipeline: list[dict[str, Any]], expected: list[dict[str, Any]]
) -> None:
    assert _sort_before_project(list(pipeline)) == expected
