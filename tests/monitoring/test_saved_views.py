"""Alert rules about saved views: more than N for M minutes."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from pymongo.errors import ExecutionTimeout

from monitoring import alert_rules, saved_views
from monitoring.models import AlertKind
from notifyproject.db.collections import collection
from notifyproject.db.stored_match import ago, dump_match
from tests.support.factories.alerts import MINUTE, NOW, evaluate, fail, found, subjects

pytestmark = pytest.mark.usefixtures("db", "calm")


def viewed() -> ObjectId:
    """Return a shared view of the failures of the last hour."""
    since = {"failed_at": {"$gte": ago(timedelta(hours=1), now=NOW)}}
    view = {"name": "Failed", "owner_id": ObjectId(), "is_shared": True, "position": 0}
    view |= {"list": "notifications_failednotification", "query": "failed_within=1h"}
    view |= {"source": "notifications", "match": dump_match(since), "index": "ntf_failed"}
    return ObjectId(collection("saved_views").insert_one(view).inserted_id)


@pytest.fixture
def rule() -> ObjectId:
    """Return a rule: more than three for ten minutes. It is the only one."""
    collection("alert_rules").delete_many({})
    made = {"name": "Mail fails", "kind": AlertKind.SAVED_VIEW.value, "view_id": viewed()}
    made |= {"threshold": 3, "window_minutes": 10, "is_enabled": True}
    return ObjectId(collection("alert_rules").insert_one(made).inserted_id)


def opened(minutes: int) -> list[str]:
    """Evaluate the rules so many minutes later. Return the titles of the open incidents."""
    evaluate(NOW + minutes * MINUTE)
    return [one["title"] for one in found() if one["is_open"]]


def since(rule_id: ObjectId) -> datetime | None:
    document = collection("alert_rules").find_one({"_id": rule_id})
    return None if document is None else document.get("exceeded_since")


@pytest.mark.usefixtures("maria")
def test_more_for_long_enough_opens_notifies_and_resolves(rule: ObjectId) -> None:
    fail(3)
    assert opened(0) == [], "three are not more than three"
    assert since(rule) is None
    fail(1)
    for minutes in range(1, 11):
        assert opened(minutes) == [], minutes
    assert opened(11) == ["Mail fails: more than 3"]
    assert subjects() == ["Alert: Mail fails: more than 3"]
    assert opened(50) == ["Mail fails: more than 3"], "also after a time without checks"
    for minutes in (62, 64):
        shown = opened(minutes)
    assert shown == [], "they are an hour old"
    assert subjects()[-1] == "Resolved: Mail fails: more than 3"
    assert since(rule) is None


def test_break_begins_the_time_anew(rule: ObjectId) -> None:
    fail(4)
    opened(0)
    collection("notifications").update_one({}, {"$unset": {"failed_at": ""}})
    opened(5)
    assert since(rule) is None
    fail(4)
    for minutes in (6, 10, 14, 15):
        assert opened(minutes) == []
    assert opened(16) == ["Mail fails: more than 3"]


def test_time_without_checks_does_not_count(rule: ObjectId) -> None:
    fail(4)
    opened(0)
    assert opened(30) == [], "nobody knows what was meanwhile"
    for minutes in (34, 38):
        assert opened(minutes) == []
    assert opened(40) == ["Mail fails: more than 3"]


def test_count_stops_at_the_threshold_and_reads_one_index(
    rule: ObjectId, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    counted = saved_views.count

    def count(view: Any, *, limit: int, **options: Any) -> int:
        seen.append(limit)
        return counted(view, limit=limit, **options)

    monkeypatch.setattr(saved_views, "count", count)
    fail(9)
    opened(0)
    assert seen == [4]


def test_count_that_takes_too_long_changes_nothing(
    rule: ObjectId, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(4)
    for minutes in (0, 4, 8, 10):
        opened(minutes)

    def time_out(*_args: Any, **_options: Any) -> int:
        raise ExecutionTimeout("too long")

    monkeypatch.setattr(saved_views, "count", time_out)
    assert opened(20) == ["Mail fails: more than 3"]


def test_rule_without_its_view_says_so(rule: ObjectId) -> None:
    """A rule that was added while its view was deleted."""
    collection("saved_views").delete_many({})
    assert opened(0) == ["Mail fails: its saved view is gone"]


def test_deleted_view_takes_its_rules_along(rule: ObjectId) -> None:
    [view] = collection("saved_views").find()
    saved_views.delete([view["_id"]])
    assert alert_rules.enabled_rules() == []
    assert opened(0) == []


def test_views_are_counted_after_all_other_rules(rule: ObjectId) -> None:
    alert_rules.add_missing_rules()
    assert alert_rules.enabled_rules()[-1].id == rule
