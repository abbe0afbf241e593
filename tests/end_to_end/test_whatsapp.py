"""WhatsApp from the request to the read receipt."""

from collections.abc import Callable
from typing import Any

import pytest
import urllib3

from domain.time import utc_now
from notifications.catalog import types
from notifyproject.db.collections import collection
from providers.whatsapp.provider import WhatsApp
from recipients.service_windows import open_windows
from sandbox.assembly import Sandbox
from tests.support.clients.api import App, when
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("worker")
Received = Callable[[str], list[dict[str, Any]]]
Write = Callable[..., None]
ADA = "+447700900999"
READS = "+447700900002"
"""The sandbox reports messages to this number as read."""
TEMPLATE_TEXT = "Hello {{1}}, your order {{2}} has shipped."


@pytest.fixture
def write(provider: Sandbox) -> Write:
    """Send an inbound message from a number. Return when it is recorded."""
    http = urllib3.PoolManager()

    def wrote(phone: str) -> None:
        body = {"from": phone, "text": "Where is it?"}
        url = f"{provider.url}/_sandbox/whatsapp/written"
        answer = http.request("POST", url, json=body)
        assert answer.status < 300, answer.data
        until(lambda: open_windows([phone], now=utc_now()))

    return wrote


@pytest.fixture
def approved(without_template: None, provider: Sandbox) -> None:
    """Approve a template and assign it to the type."""
    account, http = provider.whatsapp, urllib3.PoolManager()
    example = {"body_text": [["Ada", "1001"]]}
    components = [{"type": "BODY", "text": TEMPLATE_TEXT, "example": example}]
    template = {"name": "shipped", "language": "en", "category": "UTILITY"}
    answer = http.request(
        "POST",
        f"{provider.url}/v26.0/{account.business_account_id}/message_templates",
        json={**template, "components": components},
        headers={"Authorization": f"Bearer {account.access_token}"},
    )
    assert answer.status < 300, answer.data
    use = {"locale": "en", "name": "shipped", "language": "en", "parameters": ["name", "order"]}
    types.define_type("order_shipped", {"approved_templates": [use]}, now=utc_now())


@pytest.fixture(autouse=True)
def without_template(db: None) -> None:
    """Take the shipped WhatsApp templates from the type that the tests use."""
    types.define_type("order_shipped", {"approved_templates": []}, now=utc_now())


def notify(app: App, phone: str = ADA, **fields: Any) -> Any:
    default: dict[str, Any] = {
        "type": "order_shipped",
        "recipient": {"phone": phone},
        "channels": ["whatsapp"],
        "data": {"name": "Ada", "order": "1001"},
    }
    return app.notify(**(default | fields))


def test_text_after_the_service_window_is_not_sent(app: App, received: Received) -> None:
    answer = notify(app)
    assert answer.status_code == 202
    (delivery,) = when(app, answer, "failed")["delivery"]
    assert delivery["failure_code"] == "window_closed"
    assert "24-hour window" in delivery["failure_reason"]
    assert received(ADA) == []


def test_text_in_the_service_window_is_sent_and_read(
    app: App, received: Received, write: Write
) -> None:
    when(app, notify(app, READS), "failed")
    write(READS)
    answer = notify(app, READS)
    notification = until(
        lambda: (shown := when(app, answer, "sent", "delivered"))["is_read"] and shown
    )
    (delivery,) = notification["delivery"]
    assert (notification["status"], delivery["status"]) == ("delivered", "read")
    assert (delivery["provider"], delivery["attempt_count"]) == ("whatsapp", 1)
    assert delivery["provider_message_id"].startswith("wamid.")
    assert all(delivery[name] for name in ("sent_at", "delivered_at", "read_at"))
    (request,) = received(READS)
    assert request["body"]["type"] == "text"
    assert "order *1001*" in request["body"]["text"]["body"]
    assert request["body"]["biz_opaque_callback_data"] == f"{answer.json()['id']}.whatsapp.1"


@pytest.mark.usefixtures("approved")
def test_approved_template_is_sent_after_the_service_window(app: App, received: Received) -> None:
    when(app, notify(app), "delivered")
    (request,) = received(ADA)
    assert request["body"]["template"]["name"] == "shipped"
    (body,) = request["body"]["template"]["components"]
    assert [value["text"] for value in body["parameters"]] == ["Ada", "1001"]


def test_receipt_reveals_a_number_without_whatsapp(app: App, write: Write) -> None:
    phone = "+447700900006"
    write(phone)
    (delivery,) = when(app, notify(app, phone), "failed")["delivery"]
    assert delivery["failure_code"] == "reported_failed"
    assert "131026" in delivery["failure_reason"]
    assert collection("suppressions").count_documents({}) == 0
    until(lambda: collection("soft_bounces").count_documents({}) == 1)


@pytest.mark.usefixtures("quick_retries")
def test_wrong_credentials_count_neither_attempt_nor_soft_bounce(
    app: App, write: Write, settings: Any
) -> None:
    write(ADA)
    settings.WHATSAPP_TOKEN = "EAAexpired"
    (delivery,) = when(app, notify(app, max_retries=0), "retrying")["delivery"]
    assert delivery["failure_code"] == "channel_unavailable"
    assert collection("soft_bounces").count_documents({}) == 0


def test_inbound_text_is_not_stored(app: App, write: Write) -> None:
    write(ADA)
    logged = collection("webhook_log").find_one({"provider": WhatsApp.name})
    assert logged is not None
    assert "Where is it?" not in str(logged)
