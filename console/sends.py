"""Test sends: where one goes to, and the devices that a test of push offers."""

from typing import Any

from django.http import HttpRequest

from console.widgets.search import entered_address
from devices import queries as devices
from devices.documents import DEVICES
from devices.models import Platform
from domain.channels import Channel

from .texts.labels import PLATFORM_LABELS
from .widgets.search import pasted

ADDRESS_LENGTH = 320
TESTED_CHANNELS = tuple(channel for channel in Channel if not channel.is_inbox)
"""Channels of which a page can send a test."""
OFFERED = 20
"""Devices that a form offers: those seen last."""
_SHOWN = {"user_id": 1, "platform": 1, "device_model": 1}


def address_of_test(request: HttpRequest, *, channel: Channel) -> str:
    """Return where a test goes to: for push, the newest active device of an entered user ID."""
    entered = request.POST.get("address", "")
    if (kind := channel.spec.address) is not None:
        return entered_address(kind, entered)[:ADDRESS_LENGTH]
    text = pasted(entered)[:ADDRESS_LENGTH]
    if channel.has_devices and text:
        known = DEVICES().find_one({"_id": text}, {"_id": 1})
        own = () if known else devices.page(user_id=text, limit=devices.MAX_PAGE).documents
        return next((str(device["_id"]) for device in own if device["is_active"]), text)
    return text


def offered_devices(request: HttpRequest) -> list[tuple[str, str]]:
    """Return ID and label of the devices seen last, to users who may see devices."""
    if not request.user.has_perm("devices.view_device"):
        return []
    found = DEVICES().find({"is_active": True}, _SHOWN).sort("last_seen", -1)
    return [(device["_id"], _label(device)) for device in found.limit(OFFERED)]


def _label(device: Any) -> str:
    model = device.get("device_model") or PLATFORM_LABELS[Platform(device["platform"])]
    return f"{model}, {device['user_id']}"
