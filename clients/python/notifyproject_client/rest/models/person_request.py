from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.person_request_attributes import PersonRequestAttributes
    from ..models.personal_quiet_hours import PersonalQuietHours


T = TypeVar("T", bound="PersonRequest")


@_attrs_define
class PersonRequest:
    """A person to register. What is left out is not known afterwards, but for quiet hours.

    Attributes:
        email (None | str | Unset):
        phone (None | str | Unset):
        name (None | str | Unset):
        locale (None | str | Unset):
        timezone (None | str | Unset):
        attributes (PersonRequestAttributes | Unset): Whatever else the app wants to keep: at most 16 KB of JSON.
        quiet_hours (None | PersonalQuietHours | Unset): Left out: as they are; null: none. Also part of the
            preferences.
    """

    email: None | str | Unset = UNSET
    phone: None | str | Unset = UNSET
    name: None | str | Unset = UNSET
    locale: None | str | Unset = UNSET
    timezone: None | str | Unset = UNSET
    attributes: PersonRequestAttributes | Unset = UNSET
    quiet_hours: None | PersonalQuietHours | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.personal_quiet_hours import PersonalQuietHours  # noqa: PLC0415

        email: None | str | Unset
        if isinstance(self.email, Unset):
            email = UNSET
        else:
            email = self.email

        phone: None | str | Unset
        if isinstance(self.phone, Unset):
            phone = UNSET
        else:
            phone = self.phone

        name: None | str | Unset
        if isinstance(self.name, Unset):
            name = UNSET
        else:
            name = self.name

        locale: None | str | Unset
        if isinstance(self.locale, Unset):
            locale = UNSET
        else:
            locale = self.locale

        timezone: None | str | Unset
        if isinstance(self.timezone, Unset):
            timezone = UNSET
        else:
            timezone = self.timezone

        attributes: dict[str, Any] | Unset = UNSET
        if not isinstance(self.attributes, Unset):
            attributes = self.attributes.to_dict()

        quiet_hours: dict[str, Any] | None | Unset
        if isinstance(self.quiet_hours, Unset):
            quiet_hours = UNSET
        elif isinstance(self.quiet_hours, PersonalQuietHours):
            quiet_hours = self.quiet_hours.to_dict()
        else:
            quiet_hours = self.quiet_hours

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if email is not UNSET:
            field_dict["email"] = email
        if phone is not UNSET:
            field_dict["phone"] = phone
        if name is not UNSET:
            field_dict["name"] = name
        if locale is not UNSET:
            field_dict["locale"] = locale
        if timezone is not UNSET:
            field_dict["timezone"] = timezone
        if attributes is not UNSET:
            field_dict["attributes"] = attributes
        if quiet_hours is not UNSET:
            field_dict["quiet_hours"] = quiet_hours

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.person_request_attributes import PersonRequestAttributes  # noqa: PLC0415
        from ..models.personal_quiet_hours import PersonalQuietHours  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_email(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        email = _parse_email(d.pop("email", UNSET))

        def _parse_phone(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        phone = _parse_phone(d.pop("phone", UNSET))

        def _parse_name(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        name = _parse_name(d.pop("name", UNSET))

        def _parse_locale(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        locale = _parse_locale(d.pop("locale", UNSET))

        def _parse_timezone(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        timezone = _parse_timezone(d.pop("timezone", UNSET))

        _attributes = d.pop("attributes", UNSET)
        attributes: PersonRequestAttributes | Unset
        if isinstance(_attributes, Unset):
            attributes = UNSET
        else:
            attributes = PersonRequestAttributes.from_dict(_attributes)

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

        person_request = cls(
            email=email,
            phone=phone,
            name=name,
            locale=locale,
            timezone=timezone,
            attributes=attributes,
            quiet_hours=quiet_hours,
        )

        return person_request
