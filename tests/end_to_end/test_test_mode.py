"""Sends of a client in test mode go to the sandbox and leave no trace on live data."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from delivery import circuit_breaker, dispatcher
from devices import registration
from devices.models import Platform
from devices.registration import Registration
from domain.states import Channel
from domain.time import utc_now
from notifyproject.db.collections import collection
from providers.registry import providers_for
from sandbox.server import Sandbox
from tests.support.clients.api import App, new_app, when
from tests.support.factories import notifications as factories
from tests.support.fakes import socket_server

UNREACHABLE = "http://127.0.0.1:1"
Received = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def client_in_test_mode(db: None, broker: Any) -> App:
    """Return a client in test mode."""
    return new_app("client_in_test_mode", is_test=True)


@pytest.fixture
def sandboxed(provider: Sandbox, settings: Any) -> Any:
    """Use the sandbox for tests, and unreachable addresses for everything else."""
    settings.SANDBOX_URL = provider.url
    settings.SANDBOX_FCM_CREDENTIALS = str(provider.service_account)
    settings.SENDGRID_URL = settings.FCM_URL = settings.WHATSAPP_URL = UNREACHABLE
    return settings


def stored() -> Mapping[str, int]:
    """Return the counts of suppressions and soft bounces."""
    names = ("suppressions", "suspicions")
    return {name: collection(name).count_documents({}) for name in names}


@pytest.mark.usefixtures("worker", "sandboxed")
@pytest.mark.parametrize(
    ("address", "status"), [("ada@example.com", "delivered"), ("bounce@example.com", "failed")]
)
def test_mail_goes_to_the_sandbox_and_gets_its_receipt(
    client_in_test_mode: App, received: Received, address: str, status: str
) -> None:
    answer = client_in_test_mode.notify(recipient={"email": address})
    notification = when(client_in_test_mode, answer, "delivered", "failed")
    assert notification["status"] == status
    assert notification["delivery"][0]["provider"] == "sandbox-sendgrid"
    assert len(received(address)) == 1
    assert set(stored().values()) == {0}


@pytest.mark.usefixtures("worker", "sandboxed")
def test_push_and_whatsapp_go_to_the_sandbox(client_in_test_mode: App, received: Received) -> None:
    new = Registration(user_id="ada", token="unregistered-1", platform=Platform.ANDROID)
    device = registration.register(new, now=utc_now())["_id"]
    answer = client_in_test_mode.notify(
        type="transactional",
        user_id="ada",
        recipient={"phone": "+447700900026"},
        channels=["push", "whatsapp"],
        content={"subject": "Hello", "body": "Hello Ada"},
        data={},
    )
    notification = when(client_in_test_mode, answer, "failed")
    codes = {one["channel"]: one["failure_code"] for one in notification["delivery"]}
    assert codes == {"push": "invalid_recipient", "whatsapp": "window_closed"}
    assert len(received("unregistered-1")) == 1
    known = collection("devices").find_one({"_id": device})
    assert known is not None
    assert known["is_active"]
    assert set(stored().values()) == {0}


@pytest.mark.usefixtures("sandboxed")
def test_mixed_batch_is_split_by_mode(received: Received, settings: Any) -> None:
    handler = socket_server.KeepAlive(socket_server.response(202, b"", "X-Message-Id: real"))
    with socket_server.serving(handler) as real:
        settings.SENDGRID_URL = real.url
        documents = [
            factories.accepted(created_at=utc_now(), is_test=is_test)
            for is_test in (True, False, True)
        ]
        dispatcher.dispatch([one["_id"] for one in documents], channel=Channel.EMAIL)
    providers = [factories.delivery(factories.read(one["_id"]))["provider"] for one in documents]
    assert providers == ["sandbox-sendgrid", "sendgrid", "sandbox-sendgrid"]
    assert len(handler.requests) == 1
    assert len(received("ada@example.com")) == 2


@pytest.mark.usefixtures("sandboxed", "broker", "db")
def test_unavailable_sandbox_opens_no_live_circuit(settings: Any) -> None:
    settings.SANDBOX_URL = UNREACHABLE
    now = utc_now()
    ids = [factories.accepted(created_at=now, is_test=True)["_id"] for _ in range(25)]
    for one in ids:
        dispatcher.dispatch([one], channel=Channel.EMAIL)
    (test,), (real,) = (providers_for(Channel.EMAIL, test=is_test) for is_test in (True, False))
    permissions = circuit_breaker.request_permissions([test.account, real.account], now=utc_now())
    assert isinstance(permissions[test.account], circuit_breaker.Blocked)
    assert not isinstance(
        permissions[real.account], circuit_breaker.Blocked | circuit_breaker.Probe
    )


@pytest.mark.usefixtures("broker", "db")
@pytest.mark.parametrize("channel", [Channel.EMAIL, Channel.WHATSAPP])
def test_delivery_fails_without_a_sandbox(settings: Any, channel: Channel) -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(handler) as real:
        settings.SANDBOX_URL = ""
        settings.SENDGRID_URL = settings.WHATSAPP_URL = real.url
        settings.WHATSAPP_TOKEN, settings.WHATSAPP_PHONE_NUMBER_ID = "EAAreal", "1" * 15
        document = factories.accepted(created_at=utc_now(), channels=(channel,), is_test=True)
        dispatcher.dispatch([document["_id"]], channel=channel)
    delivery = factories.delivery(factories.read(document["_id"]), channel)
    assert (delivery["status"], delivery["failure_code"]) == ("failed", "channel_unavailable")
    reason = f"Test notification, but no sandbox is configured for {channel}."
    assert delivery["failure_reason"] == reason
    assert handler.requests == []
    assert factories.attempts(document["_id"]) == []
