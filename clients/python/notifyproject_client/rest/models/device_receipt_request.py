from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.device_receipt_request_event import (
    DeviceReceiptRequestEvent,
    check_device_receipt_request_event,
)

T = TypeVar("T", bound="DeviceReceiptRequest")


@_attrs_define
class DeviceReceiptRequest:
    """What became of a push at a device.

    Attributes:
        notification_id (str): 24 hex digits: notification_id in the data of the push.
        event (DeviceReceiptRequestEvent): delivered or opened.
    """

    notification_id: str
    event: DeviceReceiptRequestEvent

    def to_dict(self) -> dict[str, Any]:
        notification_id = self.notification_id

        event: str = self.event

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "notification_id": notification_id,
                "event": event,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        notification_id = d.pop("notification_id")

        event = check_device_receipt_request_event(d.pop("event"))

        device_receipt_request = cls(
            notification_id=notification_id,
            event=event,
        )

        return device_receipt_request
