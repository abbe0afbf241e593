"""Pushes as phones and browsers show them.

Documents: Apple's "Generating a remote notification" (an alert without ``sound`` is silent; data
for an app in the background needs ``content-available``), and FCM's ``AndroidNotification``.
Each body is checked against FCM's own schema.

Reports: https://github.com/laravel-notification-channels/fcm/issues/30,
https://github.com/plokko/firebase-php/issues/21 (no sound on iOS),
https://github.com/fechanique/cordova-plugin-fcm/issues/458 (no sound by the common fields).
"""

from typing import Any

import pytest

from domain.states import Priority
from providers.contract import Message
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.fcm import push
from tests.support.providers.fcm_schema import built, check

LOUD = [Priority.CRITICAL, Priority.HIGH, Priority.NORMAL]
PAYLOADS: list[dict[str, Any] | None] = [
    None,
    {"order": 7},
    {"sound": "alarm.caf", "badge": 3},
    {"aps": {"sound": "alarm.caf"}},
]


def body(priority: Priority = Priority.NORMAL, **fields: Any) -> Any:
    message = Message(**{"subject": "Paid", "text": "It has arrived."} | fields)
    return check(built(push(message=message, priority=priority), now=FIXED_NOON))


@pytest.mark.parametrize("priority", LOUD)
@pytest.mark.parametrize("payload", PAYLOADS)
def test_iphone_plays_a_sound(priority: Priority, payload: dict[str, Any] | None) -> None:
    aps = body(priority, payload=payload)["apns"]["payload"]["aps"]
    assert aps == {"sound": "default"}


@pytest.mark.parametrize(
    "fields",
    [
        {"subject": None},
        {"text": ""},
        {"image_url": "https://cdn.example.com/a.png"},
        {"deep_link": "https://example.com/1"},
    ],
)
def test_every_visible_push_plays_a_sound(fields: dict[str, Any]) -> None:
    found = body(**fields)
    assert found["apns"]["payload"]["aps"]["sound"] == "default"
    assert found["android"]["notification"]["default_sound"] is True


def test_low_priority_is_silent_everywhere() -> None:
    found = body(Priority.LOW)
    assert found["apns"]["payload"]["aps"] == {"interruption-level": "passive"}
    assert "default_sound" not in found["android"]["notification"]
    assert found["webpush"]["notification"]["silent"] is True


@pytest.mark.parametrize("priority", Priority)
def test_data_reaches_an_app_in_the_background_without_a_sound(priority: Priority) -> None:
    found = body(priority, subject=None, text="", payload={"sync": True})
    assert "notification" not in found
    assert found["apns"]["headers"]["apns-priority"] == "5", "Apple refuses 10 without an alert"
    assert found["apns"]["payload"]["aps"] == {"content-available": 1}
    assert "default_sound" not in found["android"].get("notification", {})
    assert "silent" not in found["webpush"].get("notification", {})
