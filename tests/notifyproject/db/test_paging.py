"""Cursors in addresses and as MongoDB filters."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from bson import ObjectId

from notifyproject.db.paging import (
    Cursor,
    InvalidCursorError,
    cursor_of_row,
    decode_cursor,
    encode_cursor,
    match_beyond,
    order_of,
)
from tests.support.tables import each_case

AT = datetime(2026, 11, 21, 12, 0, 0, 5_000, tzinfo=UTC)
KEY = ObjectId("64b000000000000000000001")
FIELDS = ("-created_at", "-id")
ORDER = order_of(FIELDS)


def test_cursor_round_trips() -> None:
    row = SimpleNamespace(created_at=AT, pk=KEY)
    place = cursor_of_row(row, FIELDS)
    assert place == Cursor((AT, KEY))
    for cursor in (place, Cursor((AT, KEY), backwards=True), Cursor(("user-7",))):
        assert decode_cursor(encode_cursor(cursor, list_name="a"), list_name="a") == cursor


@each_case("text", ["", "nonsense", "!!!!", "W10", "W1sieCIsMV1d", "W1sibyIsImEiXV0", "MQ", "ü"])
def test_invalid_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor(text, list_name="a")


def test_cursor_of_another_list_is_refused() -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor(encode_cursor(Cursor((KEY,)), list_name="a"), list_name="b")
    with pytest.raises(InvalidCursorError):
        match_beyond(Cursor((KEY,)), ORDER)


def test_forward_match_starts_with_the_bound() -> None:
    assert match_beyond(Cursor((AT, KEY)), ORDER) == {
        "$and": [
            {"created_at": {"$lte": AT}},
            {"$or": [{"created_at": {"$lt": AT}}, {"created_at": AT, "_id": {"$lt": KEY}}]},
        ]
    }


def test_backward_match_is_reversed() -> None:
    found = match_beyond(Cursor((AT, KEY), backwards=True), order_of(("due_at", "id")))
    assert found["$and"][0] == {"due_at": {"$lte": AT}}
    assert match_beyond(Cursor((AT, KEY), backwards=True), ORDER)["$and"][0] == {
        "created_at": {"$gte": AT}
    }


def test_order_by_key_alone_is_one_comparison() -> None:
    assert match_beyond(Cursor((KEY,)), order_of(("-id",))) == {"_id": {"$lt": KEY}}


def test_each_further_field_adds_one_alternative() -> None:
    found = match_beyond(Cursor(("ada", AT, KEY)), order_of(("user_id", "-created_at", "id")))
    assert found == {
        "$and": [
            {"user_id": {"$gte": "ada"}},
            {
                "$or": [
                    {"user_id": {"$gt": "ada"}},
                    {"user_id": "ada", "created_at": {"$lt": AT}},
                    {"user_id": "ada", "created_at": AT, "_id": {"$gt": KEY}},
                ]
            },
        ]
    }
