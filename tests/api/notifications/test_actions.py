"""Cancel, retry and resend."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.content import Content
from domain.states import Channel, DeliveryStatus
from domain.time import utc_now
from notifications.catalog.types import MASK
from notifyproject.db.collections import collection
from tests.support.clients.api import App, pointers
from tests.support.factories import notifications as factories


def act(app: App, notification_id: Any, action: str, body: Any = None) -> Any:
    return app.post(f"/notifications/{notification_id}/{action}", body)


def failed(app: App, **fields: Any) -> dict[str, Any]:
    return factories.settled(DeliveryStatus.FAILED, client_id=app.id, **fields)


class TestCancel:
    def test_what_is_pending_is_withdrawn(self, app: App) -> None:
        accepted = app.notify().json()
        answer = act(app, accepted["id"], "cancel")
        assert answer.status_code == 200
        assert answer.json()["status"] == "cancelled"
        assert answer.json()["delivery"][0]["next_attempt_at"] is None

    def test_only_the_named_channels_are(self, app: App) -> None:
        document = factories.accepted(client_id=app.id, channels=(Channel.EMAIL, Channel.WHATSAPP))
        body = act(app, document["_id"], "cancel", {"channels": ["whatsapp"]}).json()
        assert [d["status"] for d in body["delivery"]] == ["pending", "cancelled"]

    @pytest.mark.parametrize("status", [DeliveryStatus.SENT, DeliveryStatus.FAILED])
    def test_after_sending_it_is_too_late(self, app: App, status: DeliveryStatus) -> None:
        document = factories.settled(status, client_id=app.id)
        answer = act(app, document["_id"], "cancel")
        assert (answer.status_code, answer.json()["code"]) == (409, "not_possible")

    def test_while_it_is_being_sent_it_is_too_late(self, app: App) -> None:
        one = factories.started(client_id=app.id)
        assert act(app, one.notification_id, "cancel").status_code == 409

    def test_a_worker_that_has_claimed_it_loses_it(self, app: App) -> None:
        one = factories.claimed(client_id=app.id)
        assert act(app, one.notification_id, "cancel").json()["status"] == "cancelled"


class TestRetry:
    def test_what_failed_is_due_again(self, app: App) -> None:
        document = failed(app)
        answer = act(app, document["_id"], "retry")
        assert answer.status_code == 202
        body = answer.json()
        assert body["status"] == "retrying"
        assert body["failed_at"] is None
        assert factories.read(document["_id"])["due_at"] <= utc_now()

    def test_it_may_be_tried_as_often_again(self, app: App) -> None:
        document = failed(app)
        delivery = act(app, document["_id"], "retry").json()["delivery"][0]
        assert (delivery["attempt_count"], delivery["max_attempts"]) == (1, 5)

    def test_only_what_failed_is_retried(self, app: App) -> None:
        document = failed(app, channels=(Channel.EMAIL, Channel.IN_APP))
        body = act(app, document["_id"], "retry").json()
        assert [d["status"] for d in body["delivery"]] == ["pending", "delivered"]

    def test_what_has_not_failed_cannot_be(self, app: App) -> None:
        document = factories.settled(DeliveryStatus.SENT, client_id=app.id)
        assert act(app, document["_id"], "retry").status_code == 409

    def test_what_has_expired_cannot_be(self, app: App) -> None:
        document = failed(app, expires_at=factories.NOON + timedelta(minutes=1))
        answer = act(app, document["_id"], "retry")
        assert answer.status_code == 409
        assert "expired" in answer.json()["detail"]


class TestResend:
    def test_it_says_the_same_again_as_a_new_notification(self, app: App) -> None:
        document = failed(app, entity_id="order-1")
        answer = act(app, document["_id"], "resend")
        assert answer.status_code == 202
        again = answer.json()
        assert again["id"] != str(document["_id"])
        assert again["resent_from"] == str(document["_id"])
        assert again["content"]["body"] == document["content"]["body"]
        assert again["recipient"]["email"] == "ada@example.com"
        assert again["status"] == "queued"
        original = app.get(f"/notifications/{document['_id']}").json()
        assert original["resent_as"] == [again["id"]]
        assert original["status"] == "failed"

    def test_only_the_named_channels_are_used(self, app: App) -> None:
        document = failed(app, channels=(Channel.EMAIL, Channel.IN_APP))
        again = act(app, document["_id"], "resend", {"channels": ["email"]}).json()
        assert again["channels"] == ["email"]

    def test_a_channel_it_was_not_for_is_refused(self, app: App) -> None:
        document = failed(app)
        answer = act(app, document["_id"], "resend", {"channels": ["whatsapp"]})
        assert answer.status_code == 409

    def test_what_was_delivered_may_be_sent_again(self, app: App) -> None:
        document = factories.settled(DeliveryStatus.SENT, client_id=app.id)
        assert act(app, document["_id"], "resend").status_code == 202


@pytest.mark.parametrize("action", ["cancel", "retry", "resend"])
class TestEveryAction:
    def test_an_unknown_channel_is_refused(self, app: App, action: str) -> None:
        document = failed(app)
        answer = act(app, document["_id"], action, {"channels": ["fax"]})
        assert pointers(answer) == {"/channels/0": "unknown_channel"}

    def test_no_channel_is_not_every_channel(self, app: App, action: str) -> None:
        document = failed(app)
        answer = act(app, document["_id"], action, {"channels": []})
        assert pointers(answer) == {"/channels": "no_channel"}
        assert collection("notifications").count_documents({}) == 1

    def test_a_channel_named_twice_is_refused(self, app: App, action: str) -> None:
        document = failed(app)
        answer = act(app, document["_id"], action, {"channels": ["email", "email"]})
        assert pointers(answer) == {"/channels/1": "duplicate_channel"}

    def test_a_channel_may_be_spelled_as_when_it_was_sent(self, app: App, action: str) -> None:
        document = failed(app, channels=(Channel.EMAIL, Channel.IN_APP))
        answer = act(app, document["_id"], action, {"channels": ["in-app"]})
        assert answer.status_code == (202 if action == "resend" else 409)
        every = act(app, document["_id"], action, {"channels": ["all"]})
        assert every.status_code == (409 if action == "cancel" else 202)

    def test_an_unknown_field_is_refused(self, app: App, action: str) -> None:
        document = failed(app)
        assert pointers(act(app, document["_id"], action, {"chanels": []})) == {
            "/chanels": "unknown_field"
        }

    def test_an_unknown_notification_is_not_there(self, app: App, action: str) -> None:
        assert act(app, ObjectId(), action).status_code == 404


@pytest.mark.parametrize("action", ["retry", "resend"])
def test_a_secret_that_is_destroyed_is_not_sent_again_as_dots(app: App, action: str) -> None:
    masked = Content(subject="Code", body=MASK, is_masked=True)
    document = failed(app, type="mfa_code", content=masked)
    answer = act(app, document["_id"], action)
    assert (answer.status_code, answer.json()["code"]) == (409, "secret_gone")
    assert app.get("/notifications").json()["results"][0]["resent_as"] == []
