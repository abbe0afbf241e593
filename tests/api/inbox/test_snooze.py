"""Snooze: out of the inbox for a while, and back as new."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from delivery import sweeper
from domain.states import Category
from domain.time import utc_now
from notifications.inbox import actions
from notifications.store import inbox
from notifications.store.inbox import Inbox
from notifyproject.db.collections import collection
from privacy import erasure
from tests.support.clients.api import App, pointers
from tests.support.clients.inbox import InboxUser, at, delivered
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def ada(app: App) -> InboxUser:
    return InboxUser(app=app)


def snooze(ada: InboxUser, snoozed: Any, *, ahead: timedelta = HOUR) -> Any:
    return ada.post(f"/{snoozed['_id']}/snooze", {"until": (utc_now() + ahead).isoformat()})


def test_snoozed_item_is_hidden_and_not_counted(app: App, ada: InboxUser) -> None:
    first, other = delivered(app, created_at=at(0)), delivered(app, created_at=at(1))
    answer = snooze(ada, first)
    assert (answer.status_code, answer.json()["snoozed_until"] is None) == (200, False)
    assert ada.counts() == (1, 1)
    assert ada.ids() == [str(other["_id"])]
    assert ada.ids(snoozed="true") == [str(first["_id"])]


def test_item_comes_back_by_itself_as_new_and_unread(app: App, ada: InboxUser) -> None:
    returned, other = delivered(app, created_at=at(0)), delivered(app, created_at=at(1))
    for document in (returned, other):
        ada.post(f"/{document['_id']}/read")
    ada.get()
    assert ada.counts() == (0, 0)
    snooze(ada, returned)
    sweeper.sweep(now=utc_now())
    assert ada.ids(snoozed="true") == [str(returned["_id"])], "its time has not come"
    back = utc_now() + 2 * HOUR
    sweeper.sweep(now=back)
    assert ada.counts() == (1, 1)
    assert ada.ids() == [str(returned["_id"]), str(other["_id"])], "the newest first"
    first = ada.get().json()["results"][0]
    assert (first["is_read"], first["snoozed_until"]) == (False, None)
    assert (
        datetime.fromisoformat(first["delivered_at"]) == factories.read(returned["_id"])["inbox_at"]
    )
    assert ada.ids(snoozed="true") == []


def test_item_comes_back_by_hand_as_it_was(app: App, ada: InboxUser) -> None:
    document = delivered(app, created_at=at(0))
    newer = delivered(app, created_at=at(1))
    ada.post(f"/{document['_id']}/read")
    before = ada.get().json()["results"]
    snooze(ada, document)
    for _ in range(2):
        assert ada.post(f"/{document['_id']}/unsnooze").status_code == 200
    assert ada.get().json()["results"] == before
    assert before[0]["id"] == str(newer["_id"])


def test_snoozing_again_moves_the_time(app: App, ada: InboxUser) -> None:
    document = delivered(app)
    snooze(ada, document, ahead=HOUR)
    snooze(ada, document, ahead=DAY)
    assert actions.resurface_due(now=utc_now() + 2 * HOUR) == 0
    assert actions.resurface_due(now=utc_now() + 2 * DAY) == 1


def test_archiving_ends_a_snooze_and_snoozing_leaves_the_archive(app: App, ada: InboxUser) -> None:
    document = delivered(app)
    snooze(ada, document)
    ada.post(f"/{document['_id']}/archive")
    assert (ada.ids(archived="true"), ada.ids(snoozed="true")) == ([str(document["_id"])], [])
    snooze(ada, document)
    assert (ada.ids(archived="true"), ada.ids(snoozed="true")) == ([], [str(document["_id"])])


def test_reading_a_snoozed_item_does_not_bring_it_back(app: App, ada: InboxUser) -> None:
    document = delivered(app)
    snooze(ada, document)
    assert ada.post(f"/{document['_id']}/read").json()["is_read"]
    assert ada.ids() == []


def test_expired_item_comes_back_as_it_was(app: App, ada: InboxUser) -> None:
    item = delivered(app, created_at=utc_now(), expires_at=utc_now() + HOUR)
    ada.post(f"/{item['_id']}/read")
    place = factories.read(item["_id"])["inbox_at"]
    snooze(ada, item, ahead=2 * HOUR)
    assert actions.resurface_due(now=utc_now() + 3 * HOUR) == 1
    document = factories.read(item["_id"])
    assert (document["is_read"], document["inbox_at"]) == (True, place)


def test_deleted_item_does_not_come_back(app: App, ada: InboxUser) -> None:
    document = delivered(app)
    snooze(ada, document)
    app.delete(f"/notifications/{document['_id']}")
    actions.resurface_due(now=utc_now() + 2 * HOUR)
    assert (ada.ids(), ada.ids(snoozed="true")) == ([], [])
    assert ada.post(f"/{document['_id']}/unsnooze").status_code == 404


@each_case("until", [timedelta(0), -HOUR, timedelta(seconds=50), timedelta(days=91)])
def test_time_out_of_range_is_refused(app: App, ada: InboxUser, until: timedelta) -> None:
    answer = snooze(ada, delivered(app), ahead=until)
    assert (answer.status_code, pointers(answer)) == (422, {"/until": "out_of_range"})
    assert ada.ids(snoozed="true") == []


def test_other_recipients_item_is_not_found(app: App) -> None:
    assert snooze(InboxUser(app=app, user_id="eve"), delivered(app)).status_code == 404


def test_snoozed_list_conflicts_with_other_lists(ada: InboxUser) -> None:
    for name in ("archived", "unread"):
        answer = ada.get(snoozed="true", **{name: "true"})
        assert (answer.status_code, pointers(answer)) == (422, {"/snoozed": "conflict"})


def test_snoozed_items_are_paged_in_order_of_their_return(app: App, ada: InboxUser) -> None:
    items = [delivered(app, created_at=at(n)) for n in range(3)]
    for place, item in enumerate(items):
        snooze(ada, item, ahead=(3 - place) * HOUR)
    expected = [str(item["_id"]) for item in reversed(items)]
    first = ada.get(snoozed="true", limit=2).json()
    assert [result["id"] for result in first["results"]] == expected[:2]
    rest = ada.get(snoozed="true", limit=2, cursor=first["next"]).json()
    assert [result["id"] for result in rest["results"]] == expected[2:]


def test_snoozes_are_read_by_their_own_indexes(app: App, ada: InboxUser) -> None:
    snooze(ada, delivered(app))
    with plans("notifications") as found:
        ada.get(snoozed="true")
        inbox.due_snoozes(now=utc_now(), limit=10)
    assert len(found) == 2
    assert all(plan.is_indexed and not plan.sorts and plan.examined <= 1 for plan in found), found


def test_many_due_snoozes_come_back_in_batches(
    app: App, ada: InboxUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "MAX_RESURFACED", 2)
    for n in range(5):
        snooze(ada, delivered(app, created_at=at(n)))
    assert actions.resurface_due(now=utc_now() + 2 * HOUR) == 5
    assert len(ada.ids()) == 5


def test_item_of_a_type_or_category(app: App, ada: InboxUser) -> None:
    shipped = delivered(app, created_at=at(0), type="order_shipped")
    alert = delivered(app, created_at=at(1), type="system_alert", category=Category.ALERT)
    assert ada.ids(type="order_shipped") == [str(shipped["_id"])]
    assert ada.ids(category="alert") == [str(alert["_id"])]
    assert ada.ids(type="order_shipped", category="alert") == []
    assert ada.counts() == (2, 2), "a filtered list marks nothing as seen"
    answer = ada.get(category="gossip")
    assert (answer.status_code, pointers(answer)) == (422, {"/category": "unknown_value"})
    snooze(ada, alert)
    assert ada.ids(snoozed="true", type="system_alert") == [str(alert["_id"])]


def test_erased_recipients_snooze_is_gone(app: App, ada: InboxUser) -> None:
    document = delivered(app)
    snooze(ada, document)
    erasure.erase(user_id="ada", now=utc_now())
    actions.resurface_due(now=utc_now() + 2 * HOUR)
    assert collection("notifications").count_documents(Inbox(app.id, "ada").match()) == 0
