"""A campaign and a broadcast to many recipients."""

from collections.abc import Callable
from typing import Any

import pytest
import urllib3

from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Content, Recipient
from domain.states import Category
from notifications.queueing import backlog
from notifications.store import acceptance
from notifyproject.db.collections import collection
from sandbox.assembly import Sandbox
from tests.support.clients.api import App
from tests.support.clients.inbox import InboxUser
from tests.support.factories import notifications as factories
from tests.support.factories.broadcasts import recipients
from tests.support.factories.notifications import NOON
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("app")
BROADCAST_SIZE, WITH_MAIL = 2_500, 5
Received = Callable[[str], list[dict[str, Any]]]


def campaign(*addresses: str) -> list[Any]:
    """Accept one mail per address. Return the IDs."""
    news = [
        factories.new(
            type="marketing",
            category=Category.MARKETING,
            recipient=Recipient(email=address),
            content=Content(subject="Spring", body="It is spring."),
        )
        for address in addresses
    ]
    acceptance.accept(news, now=NOON)
    return [notification.id for notification in news]


def requests(provider: Sandbox) -> list[dict[str, Any]]:
    url = f"{provider.url}/_sandbox/requests"
    return urllib3.request("GET", url, fields={"limit": "1000"}).json()["results"]


def test_batch_is_one_request(provider: Sandbox) -> None:
    ids = campaign(*(f"person-{n}@example.com" for n in range(50)))
    report = pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL)
    assert report.counts == {"sent": 50}
    assert len(requests(provider)) == 1


@pytest.mark.usefixtures("worker")
def test_broadcast_reaches_every_recipient_once(app: App, received: Received) -> None:
    backlog.clear()
    names = recipients(BROADCAST_SIZE, email=...)
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
        is_delivered = (now["notifications"] or {}).get("delivered") == BROADCAST_SIZE
        return now if now["status"] == "completed" and is_delivered else None

    broadcast = until(ended)
    assert (broadcast["accepted"], broadcast["skipped"], broadcast["rejected"]) == (
        BROADCAST_SIZE,
        [],
        [],
    )
    found = collection("notifications").distinct("user_id")
    assert found == names
    assert len(received(f"{names[0]}@example.com")) == 1

    reader = InboxUser(app=app, user_id=names[-1])
    (item,) = reader.get().json()["results"]
    assert item["subject"] == "Closed on Monday"
    reader.post(f"/{item['id']}/read")
    assert app.get(f"/notifications/{item['id']}").json()["is_read"] is True
    assert app.get(f"/notifications/{item['id']}").json()["broadcast_id"] == broadcast["id"]
