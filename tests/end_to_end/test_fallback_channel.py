"""Push first, email as the fallback channel."""

from collections.abc import Iterator
from typing import Any

import pytest

from notifications.catalog import types
from notifyproject.db.collections import collection
from tests.support.clients.api import App, when

pytestmark = pytest.mark.usefixtures("worker", "quick_retries")


@pytest.fixture(autouse=True)
def _push_then_mail(app: App) -> Iterator[None]:
    collection("notification_types").update_one(
        {"_id": "order_shipped"},
        {"$set": {"fallback_channel": "email", "fallback_after_seconds": 2}},
    )
    types.invalidate_types()
    yield
    types.invalidate_types()


def shipped(app: App, token: str) -> Any:
    device = {"user_id": "ada", "device_token": token, "platform": "android"}
    assert app.put("/devices", device).status_code in (200, 201)
    return app.notify(type="order_shipped", user_id="ada", data={"order": "12345"})


def deliveries(notification: dict[str, Any]) -> dict[str, tuple[str, int]]:
    return {d["channel"]: (d["status"], d["attempt_count"]) for d in notification["delivery"]}


def test_fallback_is_sent_at_once_after_a_failed_push(app: App) -> None:
    answer = shipped(app, "unregistered-ada")
    found = deliveries(when(app, answer, "partially_delivered"))
    assert found["push"] == ("failed", 1)
    assert found["email"][0] in ("sent", "delivered")


def test_fallback_waits_for_the_first_channel(app: App) -> None:
    answer = shipped(app, "ada-phone")
    found = deliveries(when(app, answer, "sent", "delivered"))
    assert found["push"] == ("sent", 1)
    assert found["email"][1] == 1
