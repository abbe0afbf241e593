from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.channel import Channel, check_channel
from ..types import UNSET, Unset

T = TypeVar("T", bound="WishView")


@_attrs_define
class WishView:
    """What a person wants of a type or category; null: nothing was told.

    Attributes:
        muted (bool | None | Unset):
        channels (list[Channel] | None | Unset):
        muted_channels (list[Channel] | None | Unset):
        notify_before (int | None | Unset):
    """

    muted: bool | None | Unset = UNSET
    channels: list[Channel] | None | Unset = UNSET
    muted_channels: list[Channel] | None | Unset = UNSET
    notify_before: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        muted: bool | None | Unset
        if isinstance(self.muted, Unset):
            muted = UNSET
        else:
            muted = self.muted

        channels: list[str] | None | Unset
        if isinstance(self.channels, Unset):
            channels = UNSET
        elif isinstance(self.channels, list):
            channels = []
            for channels_type_0_item_data in self.channels:
                channels_type_0_item: str = channels_type_0_item_data
                channels.append(channels_type_0_item)

        else:
            channels = self.channels

        muted_channels: list[str] | None | Unset
        if isinstance(self.muted_channels, Unset):
            muted_channels = UNSET
        elif isinstance(self.muted_channels, list):
            muted_channels = []
            for muted_channels_type_0_item_data in self.muted_channels:
                muted_channels_type_0_item: str = muted_channels_type_0_item_data
                muted_channels.append(muted_channels_type_0_item)

        else:
            muted_channels = self.muted_channels

        notify_before: int | None | Unset
        if isinstance(self.notify_before, Unset):
            notify_before = UNSET
        else:
            notify_before = self.notify_before

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if muted is not UNSET:
            field_dict["muted"] = muted
        if channels is not UNSET:
            field_dict["channels"] = channels
        if muted_channels is not UNSET:
            field_dict["muted_channels"] = muted_channels
        if notify_before is not UNSET:
            field_dict["notify_before"] = notify_before

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_muted(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        muted = _parse_muted(d.pop("muted", UNSET))

        def _parse_channels(data: object) -> list[Channel] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                channels_type_0 = []
                _channels_type_0 = data
                for channels_type_0_item_data in _channels_type_0:
                    channels_type_0_item = check_channel(channels_type_0_item_data)

                    channels_type_0.append(channels_type_0_item)

                return channels_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Channel] | None | Unset, data)

        channels = _parse_channels(d.pop("channels", UNSET))

        def _parse_muted_channels(data: object) -> list[Channel] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                muted_channels_type_0 = []
                _muted_channels_type_0 = data
                for muted_channels_type_0_item_data in _muted_channels_type_0:
                    muted_channels_type_0_item = check_channel(muted_channels_type_0_item_data)

                    muted_channels_type_0.append(muted_channels_type_0_item)

                return muted_channels_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Channel] | None | Unset, data)

        muted_channels = _parse_muted_channels(d.pop("muted_channels", UNSET))

        def _parse_notify_before(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        notify_before = _parse_notify_before(d.pop("notify_before", UNSET))

        wish_view = cls(
            muted=muted,
            channels=channels,
            muted_channels=muted_channels,
            notify_before=notify_before,
        )

        wish_view.additional_properties = d
        return wish_view

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
