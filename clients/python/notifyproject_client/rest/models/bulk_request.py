from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.notification_request import NotificationRequest


T = TypeVar("T", bound="BulkRequest")


@_attrs_define
class BulkRequest:
    """Many notifications to accept, each by itself.

    Attributes:
        notifications (list[NotificationRequest]):
    """

    notifications: list[NotificationRequest]

    def to_dict(self) -> dict[str, Any]:
        notifications = []
        for notifications_item_data in self.notifications:
            notifications_item = notifications_item_data.to_dict()
            notifications.append(notifications_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "notifications": notifications,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.notification_request import NotificationRequest  # noqa: PLC0415

        d = dict(src_dict)
        notifications = []
        _notifications = d.pop("notifications")
        for notifications_item_data in _notifications:
            notifications_item = NotificationRequest.from_dict(notifications_item_data)

            notifications.append(notifications_item)

        bulk_request = cls(
            notifications=notifications,
        )

        return bulk_request
