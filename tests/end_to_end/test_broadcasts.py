"""A broadcast to 2,500 recipients, up to the inbox."""

from collections.abc import Callable
from typing import Any

import pytest

from notifications.queueing import backlog
from notifyproject.db.collections import collection
from tests.support.clients.api import App
from tests.support.clients.inbox import InboxUser
from tests.support.factories.broadcasts import recipients
from tests.support.waiting import until

COUNT, WITH_MAIL = 2_500, 5
Received = Callable[[str], list[dict[str, Any]]]


@pytest.mark.usefixtures("worker")
def test_broadcast_reaches_every_recipient_once(app: App, received: Received) -> None:
    backlog.clear()
    names = recipients(COUNT, email=None)
    for name in names[:WITH_MAIL]:
        address = {"$set": {"email": f"{name}@example.com"}}
        collection("recipients").update_one({"_id": name}, address)
    began = app.post(
        "/broadcasts",
        {
            "type": "alert",
            "audience": {"all": True},
            "channels": ["email", "in_app"],
            "content": {"subject": "Closed on Monday", "body": "We are closed on Monday."},
        },
        headers={"Idempotency-Key": "closed-on-monday"},
    )
    assert began.status_code == 202

    def ended() -> dict[str, Any] | None:
        now: dict[str, Any] = app.get(f"/broadcasts/{began.json()['id']}").json()
        is_delivered = (now["notifications"] or {}).get("delivered") == COUNT
        return now if now["status"] == "completed" and is_delivered else None

    broadcast = until(ended)
    assert (broadcast["accepted"], broadcast["skipped"], broadcast["rejected"]) == (COUNT, [], [])
    found = collection("notifications").distinct("user_id")
    assert found == names
    assert len(received(f"{names[0]}@example.com")) == 1

    reader = InboxUser(app=app, user_id=names[-1])
    (item,) = reader.get().json()["results"]
    assert item["subject"] == "Closed on Monday"
    reader.post(f"/{item['id']}/read")
    assert app.get(f"/notifications/{item['id']}").json()["is_read"] is True
    assert app.get(f"/notifications/{item['id']}").json()["broadcast_id"] == broadcast["id"]
