"""Deleting a notification: soft, idempotent, and undone in the console."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.actions import actions
from notifications.actions.actions import SingleAction, Staff
from tests.support.clients.api import App
from tests.support.clients.inbox import InboxUser, delivered
from tests.support.factories import notifications as factories

S = DeliveryStatus
STAFF = Staff(id=ObjectId(), username="rui")


def ids(answer: Any) -> list[str]:
    return [result["id"] for result in answer.json()["results"]]


def test_deleted_notification_leaves_lists_and_the_inbox(app: App) -> None:
    first, other = (str(delivered(app)["_id"]) for _ in range(2))
    ada = InboxUser(app=app)
    answer = app.delete(f"/notifications/{first}")
    assert (answer.status_code, answer.content) == (204, b"")
    for path in ("/notifications", "/recipients/ada/notifications"):
        assert ids(app.get(path)) == ids(app.get(path, is_active="true")) == [other]
        assert ids(app.get(path, is_active="false")) == [first]
        assert ids(app.get(path, unread="true")) == [other]
    assert (ada.counts(), ada.ids()) == ((1, 1), [other])
    assert ada.post(f"/{first}/read").status_code == 404
    shown = app.get(f"/notifications/{first}").json()
    assert (shown["is_active"], shown["deleted_at"] is not None) == (False, True)


def test_deleting_again_changes_nothing(app: App) -> None:
    document = factories.settled(S.SENT, client_id=app.id)
    path = f"/notifications/{document['_id']}"
    assert app.delete(path).status_code == 204
    first = app.get(path).json()
    assert app.delete(path).status_code == 204
    assert app.get(path).json() == first


def test_scheduled_notification_is_cancelled_by_deleting(app: App) -> None:
    later = (utc_now() + timedelta(hours=1)).isoformat()
    notification_id = app.notify(scheduled_at=later).json()["id"]
    assert app.delete(f"/notifications/{notification_id}").status_code == 204
    shown = app.get(f"/notifications/{notification_id}").json()
    (delivery,) = shown["delivery"]
    assert (shown["status"], delivery["status"]) == ("cancelled", "cancelled")
    assert delivery["failure_reason"] == "Deleted by the client."


def test_deleted_notification_is_not_sent_again(app: App) -> None:
    document = factories.settled(S.FAILED, client_id=app.id)
    path = f"/notifications/{document['_id']}"
    assert app.get(path).json()["can_retry"]
    app.delete(path)
    assert not app.get(path).json()["can_retry"]
    for action in ("retry", "resend", "cancel", "reschedule"):
        at = {"scheduled_at": utc_now().isoformat()} if action == "reschedule" else None
        answer = app.post(f"{path}/{action}", at)
        assert (answer.status_code, answer.json()["code"]) == (409, "invalid_state")
        assert "deleted" in answer.json()["detail"]


def test_unknown_notification_is_not_deleted(app: App, other_app: App) -> None:
    theirs = factories.accepted(client_id=other_app.id)["_id"]
    for name in (theirs, ObjectId(), "x", "%24ne"):
        assert app.delete(f"/notifications/{name}").status_code == 404
    assert ids(other_app.get("/notifications")) == [str(theirs)]


def restore(notification_id: ObjectId) -> None:
    actions.act_as_staff(
        SingleAction.RESTORE,
        notification_id=notification_id,
        channels=None,
        by=STAFF,
        now=utc_now(),
    )


def test_restored_notification_is_listed_again(app: App) -> None:
    document = delivered(app, channels=[Channel.IN_APP])
    notification_id = document["_id"]
    app.delete(f"/notifications/{notification_id}")
    restore(notification_id)
    assert ids(app.get("/notifications")) == InboxUser(app=app).ids() == [str(notification_id)]
    shown = app.get(f"/notifications/{notification_id}").json()
    assert (shown["is_active"], shown["deleted_at"]) == (True, None)
    with pytest.raises(actions.InvalidStateError):
        restore(notification_id)
