from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.device_preferences_request_categories import (
        DevicePreferencesRequestCategories,
    )
    from ..models.quiet_hours_request import QuietHoursRequest


T = TypeVar("T", bound="DevicePreferencesRequest")


@_attrs_define
class DevicePreferencesRequest:
    """What a device wants to be told. What is left out is as if it had never been told.

    Attributes:
        enabled (bool | Unset):  Default: True.
        categories (DevicePreferencesRequestCategories | Unset): By category or type; a type goes before its category.
        quiet_hours (None | QuietHoursRequest | Unset):
    """

    enabled: bool | Unset = True
    categories: DevicePreferencesRequestCategories | Unset = UNSET
    quiet_hours: None | QuietHoursRequest | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.quiet_hours_request import QuietHoursRequest  # noqa: PLC0415

        enabled = self.enabled

        categories: dict[str, Any] | Unset = UNSET
        if not isinstance(self.categories, Unset):
            categories = self.categories.to_dict()

        quiet_hours: dict[str, Any] | None | Unset
        if isinstance(self.quiet_hours, Unset):
            quiet_hours = UNSET
        elif isinstance(self.quiet_hours, QuietHoursRequest):
            quiet_hours = self.quiet_hours.to_dict()
        else:
            quiet_hours = self.quiet_hours

        field_dict: dict[str, Any] = {}

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
        from ..models.device_preferences_request_categories import (
            DevicePreferencesRequestCategories,  # noqa: PLC0415
        )
        from ..models.quiet_hours_request import QuietHoursRequest  # noqa: PLC0415

        d = dict(src_dict)
        enabled = d.pop("enabled", UNSET)

        _categories = d.pop("categories", UNSET)
        categories: DevicePreferencesRequestCategories | Unset
        if isinstance(_categories, Unset):
            categories = UNSET
        else:
            categories = DevicePreferencesRequestCategories.from_dict(_categories)

        def _parse_quiet_hours(data: object) -> None | QuietHoursRequest | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                quiet_hours_type_0 = QuietHoursRequest.from_dict(data)

                return quiet_hours_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | QuietHoursRequest | Unset, data)

        quiet_hours = _parse_quiet_hours(d.pop("quiet_hours", UNSET))

        device_preferences_request = cls(
            enabled=enabled,
            categories=categories,
            quiet_hours=quiet_hours,
        )

        return device_preferences_request
