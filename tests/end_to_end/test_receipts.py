"""Receipts ten times each, in random order, early and late, lead to one result."""

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from bson import ObjectId

from domain.time import utc_now
from notifications.store import leases
from notifyproject.db.collections import collection
from recipients import service_windows
from sandbox.assembly import Sandbox
from tests.support.clients.api import App
from tests.support.factories import notifications as factories
from tests.support.providers.webhooks import ADA, PHONE, Webhook
from tests.support.waiting import LIMIT, until

pytestmark = pytest.mark.usefixtures("worker")
TIMES = 10


@dataclass(frozen=True, kw_only=True)
class Story:
    """The receipts for one message, and the expected result."""

    name: str
    channel: str
    kinds: Sequence[str]
    """The kinds of receipts, in order of occurrence."""
    end: tuple[str, str | None]
    """The delivery's status and failure code."""
    suppressions: int = 0
    soft_bounces: int = 0

    @property
    def address(self) -> str:
        return ADA if self.channel == "email" else PHONE


STORIES = [
    Story(
        name="a mail is delivered, opened and clicked",
        channel="email",
        kinds=("processed", "deferred", "delivered", "open", "click"),
        end=("delivered", None),
    ),
    Story(
        name="a mail is taken by its server and comes back",
        channel="email",
        kinds=("processed", "delivered", "bounce"),
        end=("failed", "bounced"),
        suppressions=1,
    ),
    Story(
        name="a mail is called spam",
        channel="email",
        kinds=("processed", "delivered", "spamreport"),
        end=("delivered", None),
        suppressions=1,
    ),
    Story(
        name="a chat message is read",
        channel="whatsapp",
        kinds=("sent", "delivered", "read"),
        end=("read", None),
    ),
    Story(
        name="a chat message reaches no phone",
        channel="whatsapp",
        kinds=("sent", "failed"),
        end=("failed", "reported_failed"),
        soft_bounces=1,
    ),
]


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Delay the worker's settlements until the returned event is set."""
    go, settle = threading.Event(), leases.settle

    def later(*args: Any, **options: Any) -> int:
        go.wait(LIMIT)
        return settle(*args, **options)

    monkeypatch.setattr(leases, "settle", later)
    yield go
    go.set()


def notify(app: App, story: Story) -> ObjectId:
    """Send the message. Return its notification's ID."""
    if story.channel == "whatsapp":
        service_windows.record_inbound([(PHONE, utc_now())], now=utc_now())
    recipient = {"email" if story.channel == "email" else "phone": story.address}
    answer = app.notify(channels=[story.channel], recipient=recipient)
    assert answer.status_code == 202
    return ObjectId(answer.json()["id"])


def attempts(notification_id: ObjectId) -> list[str]:
    return [attempt["status"] for attempt in factories.attempts(notification_id)]


@pytest.mark.parametrize("early", [0, 1 / 2, 1], ids=["all late", "some early", "all early"])
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_repeated_receipts_in_any_order_end_the_same(
    *,
    app: App,
    provider: Sandbox,
    record: threading.Event,
    post: Callable[[Webhook], None],
    script: Callable[..., None],
    received: Callable[[str], list[dict[str, Any]]],
    story: Story,
    early: float,
) -> None:
    script(story.address, "no-events")
    notification_id = notify(app, story)
    until(lambda: received(story.address))
    reference = f"{notification_id}.{story.channel}.1"
    webhooks = [
        Webhook.of(kind, channel=story.channel, reference=reference, provider=provider)
        for kind in story.kinds
    ] * TIMES
    random.Random(f"{story.name}{early}").shuffle(webhooks)
    before = round(len(webhooks) * early)
    for webhook in webhooks[:before]:
        post(webhook)
    assert attempts(notification_id) == []
    record.set()
    until(lambda: attempts(notification_id) == ["sent"])
    for webhook in webhooks[before:]:
        post(webhook)

    (delivery,) = factories.read(notification_id)["delivery"]
    assert (delivery["status"], delivery.get("failure_code")) == story.end
    assert delivery["attempt_count"] == 1
    assert delivery["next_attempt_at"] is None
    counts = {
        name: collection(name).count_documents({})
        for name in ("provider_events", "early_receipts", "suppressions")
    }
    assert counts == {
        "provider_events": len(story.kinds),
        "early_receipts": 0,
        "suppressions": story.suppressions,
    }
    strikes = [len(bounce["events"]) for bounce in collection("soft_bounces").find()]
    assert strikes == [1] * story.soft_bounces
    assert len(received(story.address)) == 1
