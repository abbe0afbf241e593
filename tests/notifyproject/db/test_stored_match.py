"""Filters as text for storage, in which times may be relative to each use."""

from datetime import UTC, datetime, timedelta

from bson import ObjectId

from notifyproject.db.collections import collection
from notifyproject.db.stored_match import ago, dump_match, load_match

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def test_relative_times_move_and_others_stay() -> None:
    client_id = ObjectId()
    match = {
        "$and": [
            {"client_id": client_id, "count": {"$gt": 3}, "claim": None, "is_test": {"$ne": True}},
            {"created_at": {"$gte": ago(DAY, now=NOW), "$lt": NOW}},
            {"delivery": {"$elemMatch": {"due": {"$gt": ago(timedelta(), now=NOW)}}}},
            {"status": {"$in": ("sent", "failed")}},
        ]
    }
    text = dump_match(match)
    assert load_match(text, now=NOW) == {
        "$and": [*match["$and"][:3], {"status": {"$in": ["sent", "failed"]}}]
    }
    later = load_match(text, now=NOW + DAY)
    assert later["$and"][1] == {"created_at": {"$gte": NOW, "$lt": NOW}}
    assert later["$and"][2] == {"delivery": {"$elemMatch": {"due": {"$gt": NOW + DAY}}}}


def test_relative_time_is_a_time_in_a_query(db: None) -> None:
    collection("seen").insert_many([{"at": NOW - 2 * DAY}, {"at": NOW}])
    assert collection("seen").count_documents({"at": {"$gte": ago(DAY, now=NOW)}}) == 1
