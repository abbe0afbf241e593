"""The inbox routes: feed, actions, counts, and isolation."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.content import Content, Recipient
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.store import actions, leases
from notifications.store.claims import NotSent
from notifyproject.db.collections import collection
from tests.support.clients.api import App, pages, pointers
from tests.support.clients.inbox import IN_APP, InboxUser, at, delivered, unknown_id
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

S = DeliveryStatus


@pytest.fixture
def ada(app: App) -> InboxUser:
    return InboxUser(app=app)


def test_inbox_is_newest_first(app: App, ada: InboxUser) -> None:
    expected = [str(delivered(app, created_at=at(n))["_id"]) for n in range(3)][::-1]
    factories.settled(S.SENT, client_id=app.id)
    assert ada.ids() == expected


def test_scheduled_cancelled_and_expired_are_not_shown(app: App, ada: InboxUser) -> None:
    later = utc_now() + timedelta(hours=1)
    delivered(app, send_at=later)
    cancelled = delivered(app, send_at=later)["_id"]
    actions.cancel(notification_id=cancelled, channels=[IN_APP], reason="no", now=utc_now())
    late = factories.claimed(client_id=app.id, channel=IN_APP, send_at=at(1), at=at(2))
    leases.settle_not_sent(
        [
            NotSent(
                claimed=late, status=S.EXPIRED, code=FailureCode.EXPIRED, reason="Its time is over."
            )
        ],
        now=at(2),
    )
    assert (ada.ids(), ada.counts()) == ([], (0, 0))


def test_deleted_notification_is_not_found(app: App, ada: InboxUser) -> None:
    document = delivered(app)
    collection("notifications").update_one({"_id": document["_id"]}, {"$set": {"is_active": False}})
    assert (ada.ids(), ada.counts()) == ([], (0, 0))
    assert ada.post(f"/{document['_id']}/read").status_code == 404


def test_item_has_only_the_recipients_fields(app: App, ada: InboxUser) -> None:
    content = Content(
        subject="Paid <b>",
        body="{{ x }} arrived",
        image_url="https://example.com/i.png",
        deep_link="app://orders/1",
        payload={"order": "1"},
        reply_to="desk@example.com",
    )
    document = delivered(
        app, channels=[Channel.EMAIL, IN_APP], content=content, data={"inner": "variable"}
    )
    answer = ada.get()
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json() == {
        "results": [
            {
                "id": str(document["_id"]),
                "type": "payment_confirmed",
                "category": "transactional",
                "subject": "Paid <b>",
                "body": "{{ x }} arrived",
                "image_url": "https://example.com/i.png",
                "deep_link": "app://orders/1",
                "payload": {"order": "1"},
                "delivered_at": document["created_at"].isoformat().replace("+00:00", "Z"),
                "is_read": False,
                "read_at": None,
                "is_archived": False,
                "archived_at": None,
                "snoozed_until": None,
                "actions": [],
                "action": None,
                "acted_at": None,
            }
        ],
        "next": None,
        "previous": None,
    }


def test_pages_are_complete_in_both_directions(app: App, ada: InboxUser) -> None:
    documents = [delivered(app, created_at=at(n // 3)) for n in range(7)]
    expected = sorted((str(d["_id"]) for d in documents), reverse=True)
    found = [[item["id"] for item in page] for page in pages(ada.get, limit=3)]
    assert found == [expected[:3], expected[3:6], expected[6:]]


@each_case(
    "query, status, code",
    [
        ({"user_id": "eve"}, 400, "unknown_parameter"),
        ({"unread": "1"}, 422, "/unread"),
        ({"archived": "maybe"}, 422, "/archived"),
    ],
)
def test_invalid_parameter_is_refused(
    ada: InboxUser, query: dict[str, Any], status: int, code: str
) -> None:
    answer = ada.get(**query)
    assert answer.status_code == status
    assert answer.json()["code"] == code or code in pointers(answer)


def test_code_is_shown_until_it_expires(app: App, ada: InboxUser) -> None:
    answer = app.notify(
        type="mfa_code", user_id="ada", data={"code": "271828"}, channels=["in_app"], recipient=...
    )
    assert answer.status_code == 202
    (item,) = ada.get().json()["results"]
    assert "271828" in item["body"]
    collection("notifications").update_one({}, {"$set": {"expires_at": at(0)}})
    (item,) = ada.get().json()["results"]
    assert "271828" not in str(item)
    assert item["body"]


def test_read_and_unread_are_idempotent(app: App, ada: InboxUser) -> None:
    first, other = (f"/{delivered(app, created_at=at(n))['_id']}" for n in range(2))
    read = ada.post(f"{first}/read").json()
    assert (read["is_read"], bool(read["read_at"])) == (True, True)
    assert ada.post(f"{first}/read").json() == read
    assert ada.ids(unread="true") == [other[1:]]
    assert ada.counts()[0] == 1
    unread = ada.post(f"{first}/unread").json()
    assert (unread["is_read"], unread["read_at"]) == (False, None)
    assert ada.post(f"{first}/unread").json() == unread
    assert ada.ids(unread="true") == [other[1:], first[1:]]
    assert ada.counts()[0] == 2
    shown = app.get(f"/notifications{first}").json()
    assert (shown["is_read"], shown["delivery"][0]["status"]) == (False, "read")


@each_case("channel", [Channel.EMAIL, Channel.PUSH, Channel.WHATSAPP])
def test_recipient_reads_what_was_sent_on_another_channel(
    app: App, ada: InboxUser, channel: Channel
) -> None:
    document = factories.settled(S.SENT, client_id=app.id, channel=channel)
    path = f"/{document['_id']}"
    item = ada.post(f"{path}/read").json()
    assert (item["is_read"], bool(item["read_at"])) == (True, True)
    assert item["delivered_at"] == document["sent_at"].isoformat().replace("+00:00", "Z")
    assert app.get(f"/notifications{path}").json()["is_read"] is True
    assert ada.post(f"{path}/unread").json()["is_read"] is False
    assert ada.post("/read-all").json() == {"updated": 1}
    assert app.get("/notifications", unread="true").json()["results"] == []
    assert (ada.ids(), ada.counts()) == ([], (0, 0)), "it is not in the inbox"
    assert ada.post(f"{path}/archive").status_code == 404


def test_code_sent_on_another_channel_is_masked(app: App, ada: InboxUser) -> None:
    both = {"email": "ada@example.com", "phone": "+351912345678"}
    answer = app.notify(
        type="mfa_code",
        user_id="ada",
        data={"code": "271828"},
        channels=["email", "whatsapp"],
        recipient=both,
    )
    path = f"/{answer.json()['id']}/read"
    assert ada.post(path).status_code == 404, "it was not sent yet"
    now = utc_now()
    begun = factories.start(factories.claim(ObjectId(answer.json()["id"]), at=now), at=now)
    leases.settle([factories.settlement(begun, S.SENT, at=now)], now=now)
    item = ada.post(path)
    assert item.status_code == 200
    assert "271828" not in item.content.decode()


def test_archived_items_are_listed_apart_and_not_counted(app: App, ada: InboxUser) -> None:
    first, other = (f"/{delivered(app, created_at=at(n))['_id']}" for n in range(2))
    archived = ada.post(f"{first}/archive").json()
    assert (archived["is_archived"], archived["is_read"]) == (True, False)
    assert ada.post(f"{first}/archive").json() == archived
    assert (ada.ids(), ada.ids(archived="true")) == ([other[1:]], [first[1:]])
    assert ada.counts()[0] == 1
    shown = app.get(f"/notifications{first}").json()
    assert (shown["is_archived"], shown["is_active"]) == (True, True)
    ada.post(f"{first}/read")
    assert ada.ids(archived="true", unread="true") == []
    back = ada.post(f"{first}/unarchive").json()
    assert (back["is_archived"], back["archived_at"]) == (False, None)
    assert ada.ids() == [other[1:], first[1:]]


@each_case("action", ["read", "unread", "archive", "unarchive"])
def test_unknown_item_is_not_found(ada: InboxUser, action: str) -> None:
    for name in (unknown_id(), "x", "%24ne", "a" * 25, "\u0661" * 24):
        assert ada.post(f"/{name}/{action}").status_code == 404
    assert ada.get(f"/{unknown_id()}/{action}").status_code == 405


def test_items_since_the_last_visit_are_unseen(app: App, ada: InboxUser) -> None:
    first = delivered(app, created_at=at(0))
    assert ada.counts() == (1, 1)
    ada.get()
    assert ada.counts() == (1, 0)
    delivered(app, created_at=at(1))
    assert ada.counts() == (2, 1)
    ada.post(f"/{first['_id']}/read")
    assert ada.counts() == (1, 1)
    ada.get()
    assert ada.counts() == (1, 0)


def test_only_the_first_page_marks_items_seen(app: App, ada: InboxUser) -> None:
    for n in range(3):
        delivered(app, created_at=at(n))
    ada.get("/counts")
    ada.get(archived="true")
    assert ada.counts() == (3, 3)
    following = ada.get(limit=1).json()["next"]
    assert ada.counts() == (3, 0), "the page is short, but older ones are older than what was seen"
    delivered(app, created_at=at(9))
    ada.get(limit=1, cursor=following)
    assert ada.counts() == (4, 1)


def test_unregistered_recipient_has_an_inbox(app: App) -> None:
    name = "Ωμέγα / 1 🙂"
    delivered(app, user_id=name, recipient=Recipient())
    assert len(InboxUser(app=app, user_id=name).ids()) == 1


@pytest.fixture
def strangers(app: App, other_app: App) -> list[InboxUser]:
    """Return users who must not see Ada's inbox: her ID at another client, and similar IDs."""
    names = ["eve", "ADA", "ada ", "ad", "ada2", "$ne", "*", "ada\u200b"]
    return [InboxUser(app=other_app), *(InboxUser(app=app, user_id=name) for name in names)]


def everything() -> list[Any]:
    return [*collection("notifications").find(), *collection("inbox_visits").find()]


def test_other_recipients_see_nothing(app: App, strangers: list[InboxUser]) -> None:
    delivered(app)
    for stranger in strangers:
        for query in ({}, {"unread": "true"}, {"archived": "true"}, {"limit": "100"}):
            assert stranger.ids(**query) == [], stranger.user_id
        assert stranger.counts() == (0, 0)


def test_other_recipients_change_nothing(app: App, strangers: list[InboxUser]) -> None:
    read, other = delivered(app, created_at=at(0)), delivered(app, created_at=at(1))
    ada = InboxUser(app=app)
    ada.post(f"/{read['_id']}/read")
    ada.get()
    before = everything()
    for stranger in strangers:
        assert stranger.post("/read-all").json() == {"updated": 0}
        for action in ["read", "unread", "archive", "unarchive"]:
            for document in (read, other):
                answer = stranger.post(f"/{document['_id']}/{action}")
                assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert everything() == before
    assert ada.counts() == (1, 0)


def test_cursor_of_another_inbox_lists_nothing(app: App, strangers: list[InboxUser]) -> None:
    for n in range(3):
        delivered(app, created_at=at(n))
    cursor = InboxUser(app=app).get(limit=1).json()["next"]
    for stranger in strangers:
        assert stranger.get(cursor=cursor).json()["results"] == []


def test_notification_without_user_id_is_in_no_inbox(app: App) -> None:
    delivered(app, user_id=None)
    assert InboxUser(app=app, user_id="None").ids() == []


def test_item_holds_no_other_channel_and_no_internals(app: App) -> None:
    document = delivered(
        app,
        channels=[Channel.EMAIL, Channel.WHATSAPP, IN_APP],
        recipient=Recipient(email="ada@private.example", phone="+351912345678", name="Ada L"),
        data={"secret_variable": "kept back"},
        idempotency_key="their-key",
        external_id="their-id",
        entity_id="their-entity",
        request_id="their-request",
    )
    actions.reopen(notification_id=document["_id"], channels=[Channel.EMAIL], now=at(0))
    ada = InboxUser(app=app)
    shown = ada.get().content.decode() + ada.post(f"/{document['_id']}/read").content.decode()
    for word in (
        "private.example",
        "912345678",
        "Ada L",
        "kept back",
        "secret_variable",
        "their-",
        "delivery",
        "recipient",
        "attempt",
        "provider",
        "error",
        "claim",
        "client_id",
        "status",
        "priority",
        "user_id",
        "data",
        "idempotency",
        "created_at",
    ):
        assert word not in shown, word
