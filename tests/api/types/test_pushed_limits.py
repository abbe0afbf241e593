"""Limits for recipients, stored together with types by ``/type-files``."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from access.models import Scope
from domain.time import utc_now
from notifications.catalog import limits, types
from notifications.content import limit_changes, pushes
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, new_app, pointers
from tests.support.mongo.ending_writes import Ended, ending
from tests.support.tables import each_case

FILES, LINT = "/type-files", "/type-files/lint"
WEEKLY = {"categories": ["marketing"], "max": 3, "period_seconds": 604_800}
PARCEL: dict[str, Any] = {
    "slug": "parcel_lost",
    "definition": {"name": "Parcel lost", "category": "transactional", "channels": ["email"]},
    "parts": {"default": {"subject": "Lost", "body": "We are sorry."}},
}


@pytest.fixture(autouse=True)
def no_limits_left() -> Iterator[None]:
    yield
    collection("limits").delete_many({})
    limits.invalidate_limits()


def file_of(limit: dict[str, Any] | None, *, revision: str | None = None) -> dict[str, Any]:
    return {"name": "weekly", "revision": revision, "limit": limit}


def push(app: App, *each: dict[str, Any], publish: bool = True, **fields: Any) -> Answer:
    return app.post(FILES, {"limits": list(each), "publish": publish, **fields})


def outcome(answer: Answer) -> str:
    assert answer.status_code == 200, answer.content
    (found,) = answer.json()["limits"]
    return str(found["outcome"])


def shown(app: App) -> dict[str, Any]:
    (found,) = app.get(FILES).json()["limits"]
    return dict(found)


def test_limit_is_stored_with_a_type_that_it_names(app: App) -> None:
    limit = {**WEEKLY, "types": ["parcel_lost"]}
    assert pointers(push(app, file_of(limit))) == {"/limits/0/limit/types/0": "unknown_type"}
    answer = push(app, file_of(limit), types=[PARCEL])
    assert outcome(answer) == "created"
    (stored,) = answer.json()["limits"]
    assert {"outcome": "created", **shown(app)} == stored
    assert stored["limit"] == limit
    assert [each.name for each in limits.active_limits()] == ["weekly"]
    assert outcome(push(app, file_of(limit), types=[PARCEL])) == "unchanged"
    assert LogEntry.objects.filter(object_id="weekly").count() == 1


def test_what_has_its_default_is_not_shown(app: App) -> None:
    defaults = {"types": [], "overflow": "later", "min_gap_seconds": 0}
    assert outcome(push(app, file_of({**WEEKLY, **defaults}))) == "created"
    assert shown(app)["limit"] == WEEKLY
    assert app.get(FILES, limit=1).json()["limits"] == [shown(app)]
    second = app.get(FILES, limit=1).json()["next"]
    assert app.get(FILES, limit=1, cursor=second).json()["limits"] == []


def test_limit_is_changed_and_removed_by_its_revision(app: App) -> None:
    push(app, file_of(WEEKLY))
    revision = shown(app)["revision"]
    assert app.put("/limits/weekly", {**WEEKLY, "max": 1}).status_code == 200
    for limit in ({**WEEKLY, "max": 2}, None):
        answer = push(app, file_of(limit, revision=revision))
        assert (answer.status_code, pointers(answer)) == (409, {"/limits/0/revision": "changed"})
    assert outcome(push(app, file_of({**WEEKLY, "max": 1}))) == "unchanged", "already as sent"
    revision = shown(app)["revision"]
    assert outcome(push(app, file_of({**WEEKLY, "max": 2}, revision=revision))) == "changed"
    entry = LogEntry.objects.filter(object_id="weekly").latest("action_time")
    assert "max" in entry.change_message
    answer = push(app, file_of(None, revision=shown(app)["revision"]))
    assert (outcome(answer), app.get(FILES).json()["limits"]) == ("removed", [])
    assert limits.active_limits() == ()
    assert outcome(push(app, file_of(None))) == "unchanged"


@each_case("fields", [{"publish": False}, {"dry_run": True}])
def test_limits_are_stored_only_by_a_publication(app: App, fields: dict[str, bool]) -> None:
    assert outcome(push(app, file_of(WEEKLY), **fields)) == "created"
    assert limits.read_limits() == []


def test_publication_needs_the_scope(app: App, db: None) -> None:
    weak = new_app("weak", Scope.TEMPLATES_WRITE)
    answer = push(weak, file_of(WEEKLY), types=[PARCEL])
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert push(weak, file_of(WEEKLY), dry_run=True).status_code == 403
    assert outcome(push(weak, file_of(WEEKLY), publish=False, dry_run=True)) == "created"
    assert limits.read_limits() == []
    push(app, file_of(WEEKLY))
    assert outcome(push(weak, file_of(WEEKLY), types=[PARCEL])) == "unchanged"


def test_each_problem_is_named_by_its_place(app: App) -> None:
    wrong = {**WEEKLY, "max": 3, "min_gap_seconds": 600_000}
    gap = {"/limits/0/limit/min_gap_seconds": "out_of_range"}
    assert pointers(push(app, file_of(wrong))) == gap
    assert pointers(app.post(LINT, {"limits": [file_of(wrong)]})) == gap
    twice = push(app, file_of(WEEKLY), file_of(WEEKLY))
    assert pointers(twice) == {"/limits/1/name": "duplicate"}
    for limit in (WEEKLY, None):
        named = {"name": "A b", "limit": limit}
        assert pointers(push(app, named)) == {"/limits/0/name": "invalid_slug"}
    assert limits.read_limits() == []


def test_as_many_as_fit_after_the_push_are_taken(app: App) -> None:
    full = [{"name": f"l{number}", "limit": WEEKLY} for number in range(limits.MAX_LIMITS)]
    assert push(app, *full).status_code == 200
    assert pointers(push(app, file_of(WEEKLY))) == {"/limits/0/name": "too_many"}
    revision = limit_changes.revision_of(limits.read_limits()[0])
    gone = {"name": "l0", "revision": revision, "limit": None}
    assert push(app, file_of(WEEKLY), gone).status_code == 200
    assert len(limits.read_limits()) == limits.MAX_LIMITS


def test_limit_that_was_changed_meanwhile_is_not_overwritten(app: App) -> None:
    push(app, file_of(WEEKLY))
    change = limit_changes.LimitChange(
        name="weekly",
        request=limits.LimitRequest(max=9, period_seconds=600),
        replaces=shown(app)["revision"],
        pointer="/limits/0",
    )
    planned = pushes.plan([], [], [change])
    app.put("/limits/weekly", {**WEEKLY, "max": 1})
    with pytest.raises(pushes.PushConflictError) as raised:
        pushes.publish(planned, created_by="app:a", now=utc_now())
    assert raised.value.pointers == ("/limits/0/revision",)
    assert shown(app)["limit"]["max"] == 1


def test_end_at_any_write_leaves_all_old_or_all_new(app: App) -> None:
    with ending.at(None):
        assert outcome(push(app, file_of(WEEKLY), types=[PARCEL])) == "created"
    forget(app)
    for number in range(ending.count):
        for is_before in (True, False):
            with ending.at(number, is_before=is_before), suppress(Ended):
                push(app, file_of(WEEKLY), types=[PARCEL])
            is_stored = app.get("/types/parcel_lost").status_code == 200
            assert bool(limits.read_limits()) is is_stored, (number, is_before)
            assert push(app, file_of(WEEKLY), types=[PARCEL]).status_code == 200
            forget(app)


def forget(app: App) -> None:
    collection("limits").delete_many({})
    collection("notification_types").delete_one({"_id": "parcel_lost"})
    collection("template_versions").delete_many({"type": "parcel_lost"})
    limits.invalidate_limits()
    types.invalidate_types()
