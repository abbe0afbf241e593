"""Browsers in the list of devices: their push service, and the key that they subscribed with."""

from typing import Any

import pytest
from django.test import Client

from devices import registration
from devices.models import Platform
from devices.push_keys import VapidKey, new_key
from devices.registration import Registration
from domain.web_push import Fingerprint, Subscription, fingerprint
from tests.support.factories.notifications import NOON

URL = "/admin/devices/device/"


def browser(name: str, own: Fingerprint) -> str:
    subscription = Subscription(
        endpoint=f"https://web.push.apple.com/{name}",
        host="web.push.apple.com",
        p256dh=bytes(65),
        auth=bytes(16),
        fingerprint=own,
    )
    new = Registration(
        user_id=name, token=subscription, platform=Platform.WEB, device_model="Safari on macOS"
    )
    return registration.register(new, now=NOON)["_id"]


@pytest.fixture
def keys(settings: Any) -> list[VapidKey]:
    found = [new_key(), new_key()]
    settings.WEBPUSH_KEYS = tuple(key.private_text for key in found)
    return found


def test_list_shows_browser_push_service_and_old_keys(
    console: Client, keys: list[VapidKey]
) -> None:
    newest, old = (fingerprint(key.public) for key in keys)
    for name, own in (("ada", newest), ("bob", old), ("eve", fingerprint(b"another"))):
        browser(name, own)
    shown = console.get(URL).content.decode()
    assert shown.count("Safari on macOS") == 3
    assert shown.count("web.push.apple.com") == 3
    assert shown.count("Subscribed with an old key") == 1
    assert shown.count("Subscribed with a key that isn&#x27;t configured") == 1


def test_page_of_a_browser_shows_the_fingerprint_and_no_endpoint(
    console: Client, keys: list[VapidKey]
) -> None:
    own = keys[0].fingerprint
    shown = console.get(f"{URL}{browser('ada', own)}/change/").content.decode()
    assert own in shown
    assert "https://web.push.apple.com/ada" not in shown
