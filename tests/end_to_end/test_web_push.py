"""Web push from the registration of a browser to the receipts of its service worker."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import urllib3

from delivery import circuit_breaker
from devices.push_keys import VapidKey, new_key
from domain.time import utc_now
from providers import registry
from sandbox.assembly import Sandbox
from tests.support.clients.api import App, when
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("worker")
GOOGLE, MOZILLA, APPLE = (
    "fcm.googleapis.com",
    "updates.push.services.mozilla.com",
    "web.push.apple.com",
)
Subscribe = Callable[..., str]


@pytest.fixture(autouse=True)
def key(provider: Sandbox, settings: Any) -> VapidKey:
    """Configure web push, with the sandbox as every push service."""
    found = new_key()
    settings.SANDBOX_URL = provider.url
    settings.WEBPUSH_KEYS = (found.private_text,)
    settings.WEBPUSH_SUBJECT = "mailto:push@example.com"
    settings.WEBPUSH_HOME_URL = "https://app.example.com/"
    return found


def use(settings: Any, *keys: VapidKey) -> None:
    settings.WEBPUSH_KEYS = tuple(key.private_text for key in keys)
    registry.clear()


@pytest.fixture
def http() -> urllib3.PoolManager:
    return urllib3.PoolManager(retries=False)


@pytest.fixture
def subscribe(app: App, provider: Sandbox, http: urllib3.PoolManager, key: VapidKey) -> Subscribe:
    """Return a function that registers a browser, and returns its device ID."""

    def register(host: str, name: str = "ada", *, user_id: str = "ada", by: VapidKey = key) -> str:
        body = {"host": host, "name": name, "application_server_key": by.public_text}
        url = f"{provider.url}/_sandbox/webpush/subscriptions"
        subscription = http.request("POST", url, json=body).json()
        answer = app.put(
            "/devices",
            {
                "user_id": user_id,
                "platform": "web",
                "subscription": subscription | {"application_server_key": by.public_text},
            },
        )
        assert answer.status_code in (200, 201), answer.json()
        return str(answer.json()["id"])

    return register


@pytest.fixture
def shown(provider: Sandbox, http: urllib3.PoolManager) -> Callable[[], list[dict[str, Any]]]:
    """Return a function that returns what browsers show, oldest first."""

    def notifications() -> list[dict[str, Any]]:
        url = f"{provider.url}/_sandbox/requests?provider=webpush&accepted=true&limit=1000"
        found = http.request("GET", url).json()["results"]
        return [request["body"]["push"]["notification"] for request in found[::-1]]

    return notifications


def notify(app: App, **fields: Any) -> Any:
    default: dict[str, Any] = {
        "type": "order_shipped",
        "user_id": "ada",
        "recipient": ...,
        "channels": ["push"],
        "data": {"order": "1001"},
        "content": {"deep_link": "https://app.example.com/orders/1001"},
    }
    return app.notify(**(default | fields))


def report(app: App, notification: dict[str, Any], event: str) -> int:
    """Report as the service worker does: with nothing but what the push had in it."""
    data = notification["data"]
    path = data["receipts"].partition("/api/v1")[2]
    body = {"notification_id": data["notification_id"], "event": event}
    headers = {"Authorization": f"Bearer {data['receipt_token']}"}
    return app.send(path, json.dumps(body).encode(), headers=headers).status_code


def device(app: App, device_id: str) -> dict[str, Any]:
    return app.get(f"/devices/{device_id}").json()


def open_circuits() -> list[str]:
    states = circuit_breaker.circuit_states(now=utc_now()) or ()
    return [state.name for state in states if state.state == "open"]


def is_apple_stopped() -> bool:
    return any(name.endswith(APPLE) for name in open_circuits())


def test_push_is_shown_delivered_and_opened(
    app: App, subscribe: Subscribe, shown: Callable[[], list[dict[str, Any]]]
) -> None:
    browser = subscribe(MOZILLA)
    answer = notify(app)
    (delivery,) = when(app, answer, "sent")["delivery"]
    assert (delivery["status"], delivery["provider"]) == ("sent", "webpush")
    (notification,) = shown()
    assert notification["title"] == "Your order 1001 is on its way"
    assert notification["navigate"] == "https://app.example.com/orders/1001"
    assert report(app, notification, "delivered") == 204
    assert when(app, answer, "delivered")
    assert report(app, notification, "opened") == 204
    (delivery,) = app.get(f"/notifications/{answer.json()['id']}").json()["delivery"]
    assert delivery["status"] == "read"
    assert device(app, browser)["last_receipt_at"] is not None


def test_phone_and_browser_get_the_same_notification(
    app: App, subscribe: Subscribe, shown: Callable[[], list[dict[str, Any]]]
) -> None:
    subscribe(APPLE)
    phone = {"user_id": "ada", "device_token": "adas-phone", "platform": "android"}
    assert app.put("/devices", phone).status_code == 201
    answer = notify(app)
    when(app, answer, "sent")
    assert len(shown()) == 1
    attempts = app.get(f"/notifications/{answer.json()['id']}/attempts").json()["results"]
    assert {(attempt["provider"], attempt["status"]) for attempt in attempts} == {
        ("fcm", "sent"),
        ("webpush", "sent"),
    }


def test_ended_subscription_deactivates_the_browser(app: App, subscribe: Subscribe) -> None:
    browser = subscribe(GOOGLE, "gone-1")
    (delivery,) = when(app, notify(app), "failed")["delivery"]
    assert delivery["failure_code"] == "invalid_recipient"
    until(lambda: not device(app, browser)["is_active"])
    assert device(app, browser)["deactivation_reason"] == "unregistered"


def test_rotated_key_reaches_old_and_new_browsers(
    app: App,
    subscribe: Subscribe,
    shown: Callable[[], list[dict[str, Any]]],
    key: VapidKey,
    settings: Any,
) -> None:
    subscribe(GOOGLE, "old")
    newest = new_key()
    use(settings, newest, key)
    subscribe(GOOGLE, "new", by=newest)
    when(app, notify(app), "sent")
    assert len(shown()) == 2


def test_wrong_key_deactivates_no_browser(
    app: App, subscribe: Subscribe, settings: Any, quick_retries: None
) -> None:
    people = [f"person-{number}" for number in range(8)]
    browsers = [subscribe(APPLE, person, user_id=person) for person in people]
    use(settings, new_key())
    answers = [notify(app, user_id=person) for person in people]
    until(is_apple_stopped)
    assert all(device(app, browser)["is_active"] for browser in browsers)
    for answer in answers:
        (delivery,) = app.get(f"/notifications/{answer.json()['id']}").json()["delivery"]
        assert delivery["status"] == "pending"


@pytest.mark.usefixtures("quick_retries")
def test_push_service_that_is_down_stops_no_other(
    app: App, subscribe: Subscribe, shown: Callable[[], list[dict[str, Any]]]
) -> None:
    for number in range(8):
        subscribe(APPLE, f"unavailable-{number}", user_id=f"apple-{number}")
    for number in range(8):
        notify(app, user_id=f"apple-{number}")
    until(is_apple_stopped)
    subscribe(MOZILLA, "grace", user_id="grace")
    assert when(app, notify(app, user_id="grace"), "sent")
    assert [notification["title"] for notification in shown()]
