"""A registered recipient with all kinds of data."""

from typing import Any

from domain.time import utc_now
from recipients import service_windows
from recipients.models import SuppressionReason
from tests.support.clients.api import App
from tests.support.factories import notifications as factories

ADA = {"email": "ada.l@example.com", "phone": "+351912345678", "name": "Ada Q. Byron"}
ONE = "/recipients/ada"
TOKEN = "a-device-token"


def register(app: App) -> None:
    """Store Ada's data, and an inbound message."""
    app.put(ONE, {**ADA, "attributes": {"nickname": "Countess"}})
    app.put(f"{ONE}/preferences", {"preferences": {"alert": {"muted": True}}})
    app.put("/devices", {"user_id": "ada", "device_token": TOKEN, "platform": "ios"})
    app.put("/topics/news/members/ada", {})
    service_windows.record_inbound([(ADA["phone"], utc_now())], now=utc_now())


def unsubscribe(channel: str, address: str) -> None:
    factories.suppress(
        address,
        channel=channel,
        reason=SuppressionReason.UNSUBSCRIBED,
        source="one-click",
        marketing_only=True,
        at=utc_now(),
    )


def notify(app: App, **fields: Any) -> str:
    answer = app.notify(**{"user_id": "ada", "recipient": ...} | fields)
    assert answer.status_code == 202
    identifier: str = answer.json()["id"]
    return identifier
