"""Warnings about an accepted notification that will foreseeably fail."""

from datetime import timedelta
from typing import Any

import pytest

from domain.time import utc_now
from notifications.catalog import types
from recipients import service_windows
from tests.support.clients.api import App, request
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

PHONE = "+351912345678"
WHATSAPP = {"channels": ["whatsapp"], "recipient": {"phone": PHONE}}
TEMPLATE = {"locale": "en", "name": "sent", "language": "en_US", "parameters": ["order"]}


@pytest.fixture(autouse=True)
def without_template(db: None) -> None:
    """Take the WhatsApp templates from the type that the tests use."""
    types.define_type("order_shipped", {"approved_templates": []}, now=utc_now())


def warnings(app: App, **fields: Any) -> list[str]:
    """Return the codes of the warnings; a preview and an acceptance must have the same."""
    whatsapp = {"type": "order_shipped", "data": {"order": "1"}, **WHATSAPP} | fields
    shown = app.post("/notifications/preview", request(**whatsapp))
    accepted = app.notify(**whatsapp)
    assert (shown.status_code, accepted.status_code) == (200, 202), accepted.content
    assert shown.json()["warnings"] == accepted.json()["warnings"]
    return [f"{warning['channel']}: {warning['code']}" for warning in accepted.json()["warnings"]]


def test_whatsapp_without_a_template_is_warned_of_outside_the_window_alone(app: App) -> None:
    assert warnings(app) == ["whatsapp: window_closed"]
    service_windows.record_inbound([(PHONE, utc_now() - timedelta(hours=25))], now=utc_now())
    assert warnings(app) == ["whatsapp: window_closed"]
    service_windows.record_inbound([(PHONE, utc_now() - timedelta(hours=1))], now=utc_now())
    assert warnings(app) == []


def test_whatsapp_template_prevents_the_warning_if_its_variables_are_given(app: App) -> None:
    types.define_type("order_shipped", {"approved_templates": [TEMPLATE]}, now=utc_now())
    assert warnings(app) == []
    unnamed = TEMPLATE | {"parameters": ["not_given"]}
    types.define_type("order_shipped", {"approved_templates": [unnamed]}, now=utc_now())
    assert warnings(app) == ["whatsapp: window_closed"]


def test_built_in_whatsapp_template_prevents_the_warning(app: App) -> None:
    data = {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}
    assert warnings(app, type="payment_confirmed", data=data) == []


@each_case("type_name", ["transactional", "marketing", "alert"])
def test_own_texts_fill_the_template_of_a_type_without_texts(app: App, type_name: str) -> None:
    content = {"subject": "Hello", "body": "How was it?"}
    assert warnings(app, type=type_name, data={}, content=content) == []


@each_case("channels", [["email"], ["push"]])
def test_other_channels_have_no_warning_and_read_no_window(app: App, channels: list[str]) -> None:
    factories.device("token-a")
    recipient = {"email": "ada@example.com", "phone": PHONE}
    with plans("service_windows") as reads:
        assert warnings(app, channels=channels, recipient=recipient, user_id="ada") == []
    assert reads == []


def test_repeated_request_has_the_same_warning(app: App) -> None:
    body = request(type="order_shipped", data={"order": "1"}, **WHATSAPP)
    first, again = (
        app.post("/notifications", body, headers={"Idempotency-Key": "k"}).json() for _ in range(2)
    )
    assert first["id"] == again["id"]
    assert first["warnings"] == again["warnings"] != []
