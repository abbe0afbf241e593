"""The last reported presence of devices: a Valkey hash ``device:<id>:state``, kept for an hour.

It may be lost; without Valkey there is no presence.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from notifyproject.platform import valkey

LIFETIME = 3600
"""Seconds after the last heartbeat until the presence expires."""
_YES, _NO = b"1", b"0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """The state of a device at its last heartbeat."""

    online: bool
    app_foreground: bool
    notification_enabled: bool
    """False: notifications are disabled in the system settings."""
    last_active: datetime


def store(device_id: str, presence: Presence) -> bool:
    """Store a device's presence; return False if Valkey is unavailable."""
    fields: dict[Any, Any] = {
        "online": _encode_flag(presence.online),
        "app_foreground": _encode_flag(presence.app_foreground),
        "notification_enabled": _encode_flag(presence.notification_enabled),
        "last_active": str(valkey.to_milliseconds(presence.last_active)).encode(),
    }
    try:
        with valkey.connection() as client, client.pipeline(transaction=True) as pipeline:
            pipeline.hset(_key(device_id), mapping=fields)
            pipeline.expire(_key(device_id), LIFETIME)
            pipeline.execute()
    except valkey.Unavailable:
        return False
    return True


def read(device_ids: Iterable[str]) -> Mapping[str, Presence]:
    """Return the known presence of these devices; empty if Valkey is unavailable."""
    ids = list(device_ids)
    if not ids:
        return {}
    try:
        with valkey.connection() as client, client.pipeline(transaction=False) as pipeline:
            for device_id in ids:
                pipeline.hgetall(_key(device_id))
            responses = pipeline.execute()
    except valkey.Unavailable:
        return {}
    return {
        device_id: presence
        for device_id, stored in zip(ids, responses, strict=True)
        if (presence := _parse_presence(stored)) is not None
    }


def _key(device_id: str) -> str:
    return f"device:{device_id}:state"


def _encode_flag(value: bool) -> bytes:
    return _YES if value else _NO


def _parse_presence(stored: Mapping[bytes, bytes]) -> Presence | None:
    try:
        return Presence(
            online=stored[b"online"] == _YES,
            app_foreground=stored[b"app_foreground"] == _YES,
            notification_enabled=stored[b"notification_enabled"] == _YES,
            last_active=valkey.from_milliseconds(int(stored[b"last_active"])),
        )
    except (KeyError, ValueError):
        # Not stored, or incomplete by an older release.
        return None
