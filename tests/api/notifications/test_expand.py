"""``GET /notifications/{id}?expand=…``."""

from datetime import timedelta
from typing import Any

from bson import ObjectId

from access.models import Scope
from api.notifications.expansion import MAX_EXPANDED
from callbacks import outbox
from callbacks.events import Event, EventType
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app, pointers
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case


def settled(app: App) -> str:
    return str(factories.settled(DeliveryStatus.FAILED, client_id=app.id)["_id"])


def with_events(app: App, notification_id: str, count: int = 2) -> None:
    app.put("/callbacks", {"url": "https://hooks.example.com/", "events": ["delivery.failed"]})
    now = utc_now()
    for number in range(count):
        event = Event(
            id=f"evt_{number:03}",
            client_id=app.id,
            type=EventType.DELIVERY_FAILED,
            at=now,
            notification_id=ObjectId(notification_id),
            data={"number": number},
        )
        outbox.record_events([event], now=now + number * timedelta(seconds=1))


def expanded(app: App, notification_id: str, names: str, **query: Any) -> Any:
    return app.get(f"/notifications/{notification_id}", expand=names, **query)


def test_lists_are_those_of_their_own_operations(app: App) -> None:
    notification_id = settled(app)
    with_events(app, notification_id)
    plain = app.get(f"/notifications/{notification_id}").json()
    assert {"attempts", "events"} & plain.keys() == set()
    attempts = app.get(f"/notifications/{notification_id}/attempts").json()["results"]
    events = app.get("/callbacks/deliveries").json()["results"][::-1]
    assert (len(attempts), len(events)) == (1, 2)
    for names in ("attempts,events", "events,attempts,events"):
        assert expanded(app, notification_id, names).json() == {
            **plain,
            "attempts": attempts,
            "events": events,
        }
    alone = expanded(app, notification_id, "attempts").json()
    assert alone == {**plain, "attempts": attempts}


def test_fields_and_lists_may_be_combined(app: App) -> None:
    found = expanded(app, settled(app), "attempts", fields="id,status").json()
    assert found.keys() == {"id", "status", "attempts"}


def test_last_ones_are_shown(app: App) -> None:
    notification_id = settled(app)
    with_events(app, notification_id, count=MAX_EXPANDED + 1)
    events = expanded(app, notification_id, "events").json()["events"]
    assert [event["body"]["data"]["number"] for event in events] == list(range(1, MAX_EXPANDED + 1))


@each_case("names", ["receipts", "attempts,", "", "attempts,events,user"])
def test_other_names_are_refused_with_the_known_ones(app: App, names: str) -> None:
    answer = expanded(app, str(ObjectId()), names)
    assert (answer.status_code, set(pointers(answer))) == (422, {"/expand"})
    assert answer.json()["errors"][0]["detail"] == "Expected one of attempts, events."


def test_events_need_the_scope_of_their_list(db: None) -> None:
    reader = new_app("reader", Scope.NOTIFICATIONS_READ)
    notification_id = settled(reader)
    assert expanded(reader, notification_id, "attempts").status_code == 200
    answer = expanded(reader, notification_id, "attempts,events")
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert "callbacks:write" in answer.json()["detail"]


def test_notification_of_another_client_is_unknown(app: App, other_app: App) -> None:
    assert expanded(other_app, settled(app), "attempts,events").status_code == 404


def test_each_list_is_one_indexed_read(app: App) -> None:
    notification_id = settled(app)
    with_events(app, notification_id)
    for name, count in (("delivery_attempts", 1), ("callback_messages", 1)):
        with plans(name) as found:
            expanded(app, notification_id, "attempts,events")
        assert len(found) == count
        assert found[0].summary.startswith("IXSCAN")
        with plans(name) as found:
            app.get(f"/notifications/{notification_id}")
        assert found == []
    assert collection("callback_messages").count_documents({}) == 2
