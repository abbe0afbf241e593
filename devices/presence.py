"""Stores devices' last reported presence in Valkey, as ``device:<id>:presence``. It may be lost."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from notifyproject.platform import valkey

LIFETIME = 3600  # Seconds after the last heartbeat until the presence expires
_FLAGS = ("online", "app_foreground", "notification_enabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """What a device reported at its last heartbeat."""

    online: bool
    app_foreground: bool
    notification_enabled: bool  # False: notifications are disabled in the system settings
    last_active: datetime


def store(device_id: str, presence: Presence) -> bool:
    """Store a device's presence. Return False if Valkey is unavailable."""
    fields: dict[Any, Any] = {name: int(getattr(presence, name)) for name in _FLAGS}
    fields["last_active"] = valkey.to_milliseconds(presence.last_active)
    try:
        with valkey.connection() as client, client.pipeline(transaction=True) as pipeline:
            pipeline.hset(_key(device_id), mapping=fields)
            pipeline.expire(_key(device_id), LIFETIME)
            pipeline.execute()
    except valkey.Unavailable:
        return False
    return True


def read(device_ids: Iterable[str]) -> Mapping[str, Presence]:
    """Return the known presence of these devices. Empty if Valkey is unavailable."""
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
    return f"device:{device_id}:presence"


def _parse_presence(stored: Mapping[bytes, bytes]) -> Presence | None:
    last_active = valkey.stored_instant(stored.get(b"last_active"))
    if last_active is None:
        return None
    flags = {name: stored[name.encode()] == b"1" for name in _FLAGS}
    return Presence(**flags, last_active=last_active)
