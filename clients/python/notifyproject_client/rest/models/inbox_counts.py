from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="InboxCounts")


@_attrs_define
class InboxCounts:
    """How much waits, without what is archived; 10,000 is the most that is counted.

    Attributes:
        unread (int):
        unseen (int): Of the unread, what was delivered since GET /inbox was last asked for its beginning.
    """

    unread: int
    unseen: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        unread = self.unread

        unseen = self.unseen

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "unread": unread,
                "unseen": unseen,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        unread = d.pop("unread")

        unseen = d.pop("unseen")

        inbox_counts = cls(
            unread=unread,
            unseen=unseen,
        )

        inbox_counts.additional_properties = d
        return inbox_counts

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
