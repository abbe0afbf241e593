"""The database engine: literal values, and unique indexes."""

from typing import Any

import pytest
from bson import ObjectId

from notifications.models import Notification
from notifyproject.db.collections import database
from notifyproject.db.schema import LEAST_VALUE
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("db")


@pytest.mark.parametrize(
    "text", ["U0012.", "U0012", "u.0012.", "$ne", '{"$gt": ""}', "a\\b", "a.b"]
)
def test_user_id_is_matched_literally(text: str) -> None:
    for user_id in (text, "U00123", "u0012x", "anyone"):
        factories.accepted(user_id=user_id)
    for lookup in ("exact", "iexact"):
        found = Notification.objects.filter(**{f"user_id__{lookup}": text})
        assert [item.user_id for item in found] == [text]


@pytest.mark.parametrize("kind", sorted(LEAST_VALUE))
def test_comparison_matches_exactly_the_values_of_the_type(kind: str) -> None:
    values: list[Any] = [
        None,
        "",
        "a",
        0,
        -(2**31),
        -(2**63),
        2**40,
        -1.5,
        float("inf"),
        float("-inf"),
        False,
        True,
        b"x",
        ObjectId("0" * 24),
        ObjectId(),
        NOON,
        NOON.replace(year=1),
        [],
        ["a"],
        {},
        {"a": 1},
    ]
    scratch = database()["scratch"]
    try:
        scratch.insert_many([{"f": value} for value in values] + [{}])
        numbers = {"int", "long", "double", "decimal"}
        types = sorted(numbers) if kind in numbers else [kind]
        # An array matches by its elements either way; a unique index keeps each element once too.
        by_type = {d["_id"] for d in scratch.find({"f": {"$type": types}})}
        by_value = {d["_id"] for d in scratch.find({"f": {"$gte": LEAST_VALUE[kind]}})}
        assert by_type
        assert by_value == by_type
    finally:
        scratch.drop()


def test_unique_field_may_be_missing_twice() -> None:
    users = database()["staff_users"]
    for _ in range(2):
        users.insert_one({"password": "!"})
    assert users.count_documents({"username": {"$exists": False}}) == 2
