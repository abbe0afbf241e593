"""Cursors in addresses and as MongoDB filters."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from bson import ObjectId

from notifyproject.db import keyset
from notifyproject.db.keyset import InvalidCursorError
from notifyproject.db.paging import Cursor

AT = datetime(2026, 11, 21, 12, 0, 0, 5_000, tzinfo=UTC)
KEY = ObjectId("64b000000000000000000001")
ORDER = ("-created_at", "-id")


def test_cursor_round_trips() -> None:
    row = SimpleNamespace(created_at=AT, pk=KEY)
    place = keyset.cursor_of_row(row, ORDER)
    assert place == Cursor((AT, KEY))
    assert keyset.decode_cursor(keyset.encode_cursor(place)) == place
    assert keyset.decode_cursor(keyset.encode_cursor(Cursor(("user-7",)))) == Cursor(("user-7",))


@pytest.mark.parametrize(
    "text", ["", "nonsense", "!!!!", "W10", "W1sieCIsMV1d", "W1sibyIsImEiXV0", "MQ", "ü"]
)
def test_invalid_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidCursorError):
        keyset.match_beyond(keyset.decode_cursor(text), ORDER)


def test_forward_match_starts_with_the_bound() -> None:
    assert keyset.match_beyond(Cursor((AT, KEY)), ORDER) == {
        "$and": [
            {"created_at": {"$lte": AT}},
            {"$or": [{"created_at": {"$lt": AT}}, {"created_at": AT, "_id": {"$lt": KEY}}]},
        ]
    }


def test_backward_match_is_reversed() -> None:
    found = keyset.match_beyond(Cursor((AT, KEY), backwards=True), ("due_at", "id"))
    assert found["$and"][0] == {"due_at": {"$lte": AT}}
    assert keyset.match_beyond(Cursor((AT, KEY), backwards=True), ORDER)["$and"][0] == {
        "created_at": {"$gte": AT}
    }


def test_order_by_key_alone_is_one_comparison() -> None:
    assert keyset.match_beyond(Cursor((KEY,)), ("-id",)) == {"_id": {"$lt": KEY}}


def test_each_further_field_adds_one_alternative() -> None:
    found = keyset.match_beyond(Cursor(("ada", AT, KEY)), ("user_id", "-created_at", "id"))
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
