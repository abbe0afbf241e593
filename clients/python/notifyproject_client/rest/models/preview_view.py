from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.category import Category, check_category
from ..models.priority import Priority, check_priority
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.channel_preview_view import ChannelPreviewView


T = TypeVar("T", bound="PreviewView")


@_attrs_define
class PreviewView:
    """What would be sent. Nothing is stored, and nothing goes out.

    Attributes:
        type_ (str):
        category (Category): What a notification is for; marketing needs the recipient's consent.
        priority (Priority): How urgent a notification is; each has queues of its own, served strictly in order.
        channels (list[ChannelPreviewView]):
        template_id (None | str | Unset):
        template_version (int | None | Unset):
        locale (None | str | Unset):
        scheduled_at (datetime.datetime | None | Unset):
        adjusted (bool | Unset):  Default: False.
        expires_at (datetime.datetime | None | Unset):
    """

    type_: str
    category: Category
    priority: Priority
    channels: list[ChannelPreviewView]
    template_id: None | str | Unset = UNSET
    template_version: int | None | Unset = UNSET
    locale: None | str | Unset = UNSET
    scheduled_at: datetime.datetime | None | Unset = UNSET
    adjusted: bool | Unset = False
    expires_at: datetime.datetime | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_

        category: str = self.category

        priority: str = self.priority

        channels = []
        for channels_item_data in self.channels:
            channels_item = channels_item_data.to_dict()
            channels.append(channels_item)

        template_id: None | str | Unset
        if isinstance(self.template_id, Unset):
            template_id = UNSET
        else:
            template_id = self.template_id

        template_version: int | None | Unset
        if isinstance(self.template_version, Unset):
            template_version = UNSET
        else:
            template_version = self.template_version

        locale: None | str | Unset
        if isinstance(self.locale, Unset):
            locale = UNSET
        else:
            locale = self.locale

        scheduled_at: None | str | Unset
        if isinstance(self.scheduled_at, Unset):
            scheduled_at = UNSET
        elif isinstance(self.scheduled_at, datetime.datetime):
            scheduled_at = self.scheduled_at.isoformat()
        else:
            scheduled_at = self.scheduled_at

        adjusted = self.adjusted

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
                "category": category,
                "priority": priority,
                "channels": channels,
            }
        )
        if template_id is not UNSET:
            field_dict["template_id"] = template_id
        if template_version is not UNSET:
            field_dict["template_version"] = template_version
        if locale is not UNSET:
            field_dict["locale"] = locale
        if scheduled_at is not UNSET:
            field_dict["scheduled_at"] = scheduled_at
        if adjusted is not UNSET:
            field_dict["adjusted"] = adjusted
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.channel_preview_view import ChannelPreviewView  # noqa: PLC0415

        d = dict(src_dict)
        type_ = d.pop("type")

        category = check_category(d.pop("category"))

        priority = check_priority(d.pop("priority"))

        channels = []
        _channels = d.pop("channels")
        for channels_item_data in _channels:
            channels_item = ChannelPreviewView.from_dict(channels_item_data)

            channels.append(channels_item)

        def _parse_template_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        template_id = _parse_template_id(d.pop("template_id", UNSET))

        def _parse_template_version(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        template_version = _parse_template_version(d.pop("template_version", UNSET))

        def _parse_locale(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        locale = _parse_locale(d.pop("locale", UNSET))

        def _parse_scheduled_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                scheduled_at_type_0 = datetime.datetime.fromisoformat(data)

                return scheduled_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        scheduled_at = _parse_scheduled_at(d.pop("scheduled_at", UNSET))

        adjusted = d.pop("adjusted", UNSET)

        def _parse_expires_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        expires_at = _parse_expires_at(d.pop("expires_at", UNSET))

        preview_view = cls(
            type_=type_,
            category=category,
            priority=priority,
            channels=channels,
            template_id=template_id,
            template_version=template_version,
            locale=locale,
            scheduled_at=scheduled_at,
            adjusted=adjusted,
            expires_at=expires_at,
        )

        preview_view.additional_properties = d
        return preview_view

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
