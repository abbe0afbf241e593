from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.personal_quiet_hours import PersonalQuietHours
    from ..models.preferences_view_preferences import PreferencesViewPreferences


T = TypeVar("T", bound="PreferencesView")


@_attrs_define
class PreferencesView:
    """What a person wants.

    Attributes:
        preferences (PreferencesViewPreferences):
        quiet_hours (None | PersonalQuietHours | Unset):
    """

    preferences: PreferencesViewPreferences
    quiet_hours: None | PersonalQuietHours | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.personal_quiet_hours import PersonalQuietHours  # noqa: PLC0415

        preferences = self.preferences.to_dict()

        quiet_hours: dict[str, Any] | None | Unset
        if isinstance(self.quiet_hours, Unset):
            quiet_hours = UNSET
        elif isinstance(self.quiet_hours, PersonalQuietHours):
            quiet_hours = self.quiet_hours.to_dict()
        else:
            quiet_hours = self.quiet_hours

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "preferences": preferences,
            }
        )
        if quiet_hours is not UNSET:
            field_dict["quiet_hours"] = quiet_hours

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.personal_quiet_hours import PersonalQuietHours  # noqa: PLC0415
        from ..models.preferences_view_preferences import PreferencesViewPreferences  # noqa: PLC0415

        d = dict(src_dict)
        preferences = PreferencesViewPreferences.from_dict(d.pop("preferences"))

        def _parse_quiet_hours(data: object) -> None | PersonalQuietHours | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                quiet_hours_type_0 = PersonalQuietHours.from_dict(data)

                return quiet_hours_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PersonalQuietHours | Unset, data)

        quiet_hours = _parse_quiet_hours(d.pop("quiet_hours", UNSET))

        preferences_view = cls(
            preferences=preferences,
            quiet_hours=quiet_hours,
        )

        preferences_view.additional_properties = d
        return preferences_view

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
