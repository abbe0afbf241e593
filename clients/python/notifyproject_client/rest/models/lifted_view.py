from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.suppression_reason import SuppressionReason, check_suppression_reason

T = TypeVar("T", bound="LiftedView")


@_attrs_define
class LiftedView:
    """What no longer holds an address back, and what still does.

    Attributes:
        lifted (list[SuppressionReason]):
        standing (list[SuppressionReason]):
    """

    lifted: list[SuppressionReason]
    standing: list[SuppressionReason]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        lifted = []
        for lifted_item_data in self.lifted:
            lifted_item: str = lifted_item_data
            lifted.append(lifted_item)

        standing = []
        for standing_item_data in self.standing:
            standing_item: str = standing_item_data
            standing.append(standing_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "lifted": lifted,
                "standing": standing,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        lifted = []
        _lifted = d.pop("lifted")
        for lifted_item_data in _lifted:
            lifted_item = check_suppression_reason(lifted_item_data)

            lifted.append(lifted_item)

        standing = []
        _standing = d.pop("standing")
        for standing_item_data in _standing:
            standing_item = check_suppression_reason(standing_item_data)

            standing.append(standing_item)

        lifted_view = cls(
            lifted=lifted,
            standing=standing,
        )

        lifted_view.additional_properties = d
        return lifted_view

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
