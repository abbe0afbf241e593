from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="DeviceChanges")


@_attrs_define
class DeviceChanges:
    """What has changed of a device. What is left out stays; null forgets a value.

    Attributes:
        device_token (str | Unset): A new token makes a new device with all that is known of this one, which is switched
            off.
        app_version (None | str | Unset):
        device_model (None | str | Unset):
        os_version (None | str | Unset):
        language (None | str | Unset):
        timezone (None | str | Unset):
        is_active (bool | Unset): False, such as when its user signs out: nothing more is pushed to it. True: again.
    """

    device_token: str | Unset = UNSET
    app_version: None | str | Unset = UNSET
    device_model: None | str | Unset = UNSET
    os_version: None | str | Unset = UNSET
    language: None | str | Unset = UNSET
    timezone: None | str | Unset = UNSET
    is_active: bool | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        device_token = self.device_token

        app_version: None | str | Unset
        if isinstance(self.app_version, Unset):
            app_version = UNSET
        else:
            app_version = self.app_version

        device_model: None | str | Unset
        if isinstance(self.device_model, Unset):
            device_model = UNSET
        else:
            device_model = self.device_model

        os_version: None | str | Unset
        if isinstance(self.os_version, Unset):
            os_version = UNSET
        else:
            os_version = self.os_version

        language: None | str | Unset
        if isinstance(self.language, Unset):
            language = UNSET
        else:
            language = self.language

        timezone: None | str | Unset
        if isinstance(self.timezone, Unset):
            timezone = UNSET
        else:
            timezone = self.timezone

        is_active = self.is_active

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if device_token is not UNSET:
            field_dict["device_token"] = device_token
        if app_version is not UNSET:
            field_dict["app_version"] = app_version
        if device_model is not UNSET:
            field_dict["device_model"] = device_model
        if os_version is not UNSET:
            field_dict["os_version"] = os_version
        if language is not UNSET:
            field_dict["language"] = language
        if timezone is not UNSET:
            field_dict["timezone"] = timezone
        if is_active is not UNSET:
            field_dict["is_active"] = is_active

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        device_token = d.pop("device_token", UNSET)

        def _parse_app_version(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        app_version = _parse_app_version(d.pop("app_version", UNSET))

        def _parse_device_model(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        device_model = _parse_device_model(d.pop("device_model", UNSET))

        def _parse_os_version(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        os_version = _parse_os_version(d.pop("os_version", UNSET))

        def _parse_language(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        language = _parse_language(d.pop("language", UNSET))

        def _parse_timezone(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        timezone = _parse_timezone(d.pop("timezone", UNSET))

        is_active = d.pop("is_active", UNSET)

        device_changes = cls(
            device_token=device_token,
            app_version=app_version,
            device_model=device_model,
            os_version=os_version,
            language=language,
            timezone=timezone,
            is_active=is_active,
        )

        return device_changes
