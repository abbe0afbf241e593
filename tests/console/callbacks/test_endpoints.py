"""Callbacks in the console: endpoints, messages, and replay."""

from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.test import Client

from callbacks import outbox, subscriptions
from callbacks.events import DisabledReason
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications import callback_events
from notifyproject.db.collections import collection
from tests.support.clients.console import listed, make_staff, signed_in
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT
from tests.support.fakes.callback_receiver import called_back
from tests.support.mongo.explained_reads import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST, MESSAGES = "/admin/callbacks/callback/", "/admin/callbacks/callbackmessage/"
VIEW_PERMISSIONS = ("callbacks.view_callback", "callbacks.view_callbackmessage")


@pytest.fixture(autouse=True)
def shop(db: None) -> None:
    called_back("http://127.0.0.1:9000/secret-path", now=utc_now())
    collection("api_clients").insert_one(
        {"_id": CLIENT, "name": "Shop", "scopes": [], "is_active": True, "keys": []}
    )


@pytest.fixture
def viewer(db: None) -> Client:
    return signed_in(make_staff("olga", *VIEW_PERMISSIONS))


def failed() -> str:
    document = outbox.send_test(CLIENT, now=utc_now())
    outbox.fail_pending(client_id=CLIENT, reason="HTTP 500.")
    return str(document["_id"])


def text(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return response.content.decode()


def messages(response: Any) -> str:
    return " ".join(str(message) for message in response.wsgi_request._messages)


def test_list_shows_client_and_host_only(console: Client) -> None:
    page = text(console, LIST)
    assert "Shop" in page
    assert "127.0.0.1:9000" in page
    assert "secret-path" not in page + text(console, f"{LIST}{CLIENT}/change/")


@each_case(
    "fields, words",
    [
        ({}, "Active"),
        ({"failures": 1}, "Degraded"),
        ({"failures": 9}, "Degraded"),
        ({"state": "disabled", "disabled_reason": "gone"}, "Disabled: 410 Gone"),
    ],
)
def test_endpoint_state_is_shown(console: Client, fields: dict[str, Any], words: str) -> None:
    collection("callbacks").update_one({"_id": CLIENT}, {"$set": fields})
    assert f">{words}<" in text(console, LIST)
    assert f">{words}<" in text(console, f"{LIST}{CLIENT}/change/")


def test_callback_is_disabled_and_enabled_and_both_are_audited(console: Client) -> None:
    outbox.send_test(CLIENT, now=utc_now())
    console.post(f"{LIST}{CLIENT}/disable/")
    assert subscriptions.get(CLIENT)["disabled_reason"] == DisabledReason.BY_OPERATOR
    assert collection("callback_messages").count_documents({"status": "failed"}) == 1
    console.post(f"{LIST}{CLIENT}/enable/")
    assert subscriptions.get(CLIENT)["state"] == "active"
    entries = [e.change_message for e in LogEntry.objects.filter(object_id=str(CLIENT))]
    assert sorted(entries) == ["Disabled.", "Enabled."]
    assert "already" in messages(console.post(f"{LIST}{CLIENT}/enable/"))


@each_case(
    "query, is_found",
    [("Sho", True), ("shop", True), ("127.0", True), ("secret-path", False), ("other", False)],
)
def test_endpoint_is_found_by_client_and_host(
    console: Client, query: str, *, is_found: bool
) -> None:
    assert listed(console, f"{LIST}?q={query}") == ([CLIENT] if is_found else [])


def test_viewer_changes_nothing(viewer: Client) -> None:
    message_id = failed()
    assert "Disable" not in text(viewer, f"{LIST}{CLIENT}/change/")
    assert "Replay</button>" not in text(viewer, f"{MESSAGES}{message_id}/change/")
    for path in (f"{LIST}{CLIENT}/disable/", f"{MESSAGES}{message_id}/replay/"):
        assert viewer.post(path).status_code == 403
    assert subscriptions.get(CLIENT)["state"] == "active"
    assert LogEntry.objects.count() == 0


def test_message_is_replayed_and_audited(console: Client) -> None:
    message_id = failed()
    assert "Replay</button>" in text(console, f"{MESSAGES}{message_id}/change/")
    console.post(f"{MESSAGES}{message_id}/replay/")
    document = collection("callback_messages").find_one({"_id": message_id})
    assert document is not None
    assert document["status"] == "pending"
    assert LogEntry.objects.get().object_id == message_id
    assert "still being retried" in messages(console.post(f"{MESSAGES}{message_id}/replay/"))


def test_selected_messages_are_replayed(console: Client) -> None:
    ids = [failed() for _ in range(3)]
    action = {"action": "replay_selected", "_selected_action": ids}
    assert "3 messages queued again" in messages(console.post(MESSAGES, action))
    assert collection("callback_messages").count_documents({"status": "pending"}) == 3


def test_message_without_a_callback_is_not_replayed(console: Client) -> None:
    message_id = failed()
    subscriptions.remove(CLIENT)
    assert "no callback" in messages(console.post(f"{MESSAGES}{message_id}/replay/"))


def test_messages_are_found_by_notification(console: Client) -> None:
    document = factories.settled(DeliveryStatus.FAILED, has_callback=True)
    callback_events.publish_events(now=utc_now())
    failed()
    page = text(console, f"{MESSAGES}?q={document['_id']}")
    assert page.count("delivery.failed") == 1
    assert "notification.completed" in page
    assert f"/notification/{document['_id']}/change/" in page


@each_case("has_callback", [True, False])
def test_notification_page_links_its_callback_messages(console: Client, has_callback: bool) -> None:
    document = factories.settled(DeliveryStatus.FAILED, has_callback=has_callback)
    page = text(console, f"/admin/notifications/notification/{document['_id']}/change/")
    assert (">Callback messages</a></p>" in page) is has_callback
    assert (f"{MESSAGES}?q={document['_id']}" in page) is has_callback


def test_list_uses_an_index(console: Client) -> None:
    other = ObjectId()
    called_back("http://127.0.0.1:9000/", client_id=other)
    rows = [
        {"_id": f"evt_{n}", "client_id": (CLIENT, other)[n % 2], "type": "test", "body": "{}"}
        | {"status": "failed", "tries": 1, "created_at": utc_now(), "purge_at": utc_now()}
        for n in range(300)
    ]
    collection("callback_messages").insert_many(rows)
    for query in ("", "?status=failed", f"?client={CLIENT}", "?q=evt_1"):
        found = plans(console, f"{MESSAGES}{query}", of="callback_messages")
        assert found, query
        for plan in found:
            assert not {"COLLSCAN", "SORT"} & plan.stages, plan.explained
            assert plan.documents_examined <= 60


def test_endpoint_and_message_of_a_newer_version_are_shown_as_they_are(console: Client) -> None:
    outbox.send_test(CLIENT, now=utc_now())
    subscriptions.disable(client_id=CLIENT, reason=DisabledReason.GONE, now=utc_now())
    collection("callbacks").update_one({"_id": CLIENT}, {"$set": {"disabled_reason": "too_loud"}})
    collection("callback_messages").update_many({}, {"$set": {"status": "on_holiday"}})
    for path, text in ((LIST, "too_loud"), (f"{LIST}{CLIENT}/change/", "too_loud")):
        assert text in console.get(path).content.decode()
    assert "on_holiday" in console.get(MESSAGES).content.decode()
