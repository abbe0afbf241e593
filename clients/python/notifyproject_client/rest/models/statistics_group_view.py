from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="StatisticsGroupView")


@_attrs_define
class StatisticsGroupView:
    """The figures of one status, type or channel. By channel, deliveries are counted.

    Attributes:
        value (str):
        total (int):
        sent (int): A provider has taken it, or it is in the inbox, on a channel at least.
        failed (int):
        average_attempts (float): Tries for each, of all its channels together.
    """

    value: str
    total: int
    sent: int
    failed: int
    average_attempts: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        value = self.value

        total = self.total

        sent = self.sent

        failed = self.failed

        average_attempts = self.average_attempts

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "value": value,
                "total": total,
                "sent": sent,
                "failed": failed,
                "average_attempts": average_attempts,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        value = d.pop("value")

        total = d.pop("total")

        sent = d.pop("sent")

        failed = d.pop("failed")

        average_attempts = d.pop("average_attempts")

        statistics_group_view = cls(
            value=value,
            total=total,
            sent=sent,
            failed=failed,
            average_attempts=average_attempts,
        )

        statistics_group_view.additional_properties = d
        return statistics_group_view

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
