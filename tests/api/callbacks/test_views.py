"""An app's callback by the API: where it is told, what for, and what it was told."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.contrib.admin.models import LogEntry

from api.callbacks.schemas import CallbackEvent
from callbacks import outbox, subscriptions, worker
from callbacks.events import SUBSCRIBABLE, DisabledReason
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications import callback_events
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app
from tests.support.factories import notifications as factories
from tests.support.fakes.callback_receiver import Receiver, receiving

pytestmark = pytest.mark.usefixtures("db", "broker")

URL = "https://shop.example.com/hooks"
HOOK = {"url": URL, "events": ["delivery.failed", "notification.completed"]}


@pytest.fixture
def app(db: None) -> App:
    return new_app("shop")


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.CALLBACK_LOOPBACK = True
    with receiving() as one:
        yield one


def told(app: App, **query: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = app.get("/callbacks/deliveries", **query).json()["results"]
    return results


def test_a_callback_is_made_and_its_secret_is_told_once(app: App) -> None:
    made = app.put("/callbacks", HOOK)
    assert made.status_code == 200
    assert made.headers["Cache-Control"] == "no-store"
    assert made.json()["secret"].startswith("whsec_")
    assert (made.json()["url"], made.json()["events"]) == (URL, HOOK["events"])
    again = app.put("/callbacks", {**HOOK, "events": ["delivery.sent", "delivery.sent"]})
    assert (again.json()["secret"], again.json()["events"]) == (None, ["delivery.sent"])
    seen = app.get("/callbacks").json()
    assert (seen["state"], seen["secret"]) == ("active", None)


def test_it_may_be_for_every_event_but_a_test(app: App) -> None:
    everything = [event.value for event in SUBSCRIBABLE]
    assert app.put("/callbacks", {"url": URL, "events": everything}).status_code == 200
    assert app.put("/callbacks", {"url": URL, "events": ["test"]}).status_code == 422


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"url": "http://shop.example.com/"}, "/url", "not_https"),
        ({"url": "https://10.0.0.1/"}, "/url", "not_public"),
        ({"url": "http://127.0.0.1:8001/"}, "/url", "not_https"),
        ({"url": "https://ada:x@shop.example.com/"}, "/url", "invalid_url"),
        ({"url": "https://shop.example.com:25/"}, "/url", "port_not_allowed"),
        ({"events": ["delivery.lost"]}, "/events/0", "unknown_event"),
    ],
)
def test_what_makes_no_sense_is_not_taken(
    app: App, change: dict[str, Any], pointer: str, code: str
) -> None:
    answer = app.put("/callbacks", HOOK | change)
    assert answer.status_code == 422
    assert [(one["pointer"], one["code"]) for one in answer.json()["errors"]] == [(pointer, code)]
    assert app.get("/callbacks").status_code == 404


@pytest.mark.parametrize("body", [{"url": URL}, {**HOOK, "events": []}, {**HOOK, "more": 1}])
def test_what_is_not_a_callback_is_not_taken(app: App, body: dict[str, Any]) -> None:
    assert app.put("/callbacks", body).status_code == 422


def test_the_secret_is_replaced_and_the_old_one_holds_for_a_day(app: App) -> None:
    first = app.put("/callbacks", HOOK).json()["secret"]
    answer = app.post("/callbacks/secret")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json()["secret"] != first
    until = datetime.fromisoformat(answer.json()["previous_until"])
    assert timedelta(hours=23) < until - utc_now() <= timedelta(hours=24)
    for _ in range(3):
        app.post("/callbacks/secret")
    refused = app.post("/callbacks/secret")
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_secrets")


def test_a_test_comes_through_whatever_the_callback_is_for(app: App, receiver: Receiver) -> None:
    app.put("/callbacks", {**HOOK, "url": receiver.url})
    sent = app.post("/callbacks/test")
    assert (sent.status_code, sent.json()["status"], sent.json()["type"]) == (
        *(202, "pending", "test"),
    )
    worker.run_round(app.id, clock=utc_now)
    (request,) = receiver.requests
    assert request.id == sent.json()["id"]
    assert request.body == sent.json()["body"]
    (delivery,) = told(app, status="delivered")
    assert delivery["history"][0]["status_code"] == 204
    assert told(app, status="failed") == []


def test_what_it_was_told_is_listed_newest_first_and_page_by_page(app: App) -> None:
    app.put("/callbacks", HOOK)
    ids = [app.post("/callbacks/test").json()["id"] for _ in range(5)]
    first = app.get("/callbacks/deliveries", limit=2).json()
    second = app.get("/callbacks/deliveries", limit=2, cursor=first["next"]).json()
    third = app.get("/callbacks/deliveries", limit=2, cursor=second["next"]).json()
    found = [one["id"] for page in (first, second, third) for one in page["results"]]
    assert sorted(found) == sorted(ids)
    assert (first["previous"], third["next"]) == (None, None)
    back = app.get("/callbacks/deliveries", limit=2, cursor=third["previous"]).json()
    assert back["results"] == second["results"]


@pytest.mark.parametrize("query", [{"status": "lost"}, {"limit": "0"}])
def test_a_list_that_cannot_be(app: App, query: dict[str, str]) -> None:
    assert app.get("/callbacks/deliveries", **query).status_code == 422


def test_what_was_told_is_told_again(app: App, receiver: Receiver) -> None:
    app.put("/callbacks", {**HOOK, "url": receiver.url})
    sent = app.post("/callbacks/test").json()["id"]
    early = app.post(f"/callbacks/deliveries/{sent}/replay")
    assert (early.status_code, early.json()["code"]) == (409, "still_pending")
    worker.run_round(app.id, clock=utc_now)
    again = app.post(f"/callbacks/deliveries/{sent}/replay")
    assert (again.status_code, again.json()["tries"]) == (202, 0)
    worker.run_round(app.id, clock=utc_now)
    assert receiver.ids() == [sent, sent]


def test_nobody_tells_an_app_again_what_another_was_told(app: App) -> None:
    other = new_app("other")
    for one in (app, other):
        one.put("/callbacks", HOOK)
    sent = app.post("/callbacks/test").json()["id"]
    outbox.fail_pending(client_id=app.id, reason="It answered 500.")
    assert other.post(f"/callbacks/deliveries/{sent}/replay").status_code == 404
    assert told(other) == []


def test_a_callback_that_is_switched_off_says_so_and_is_switched_on_by_putting_it(
    app: App,
) -> None:
    app.put("/callbacks", HOOK)
    subscriptions.disable(client_id=app.id, reason=DisabledReason.FAILING, now=utc_now())
    seen = app.get("/callbacks").json()
    assert (seen["state"], seen["disabled_reason"]) == ("disabled", "failing")
    refused = app.post("/callbacks/test")
    assert (refused.status_code, refused.json()["code"]) == (409, "callback_disabled")
    assert app.put("/callbacks", HOOK).json()["state"] == "active"


def test_removed_it_is_gone_and_what_waited_has_failed(app: App) -> None:
    app.put("/callbacks", HOOK)
    app.post("/callbacks/test")
    assert app.send("/callbacks", b"", method="DELETE").status_code == 204
    assert app.send("/callbacks", b"", method="DELETE").status_code == 404
    for path in ("/callbacks/secret", "/callbacks/test"):
        assert app.post(path).status_code == 404
    (delivery,) = told(app)
    assert (delivery["status"], delivery["error"]) == ("failed", "The callback was removed.")


def test_what_it_is_told_names_what_it_is_about(app: App) -> None:
    app.put("/callbacks", HOOK)
    document = factories.settled(
        DeliveryStatus.FAILED, client_id=app.id, has_callback=True, external_id="order-7"
    )
    callback_events.publish_events(now=utc_now())
    by_type = {one["type"]: one for one in told(app)}
    assert set(by_type) == {"delivery.failed", "notification.completed"}
    failed = by_type["delivery.failed"]
    assert failed["notification_id"] == str(document["_id"])
    assert failed["body"]["data"] == {
        "notification_id": str(document["_id"]),
        "external_id": "order-7",
        "entity_id": None,
        "notification_type": "payment_confirmed",
        "is_test": False,
        "channel": "email",
        "status": "failed",
        "attempt_count": 1,
        "failure_code": "provider_error",
    }
    assert by_type["notification.completed"]["body"]["data"]["status"] == "failed"
    for told_of in by_type.values():
        described = msgspec.convert(told_of["body"], CallbackEvent)
        assert set(told_of["body"]["data"]) <= set(described.data.__struct_fields__)


def test_what_the_app_has_sent_is_marked_once_it_has_a_callback(app: App) -> None:
    before = app.notify(type="payment_confirmed").json()["id"]
    app.put("/callbacks", HOOK)
    after = app.notify(type="payment_confirmed").json()["id"]
    marked = collection("notifications").find({"callback_revision": 1}, {"_id": 1})
    assert [str(document["_id"]) for document in marked] == [after]
    assert before != after


def test_where_an_app_is_called_back_is_on_record(app: App) -> None:
    app.put("/callbacks", HOOK)
    app.put("/callbacks", HOOK | {"events": ["delivery.sent"]})
    app.put("/callbacks", HOOK | {"url": "https://elsewhere.example.com/hooks"})
    app.post("/callbacks/secret")
    app.send("/callbacks", b"", method="DELETE")
    entries = LogEntry.objects.filter(object_id=str(app.id)).order_by("pk")
    assert [entry.change_message for entry in entries] == [
        "By the app shop: Called back at shop.example.com.",
        "By the app shop: Called back at elsewhere.example.com.",
        "By the app shop: Secret replaced.",
        "By the app shop: Called back no more.",
    ]
