"""Erasure of a recipient: addresses and content are removed, counts stay."""

import itertools
from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry

from access.clients import inbox_tokens
from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from notifyproject.db.collections import collection, database
from privacy import erasure
from recipients import queries, suppressions
from tests.support.clients.api import App, pointers
from tests.support.clients.recipients import ADA, ONE, TOKEN, notify, register, unsubscribe
from tests.support.factories.digests import opened

PAIRS = [("email", ADA["email"]), ("whatsapp", ADA["phone"])]


@pytest.fixture
def ada(app: App) -> App:
    register(app)
    suppressions.record_soft_bounce(channel="email", address=ADA["email"], event="1", now=utc_now())
    for channel, address in PAIRS:
        unsubscribe(channel, address)
    return app


def everything() -> str:
    names = set(database().list_collection_names()) - {"notification_types"}
    return " ".join(str(list(database()[name].find())) for name in sorted(names))


def test_erasure_removes_addresses_and_content(ada: App) -> None:
    notify(ada, channels=["email", "whatsapp"], external_id="x-1")
    notify(ada, content={"subject": "Dear Countess", "body": "Sunrise"}, data={})
    notify(ada, recipient={"email": "other.ada@example.com"})
    suppressions.record_soft_bounce(
        channel="email", address="other.ada@example.com", event="1", now=utc_now()
    )
    notify(ada, user_id=..., recipient={"email": ADA["email"]})
    for secret in (*ADA.values(), "Countess", "Sunrise", "other.ada", TOKEN):
        assert secret in everything(), secret
    answer = ada.delete(ONE)
    assert answer.status_code == 200
    assert answer.json() == {
        "user_id": "ada",
        "is_complete": True,
        "notifications": 4,
        "devices": 1,
        "topics": 1,
    }
    left = everything()
    for secret in (*ADA.values(), "Countess", "Sunrise", "other.ada", TOKEN, "912345678"):
        assert secret not in left, secret


def test_erasure_removes_the_recipient_from_closed_digests(ada: App) -> None:
    digest_id = opened(key="thread-1")["_id"]
    collection("digests").update_one({"_id": digest_id}, {"$set": {"status": "closed"}})
    assert ada.delete(ONE).status_code == 200
    left = collection("digests").find_one({"_id": digest_id})
    assert left is not None
    assert not {"user_id", "key"} & left.keys()


def test_erased_notifications_are_cancelled_and_still_counted(ada: App) -> None:
    sent = notify(ada)
    before = collection("notifications").count_documents({})
    ada.delete(ONE)
    assert collection("notifications").count_documents({}) == before
    assert ada.get("/notifications").json()["results"] == []
    assert ada.get(f"/notifications/{sent}").json()["status"] == "cancelled"
    report = pipeline.dispatch(SendingRuntime(), [ObjectId(sent)], channel=Channel.EMAIL)
    assert report.claimed == 0
    refused = ada.notify(user_id="ada", recipient=...)
    assert pointers(refused) == {"/recipient": "no_address"}


def test_suppressions_outlive_the_erasure(ada: App) -> None:
    ada.delete(ONE)
    held = queries.find_suppressed(PAIRS, now=utc_now())
    assert {suppression.reason for suppression in held.values()} == {"unsubscribed"}
    assert [s["address"] for s in ada.get("/suppressions").json()["results"]] == [None, None]
    ada.put(ONE, ADA)
    news = {"type": "marketing", "content": {"body": "News"}, "data": {}}
    answer = ada.notify(user_id="ada", recipient=..., **news)
    assert answer.json()["delivery"][0]["status"] == "suppressed"


def test_erasure_revokes_inbox_tokens_of_every_client(ada: App, other_app: App) -> None:
    text = other_app.post("/inbox/tokens", {"user_id": "ada"}).json()["token"]
    bobs = other_app.post("/inbox/tokens", {"user_id": "bob"}).json()["token"]
    ada.delete(ONE)
    assert inbox_tokens.authenticate(text, now=utc_now()) is None
    assert inbox_tokens.authenticate(bobs, now=utc_now()) is not None


def test_repeated_erasure_changes_nothing(ada: App) -> None:
    notify(ada)
    ada.delete(ONE)
    before = everything()
    again = ada.delete(ONE)
    assert again.status_code == 200
    assert again.json()["notifications"] == again.json()["devices"] == 0
    assert everything() == before
    assert LogEntry.objects.filter(action_flag=3).count() == 1


def test_unregistered_recipient_is_erased(app: App) -> None:
    notify(app, recipient={"email": ADA["email"]})
    assert app.delete(ONE).json()["notifications"] == 1
    assert ADA["email"] not in everything()
    assert app.delete("/recipients/nobody").json()["is_complete"] is True


def test_erasure_covers_all_clients(ada: App, other_app: App) -> None:
    notify(ada)
    notify(other_app)
    assert other_app.delete(ONE).json()["notifications"] == 2
    assert ADA["email"] not in everything()


def test_recipient_with_the_same_address_is_kept(ada: App) -> None:
    ada.put("/recipients/twin", {"email": ADA["email"]})
    kept = notify(ada, user_id="twin")
    ada.delete(ONE)
    assert ada.get(f"/notifications/{kept}").json()["recipient"]["email"] == ADA["email"]
    assert ada.get("/recipients/twin").json()["email"] == ADA["email"]


def test_erasure_is_audited(ada: App) -> None:
    notify(ada)
    ada.delete(ONE)
    entry = LogEntry.objects.get(action_flag=3)
    assert (entry.object_id, entry.action_flag, entry.user_id) == ("ada", 3, ada.id)
    assert entry.get_change_message() == (
        "By client app: Erased: 1 notifications, 1 devices, 1 topics."
    )
    ada.delete("/recipients/nobody")
    assert LogEntry.objects.filter(action_flag=3).count() == 1, "nothing was there"


def test_erasure_out_of_time_continues_when_repeated(
    ada: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        notify(ada)
    notify(ada, user_id=..., recipient={"email": ADA["email"]})
    monkeypatch.setattr(erasure, "BATCH", 2)
    erased: list[Any] = []
    while not erased or not erased[-1].is_complete:
        assert len(erased) < 9
        ticks = itertools.count()
        erased.append(erasure.erase("ada", now=utc_now(), seconds=1, timer=ticks.__next__))
        assert queries.find_registered(["ada"]) == {}, "from the first call on"
    assert [part.notifications for part in erased] == [2, 2, 1, 1, 0]
    assert ADA["email"] not in everything()


def test_incomplete_erasure_answers_202(ada: App, monkeypatch: pytest.MonkeyPatch) -> None:
    notify(ada)
    monkeypatch.setattr(erasure, "MAX_SECONDS", -1.0)
    answer = ada.delete(ONE)
    assert (answer.status_code, answer.json()["is_complete"]) == (202, False)
    assert answer.headers["Retry-After"]
    assert "Partially erased" in LogEntry.objects.get(action_flag=3).get_change_message()
