from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.device_preferences_view_categories import (
        DevicePreferencesViewCategories,
    )
    from ..models.device_quiet_hours_view import DeviceQuietHoursView


T = TypeVar("T", bound="DevicePreferencesView")


@_attrs_define
class DevicePreferencesView:
    """What a device wants to be told.

    Attributes:
        enabled (bool | Unset):  Default: True.
        categories (DevicePreferencesViewCategories | Unset):
        quiet_hours (DeviceQuietHoursView | None | Unset):
    """

    enabled: bool | Unset = True
    categories: DevicePreferencesViewCategories | Unset = UNSET
    quiet_hours: DeviceQuietHoursView | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.device_quiet_hours_view import DeviceQuietHoursView  # noqa: PLC0415

        enabled = self.enabled

        categories: dict[str, Any] | Unset = UNSET
        if not isinstance(self.categories, Unset):
            categories = self.categories.to_dict()

        quiet_hours: dict[str, Any] | None | Unset
        if isinstance(self.quiet_hours, Unset):
            quiet_hours = UNSET
        elif isinstance(self.quiet_hours, DeviceQuietHoursView):
            quiet_hours = self.quiet_hours.to_dict()
        else:
            quiet_hours = self.quiet_hours

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if enabled is not UNSET:
            field_dict["enabled"] = enabled
        if categories is not UNSET:
            field_dict["categories"] = categories
        if quiet_hours is not UNSET:
            field_dict["quiet_hours"] = quiet_hours

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.device_preferences_view_categories import (
            DevicePreferencesViewCategories,  # noqa: PLC0415
        )
        from ..models.device_quiet_hours_view import DeviceQuietHoursView  # noqa: PLC0415

        d = dict(src_dict)
        enabled = d.pop("enabled", UNSET)

        _categories = d.pop("categories", UNSET)
        categories: DevicePreferencesViewCategories | Unset
        if isinstance(_categories, Unset):
            categories = UNSET
        else:
            categories = DevicePreferencesViewCategories.from_dict(_categories)

        def _parse_quiet_hours(data: object) -> DeviceQuietHoursView | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                quiet_hours_type_0 = DeviceQuietHoursView.from_dict(data)

                return quiet_hours_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DeviceQuietHoursView | None | Unset, data)

        quiet_hours = _parse_quiet_hours(d.pop("quiet_hours", UNSET))

        device_preferences_view = cls(
            enabled=enabled,
            categories=categories,
            quiet_hours=quiet_hours,
        )

        device_preferences_view.additional_properties = d
        return device_preferences_view

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
