"""Web push in Chromium: the worker shows what the service sends, and the button asks once."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from devices.push_keys import new_key
from notifyproject.stack import demo
from tests.browser.screen import WAIT
from tests.support.clients.api import App
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("db", "broker")
PUSH = {
    "web_push": 8030,
    "notification": {
        "title": "Paid",
        "body": "We have it.",
        "navigate": "https://app.example.com/",
    },
}

REGISTER = """async () => {
  const rules = { createScriptURL: (url) => url };
  const policy = trustedTypes.createPolicy("notify-push", rules);
  await navigator.serviceWorker.register(policy.createScriptURL("/demo/notify-push.js"));
}"""


@pytest.fixture
def page(
    *, chromium: Browser, app: App, live_server: Any, settings: Any, tmp_path: Any, monkeypatch: Any
) -> Iterator[Page]:
    """Open the demo page of a stack."""
    settings.ROOT_URLCONF = "notifyproject.stack.urls"
    settings.PUBLIC_URL = settings.INBOX_STREAM_URL = live_server.url
    settings.WEBPUSH_KEYS = (new_key().private_text,)
    credentials = tmp_path / "credentials.json"
    credentials.write_text(json.dumps({"api_key": app.key}))
    monkeypatch.setattr(demo, "CREDENTIALS_FILE", credentials)
    context = chromium.new_context()
    context.set_default_timeout(WAIT)
    opened = context.new_page()
    opened.goto(f"{live_server.url}/demo/inbox")
    yield opened
    context.close()


def test_worker_shows_a_push(page: Page, live_server: Any) -> None:
    devtools = page.context.new_cdp_session(page)
    known: list[str] = []
    devtools.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: known.extend(found["registrationId"] for found in event["registrations"]),
    )
    devtools.send("ServiceWorker.enable")
    with page.context.expect_event("serviceworker") as started:
        page.evaluate(REGISTER)
    worker = started.value
    # The headless shell refuses notifications by itself.
    worker.evaluate(
        """() => {
          self.shown = [];
          self.registration.showNotification = async (title, { body }) => {
            self.shown.push([title, body]);
          };
        }"""
    )
    until(lambda: page.evaluate("() => true") and known)
    for data in (json.dumps(PUSH), "not JSON"):
        devtools.send(
            "ServiceWorker.deliverPushMessage",
            {"origin": live_server.url, "registrationId": known[-1], "data": data},
        )
    until(lambda: len(worker.evaluate("() => self.shown")) == 2)
    shown, fallback = worker.evaluate("() => self.shown")
    assert shown == ["Paid", "We have it."]
    assert fallback[0], "Safari revokes a subscription whose push shows nothing"


def test_button_says_that_notifications_are_blocked_and_asks_no_more(page: Page) -> None:
    # Headless Chromium refuses notifications by itself.
    button = page.locator("notify-push-button")
    expect(button).to_contain_text("This browser blocks notifications")
    expect(button.get_by_role("button")).to_be_hidden()
