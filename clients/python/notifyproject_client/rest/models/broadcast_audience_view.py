from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="BroadcastAudienceView")


@_attrs_define
class BroadcastAudienceView:
    """Whom it is for: one of these.

    Attributes:
        topic (None | str | Unset):
        user_ids (bool | Unset): People named one by one; not repeated here. Default: False.
        all_ (bool | Unset):  Default: False.
    """

    topic: None | str | Unset = UNSET
    user_ids: bool | Unset = False
    all_: bool | Unset = False
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        topic: None | str | Unset
        if isinstance(self.topic, Unset):
            topic = UNSET
        else:
            topic = self.topic

        user_ids = self.user_ids

        all_ = self.all_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if topic is not UNSET:
            field_dict["topic"] = topic
        if user_ids is not UNSET:
            field_dict["user_ids"] = user_ids
        if all_ is not UNSET:
            field_dict["all"] = all_

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_topic(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        topic = _parse_topic(d.pop("topic", UNSET))

        user_ids = d.pop("user_ids", UNSET)

        all_ = d.pop("all", UNSET)

        broadcast_audience_view = cls(
            topic=topic,
            user_ids=user_ids,
            all_=all_,
        )

        broadcast_audience_view.additional_properties = d
        return broadcast_audience_view

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
