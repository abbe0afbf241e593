"""Cursors: their encoding, and the filters they become."""

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

AT = datetime(2026, 11, 21, 12, 0, 0, 5_000, tzinfo=UTC)
KEY = ObjectId("64b000000000000000000001")
FIELDS = ("-created_at", "-id")
ORDER = order_of(FIELDS)


def test_a_place_is_read_as_it_was_written() -> None:
    row = SimpleNamespace(created_at=AT, pk=KEY)
    place = cursor_of_row(row, FIELDS)
    assert place == Cursor((AT, KEY))
    for cursor in (place, Cursor((AT, KEY), backwards=True), Cursor(("user-7",))):
        assert decode_cursor(encode_cursor(cursor, list_name="a"), list_name="a") == cursor


@pytest.mark.parametrize(
    "text", ["", "nonsense", "!!!!", "W10", "W1sieCIsMV1d", "W1sibyIsImEiXV0", "MQ", "ü"]
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor(text, list_name="a")


def test_a_cursor_is_good_for_its_own_list_alone() -> None:
    with pytest.raises(InvalidCursorError):
        decode_cursor(encode_cursor(Cursor((KEY,)), list_name="a"), list_name="b")
    with pytest.raises(InvalidCursorError):
        match_beyond(Cursor((KEY,)), ORDER)


def test_behind_a_place_the_bound_comes_first() -> None:
    assert match_beyond(Cursor((AT, KEY)), ORDER) == {
        "$and": [
            {"created_at": {"$lte": AT}},
            {
                "$or": [
                    {"created_at": {"$lt": AT}},
                    {"created_at": AT, "_id": {"$lt": KEY}},
                ]
            },
        ]
    }


def test_before_a_place_everything_is_turned() -> None:
    found = match_beyond(Cursor((AT, KEY), backwards=True), order_of(("due_at", "id")))
    assert found["$and"][0] == {"due_at": {"$lte": AT}}
    assert match_beyond(Cursor((AT, KEY), backwards=True), ORDER)["$and"][0] == {
        "created_at": {"$gte": AT}
    }


def test_an_order_by_the_key_alone_needs_no_more() -> None:
    assert match_beyond(Cursor((KEY,)), order_of(("-id",))) == {"_id": {"$lt": KEY}}


def test_each_further_field_is_one_more_step() -> None:
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
