"""What an API client in test mode sends: to the sandbox, and no trace of it on what is real."""

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

NOBODY = "http://127.0.0.1:1"
Received = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def rehearsal(db: None, broker: Any) -> App:
    """Give an app in test mode."""
    return new_app("rehearsal", is_test=True)


@pytest.fixture
def sandboxed(provider: Sandbox, settings: Any) -> Any:
    """Have tests go to the sandbox, and all else to addresses where nobody listens."""
    settings.SANDBOX_URL = provider.url
    settings.SANDBOX_FCM_CREDENTIALS = str(provider.service_account)
    settings.SENDGRID_URL = settings.FCM_URL = settings.WHATSAPP_URL = NOBODY
    return settings


def stored() -> Mapping[str, int]:
    """Return how much is known against anybody."""
    names = ("suppressions", "suspicions")
    return {name: collection(name).count_documents({}) for name in names}


@pytest.mark.usefixtures("worker", "sandboxed")
@pytest.mark.parametrize(
    ("address", "status"), [("ada@example.com", "delivered"), ("bounce@example.com", "failed")]
)
def test_mail_goes_to_the_sandbox_which_reports_what_became_of_it(
    rehearsal: App, received: Received, address: str, status: str
) -> None:
    answer = rehearsal.notify(recipient={"email": address})
    notification = when(rehearsal, answer, "delivered", "failed")
    assert notification["status"] == status
    assert notification["delivery"][0]["provider"] == "sandbox-sendgrid"
    assert len(received(address)) == 1
    assert set(stored().values()) == {0}


@pytest.mark.usefixtures("worker", "sandboxed")
def test_so_do_pushes_and_whatsapp(rehearsal: App, received: Received) -> None:
    new = Registration(user_id="ada", token="unregistered-1", platform=Platform.ANDROID)
    device = registration.register(new, now=utc_now())["_id"]
    answer = rehearsal.notify(
        type="transactional",
        user_id="ada",
        recipient={"phone": "+447700900026"},
        channels=["push", "whatsapp"],
        content={"subject": "Hello", "body": "Hello Ada"},
        data={},
    )
    notification = when(rehearsal, answer, "failed")
    codes = {one["channel"]: one["failure_code"] for one in notification["delivery"]}
    assert codes == {"push": "invalid_recipient", "whatsapp": "window_closed"}
    assert len(received("unregistered-1")) == 1
    known = collection("devices").find_one({"_id": device})
    assert known is not None
    assert known["is_active"]
    assert set(stored().values()) == {0}


@pytest.mark.usefixtures("sandboxed")
def test_a_batch_is_parted_and_each_half_goes_its_way(received: Received, settings: Any) -> None:
    desk = socket_server.KeepAlive(socket_server.response(202, b"", "X-Message-Id: real"))
    with socket_server.serving(desk) as real:
        settings.SENDGRID_URL = real.url
        documents = [
            factories.accepted(created_at=utc_now(), is_test=is_test)
            for is_test in (True, False, True)
        ]
        dispatcher.dispatch([one["_id"] for one in documents], channel=Channel.EMAIL)
    providers = [factories.delivery(factories.read(one["_id"]))["provider"] for one in documents]
    assert providers == ["sandbox-sendgrid", "sendgrid", "sandbox-sendgrid"]
    assert len(desk.requests) == 1
    assert len(received("ada@example.com")) == 2


@pytest.mark.usefixtures("sandboxed", "broker", "db")
def test_a_sandbox_that_is_away_closes_no_real_circuit(settings: Any) -> None:
    settings.SANDBOX_URL = NOBODY
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
def test_without_a_sandbox_it_fails_for_good_and_nobody_is_asked(
    settings: Any, channel: Channel
) -> None:
    desk = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(desk) as real:
        settings.SANDBOX_URL = ""
        settings.SENDGRID_URL = settings.WHATSAPP_URL = real.url
        settings.WHATSAPP_TOKEN, settings.WHATSAPP_PHONE_NUMBER_ID = "EAAreal", "1" * 15
        document = factories.accepted(created_at=utc_now(), channels=(channel,), is_test=True)
        dispatcher.dispatch([document["_id"]], channel=channel)
    delivery = factories.delivery(factories.read(document["_id"]), channel)
    assert (delivery["status"], delivery["failure_code"]) == ("failed", "channel_unavailable")
    reason = f"Test notification, but no sandbox is configured for {channel}."
    assert delivery["failure_reason"] == reason
    assert desk.requests == []
    assert factories.attempts(document["_id"]) == []
