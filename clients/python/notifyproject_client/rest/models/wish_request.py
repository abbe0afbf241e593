from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="WishRequest")


@_attrs_define
class WishRequest:
    """What a person wants of a type or category. What is left out is not wished for.

    Attributes:
        muted (bool | None | Unset):
        channels (list[str] | None | Unset):
        muted_channels (list[str] | None | Unset):
        notify_before (int | None | Unset):
    """

    muted: bool | None | Unset = UNSET
    channels: list[str] | None | Unset = UNSET
    muted_channels: list[str] | None | Unset = UNSET
    notify_before: int | None | Unset = UNSET

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
            channels = self.channels

        else:
            channels = self.channels

        muted_channels: list[str] | None | Unset
        if isinstance(self.muted_channels, Unset):
            muted_channels = UNSET
        elif isinstance(self.muted_channels, list):
            muted_channels = self.muted_channels

        else:
            muted_channels = self.muted_channels

        notify_before: int | None | Unset
        if isinstance(self.notify_before, Unset):
            notify_before = UNSET
        else:
            notify_before = self.notify_before

        field_dict: dict[str, Any] = {}

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

        def _parse_channels(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                channels_type_0 = cast(list[str], data)

                return channels_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        channels = _parse_channels(d.pop("channels", UNSET))

        def _parse_muted_channels(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                muted_channels_type_0 = cast(list[str], data)

                return muted_channels_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        muted_channels = _parse_muted_channels(d.pop("muted_channels", UNSET))

        def _parse_notify_before(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        notify_before = _parse_notify_before(d.pop("notify_before", UNSET))

        wish_request = cls(
            muted=muted,
            channels=channels,
            muted_channels=muted_channels,
            notify_before=notify_before,
        )

        return wish_request
