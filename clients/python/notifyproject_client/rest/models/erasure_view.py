from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ErasureView")


@_attrs_define
class ErasureView:
    """What was erased by this request.

    Attributes:
        user_id (str):
        is_complete (bool):
        notifications (int):
        devices (int):
        topics (int):
    """

    user_id: str
    is_complete: bool
    notifications: int
    devices: int
    topics: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        user_id = self.user_id

        is_complete = self.is_complete

        notifications = self.notifications

        devices = self.devices

        topics = self.topics

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "user_id": user_id,
                "is_complete": is_complete,
                "notifications": notifications,
                "devices": devices,
                "topics": topics,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        user_id = d.pop("user_id")

        is_complete = d.pop("is_complete")

        notifications = d.pop("notifications")

        devices = d.pop("devices")

        topics = d.pop("topics")

        erasure_view = cls(
            user_id=user_id,
            is_complete=is_complete,
            notifications=notifications,
            devices=devices,
            topics=topics,
        )

        erasure_view.additional_properties = d
        return erasure_view

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
