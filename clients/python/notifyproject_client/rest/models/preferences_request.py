from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.personal_quiet_hours import PersonalQuietHours
    from ..models.preferences_request_preferences import PreferencesRequestPreferences


T = TypeVar("T", bound="PreferencesRequest")


@_attrs_define
class PreferencesRequest:
    """What a person wants. What is left out is as if it had never been told.

    Attributes:
        preferences (PreferencesRequestPreferences | Unset): By category or type; a type goes before its category.
        quiet_hours (None | PersonalQuietHours | Unset):
    """

    preferences: PreferencesRequestPreferences | Unset = UNSET
    quiet_hours: None | PersonalQuietHours | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.personal_quiet_hours import PersonalQuietHours  # noqa: PLC0415

        preferences: dict[str, Any] | Unset = UNSET
        if not isinstance(self.preferences, Unset):
            preferences = self.preferences.to_dict()

        quiet_hours: dict[str, Any] | None | Unset
        if isinstance(self.quiet_hours, Unset):
            quiet_hours = UNSET
        elif isinstance(self.quiet_hours, PersonalQuietHours):
            quiet_hours = self.quiet_hours.to_dict()
        else:
            quiet_hours = self.quiet_hours

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if preferences is not UNSET:
            field_dict["preferences"] = preferences
        if quiet_hours is not UNSET:
            field_dict["quiet_hours"] = quiet_hours

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.personal_quiet_hours import PersonalQuietHours  # noqa: PLC0415
        from ..models.preferences_request_preferences import (
            PreferencesRequestPreferences,  # noqa: PLC0415
        )

        d = dict(src_dict)
        _preferences = d.pop("preferences", UNSET)
        preferences: PreferencesRequestPreferences | Unset
        if isinstance(_preferences, Unset):
            preferences = UNSET
        else:
            preferences = PreferencesRequestPreferences.from_dict(_preferences)

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

        preferences_request = cls(
            preferences=preferences,
            quiet_hours=quiet_hours,
        )

        return preferences_request
