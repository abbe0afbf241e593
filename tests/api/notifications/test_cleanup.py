"""Deletion of old finished notifications by the API and the command."""

import io
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.core.management import CommandError, call_command

from api.notifications import cleanup
from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.store import actions, removal
from notifyproject.db.collections import collection
from privacy import purge as privacy_purge
from tests.support.clients.api import App, pointers
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

S = DeliveryStatus
DAY = timedelta(days=1)
LONG_AGO = utc_now() - 60 * DAY


def clean_up(app: App, **fields: Any) -> Any:
    return app.post("/notifications/cleanup", {"older_than_days": 30, **fields})


def sent(app: App, *, days_ago: int = 60, **fields: Any) -> ObjectId:
    at = utc_now() - days_ago * DAY
    later = utc_now() + 90 * DAY
    document = factories.settled(
        S.SENT, at=at, created_at=at, purge_at=later, client_id=app.id, **fields
    )
    return document["_id"]


def left(name: str = "notifications") -> list[Any]:
    field = "_id" if name == "notifications" else "notification_id"
    return sorted(document[field] for document in collection(name).find())


def test_old_finished_notification_is_deleted_with_its_attempts(app: App) -> None:
    sent(app)
    young = sent(app, days_ago=29)
    answer = clean_up(app)
    assert answer.status_code == 200
    assert answer.json() == {"notifications": 1, "attempts": 1, "dry_run": False, "complete": True}
    assert left() == left("delivery_attempts") == [young]
    assert clean_up(app).json()["notifications"] == 0


def test_dry_run_deletes_nothing(app: App) -> None:
    ids = sorted([sent(app), sent(app)])
    assert clean_up(app, dry_run=True).json() == {
        "notifications": 2,
        "attempts": None,
        "dry_run": True,
        "complete": True,
    }
    assert left() == left("delivery_attempts") == ids


def test_unfinished_or_recently_changed_notification_is_kept(app: App) -> None:
    fields: dict[str, Any] = {"created_at": LONG_AGO, "client_id": app.id}
    waiting = factories.accepted(**fields)
    retrying = factories.settled(S.PENDING, at=LONG_AGO, **fields)
    unknown = factories.settled(S.UNKNOWN, at=LONG_AGO, **fields)
    half = factories.settled(
        S.SENT, at=LONG_AGO, channels=(Channel.EMAIL, Channel.WHATSAPP), **fields
    )
    touched = sent(app)
    changed = {"$set": {"updated_at": utc_now() - DAY}}
    collection("notifications").update_one({"_id": touched}, changed)
    assert clean_up(app).json()["notifications"] == 0
    kept = {notification["_id"] for notification in (waiting, retrying, unknown, half)}
    assert set(left()) == {*kept, touched}


def test_reopened_notification_is_kept_with_its_attempts(app: App) -> None:
    at = LONG_AGO
    failed = factories.settled(S.FAILED, at=at, created_at=at, client_id=app.id)["_id"]
    gone = sent(app)
    actions.reopen(notification_id=failed, channels=[Channel.EMAIL], now=utc_now())
    purged = removal.purge(ids=[failed, gone], before=utc_now() - DAY)
    assert (purged.notifications, purged.attempts) == (1, 1)
    assert left() == left("delivery_attempts") == [failed]


def test_metrics_and_analytics_events_are_kept(app: App) -> None:
    for name in ("analytics_events", "metrics_aggregates"):
        collection(name).insert_one({"client_id": app.id, "created_at": LONG_AGO})
    sent(app)
    clean_up(app)
    assert collection("analytics_events").count_documents({}) == 1
    assert collection("metrics_aggregates").count_documents({}) == 1


def test_call_deletes_up_to_its_limit_oldest_first(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(privacy_purge, "BATCH", 2)
    monkeypatch.setattr(cleanup, "MAX_PER_CALL", 3)
    factories.accepted(created_at=LONG_AGO - 5 * DAY, client_id=app.id)
    ids = [sent(app, days_ago=60 - n) for n in range(5)]
    assert clean_up(app, dry_run=True).json()["complete"] is False
    first = clean_up(app).json()
    assert (first["notifications"], first["complete"]) == (3, False)
    assert set(ids) & set(left()) == set(ids[3:])
    second = clean_up(app).json()
    assert (second["notifications"], second["complete"]) == (2, True)


@each_case(
    "body, problems",
    [
        ({"older_than_days": 0}, {"/older_than_days": "out_of_range"}),
        ({"older_than_days": -1}, {"/older_than_days": "out_of_range"}),
        ({"older_than_days": 3_651}, {"/older_than_days": "out_of_range"}),
        ({"older_than_days": 30, "client_id": "x"}, {"/client_id": "unknown_field"}),
    ],
)
def test_invalid_request_deletes_nothing(
    app: App, body: dict[str, Any], problems: dict[str, str]
) -> None:
    kept = sent(app)
    answer = app.post("/notifications/cleanup", body)
    assert (answer.status_code, pointers(answer)) == (422, problems)
    assert kept in left()


def purge(*arguments: str) -> str:
    output = io.StringIO()
    call_command("purge", *arguments, stdout=output)
    return output.getvalue().strip()


def test_command_purges_all_clients(app: App, other_app: App) -> None:
    sent(app)
    sent(other_app)
    young = sent(app, days_ago=1)
    assert purge("--older-than-days", "30", "--dry-run") == ("2 notifications would be deleted.")
    assert len(left()) == 3
    assert purge("--older-than-days", "30") == "2 notifications deleted, with 2 attempts."
    assert left() == left("delivery_attempts") == [young]


@each_case("days", ["0", "-5", "3651"])
def test_command_refuses_invalid_days(db: None, days: str) -> None:
    with pytest.raises(CommandError, match="1 to 3650"):
        purge("--older-than-days", days)
