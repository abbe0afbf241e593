"""What an answer about devices looks like: as they are stored, the token shortened."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from devices.models import DeactivationReason, Platform
from devices.presence import Presence
from devices.tokens import shortened


class DeviceQuietHoursView(msgspec.Struct, kw_only=True, frozen=True):
    """When a device is left alone."""

    enabled: bool = False
    start: str
    end: str
    timezone: str | None = None


class DevicePreferencesView(msgspec.Struct, kw_only=True, frozen=True):
    """What a device wants to be told."""

    enabled: bool = True
    categories: dict[str, bool] = {}
    quiet_hours: DeviceQuietHoursView | None = None


class DeviceStateView(msgspec.Struct, kw_only=True, frozen=True):
    """How a device was when its app last sent a heartbeat, within the last hour."""

    online: bool
    app_foreground: bool
    notification_enabled: bool
    last_active: datetime


class DeviceView(msgspec.Struct, kw_only=True, frozen=True):
    """A device and where it stands."""

    id: str
    user_id: str
    device_token: str
    """Its beginning and end."""
    platform: Platform
    app_version: str | None = None
    device_model: str | None = None
    os_version: str | None = None
    language: str | None = None
    timezone: str | None = None
    notification_preferences: DevicePreferencesView = DevicePreferencesView()
    is_active: bool
    """False: nothing is pushed to it until it registers again."""
    deactivated_at: datetime | None = None
    deactivation_reason: DeactivationReason | None = None
    last_accepted_at: datetime | None = None
    """When the push provider last took a message for it."""
    last_receipt_at: datetime | None = None
    """When the device itself last reported a message."""
    last_seen: datetime | None = None
    state: DeviceStateView | None = None
    """null: no heartbeat for an hour, or nobody can tell now."""
    created_at: datetime
    updated_at: datetime


class DeviceList(msgspec.Struct, kw_only=True, frozen=True):
    """Part of a list. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[DeviceView]
    next: str | None
    previous: str | None


def device_view(document: Mapping[str, Any], state: Presence | None) -> DeviceView:
    """Return a stored device as it is shown to apps."""
    shown = {name: document[name] for name in _PLAIN & document.keys()}
    return msgspec.convert(
        {
            **shown,
            "id": document["_id"],
            "device_token": shortened(document["device_token"]),
            "notification_preferences": document.get("notification_preferences") or {},
            "state": _state_view(state) if state is not None else None,
        },
        DeviceView,
    )


_COMPUTED = {"id", "device_token", "notification_preferences", "state"}
_PLAIN = set(DeviceView.__struct_fields__) - _COMPUTED


def _state_view(state: Presence) -> DeviceStateView:
    return DeviceStateView(
        online=state.online,
        app_foreground=state.app_foreground,
        notification_enabled=state.notification_enabled,
        last_active=state.last_active,
    )
