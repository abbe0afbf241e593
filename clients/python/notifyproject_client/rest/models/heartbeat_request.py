from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="HeartbeatRequest")


@_attrs_define
class HeartbeatRequest:
    """How a device is now. It is forgotten after an hour.

    Attributes:
        online (bool):
        app_foreground (bool):
        notification_enabled (bool):
    """

    online: bool
    app_foreground: bool
    notification_enabled: bool

    def to_dict(self) -> dict[str, Any]:
        online = self.online

        app_foreground = self.app_foreground

        notification_enabled = self.notification_enabled

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "online": online,
                "app_foreground": app_foreground,
                "notification_enabled": notification_enabled,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        online = d.pop("online")

        app_foreground = d.pop("app_foreground")

        notification_enabled = d.pop("notification_enabled")

        heartbeat_request = cls(
            online=online,
            app_foreground=app_foreground,
            notification_enabled=notification_enabled,
        )

        return heartbeat_request
