from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="DeviceStateView")


@_attrs_define
class DeviceStateView:
    """How a device was when its app last sent a heartbeat, within the last hour.

    Attributes:
        online (bool):
        app_foreground (bool):
        notification_enabled (bool):
        last_active (datetime.datetime):
    """

    online: bool
    app_foreground: bool
    notification_enabled: bool
    last_active: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        online = self.online

        app_foreground = self.app_foreground

        notification_enabled = self.notification_enabled

        last_active = self.last_active.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "online": online,
                "app_foreground": app_foreground,
                "notification_enabled": notification_enabled,
                "last_active": last_active,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        online = d.pop("online")

        app_foreground = d.pop("app_foreground")

        notification_enabled = d.pop("notification_enabled")

        last_active = datetime.datetime.fromisoformat(d.pop("last_active"))

        device_state_view = cls(
            online=online,
            app_foreground=app_foreground,
            notification_enabled=notification_enabled,
            last_active=last_active,
        )

        device_state_view.additional_properties = d
        return device_state_view

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
