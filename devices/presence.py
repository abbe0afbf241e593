"""What a device's app last said of itself: kept for an hour in Valkey, and lost without harm.

``device:<id>:state`` is a hash. Nothing waits for it: without Valkey there is no state.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from notifyproject.platform import valkey

LIFETIME = 3600
"""Seconds without a heartbeat after which nothing is known of a device."""
_YES, _NO = b"1", b"0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """How a device was when its app last sent a heartbeat."""

    online: bool
    app_foreground: bool
    notification_enabled: bool
    """False: its user has switched notifications off in the system's settings."""
    last_active: datetime


def store(device_id: str, presence: Presence) -> bool:
    """Keep a device's state for an hour; return False if Valkey is away."""
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
    """Return what is known of these devices; nothing if Valkey is away."""
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
        # Nothing is stored, or an older release stored less.
        return None
