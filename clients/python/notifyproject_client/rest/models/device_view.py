from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.deactivation_reason import DeactivationReason, check_deactivation_reason
from ..models.platform import Platform, check_platform
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.device_preferences_view import DevicePreferencesView
    from ..models.device_state_view import DeviceStateView


T = TypeVar("T", bound="DeviceView")


@_attrs_define
class DeviceView:
    """A device and where it stands.

    Attributes:
        id (str):
        user_id (str):
        device_token (str):
        platform (Platform): Where a device's app runs.
        is_active (bool):
        created_at (datetime.datetime):
        updated_at (datetime.datetime):
        app_version (None | str | Unset):
        device_model (None | str | Unset):
        os_version (None | str | Unset):
        language (None | str | Unset):
        timezone (None | str | Unset):
        notification_preferences (DevicePreferencesView | Unset): What a device wants to be told.
        deactivated_at (datetime.datetime | None | Unset):
        deactivation_reason (DeactivationReason | None | Unset):
        last_accepted_at (datetime.datetime | None | Unset):
        last_receipt_at (datetime.datetime | None | Unset):
        last_seen (datetime.datetime | None | Unset):
        state (DeviceStateView | None | Unset):
    """

    id: str
    user_id: str
    device_token: str
    platform: Platform
    is_active: bool
    created_at: datetime.datetime
    updated_at: datetime.datetime
    app_version: None | str | Unset = UNSET
    device_model: None | str | Unset = UNSET
    os_version: None | str | Unset = UNSET
    language: None | str | Unset = UNSET
    timezone: None | str | Unset = UNSET
    notification_preferences: DevicePreferencesView | Unset = UNSET
    deactivated_at: datetime.datetime | None | Unset = UNSET
    deactivation_reason: DeactivationReason | None | Unset = UNSET
    last_accepted_at: datetime.datetime | None | Unset = UNSET
    last_receipt_at: datetime.datetime | None | Unset = UNSET
    last_seen: datetime.datetime | None | Unset = UNSET
    state: DeviceStateView | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.device_state_view import DeviceStateView  # noqa: PLC0415

        id = self.id

        user_id = self.user_id

        device_token = self.device_token

        platform: str = self.platform

        is_active = self.is_active

        created_at = self.created_at.isoformat()

        updated_at = self.updated_at.isoformat()

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

        notification_preferences: dict[str, Any] | Unset = UNSET
        if not isinstance(self.notification_preferences, Unset):
            notification_preferences = self.notification_preferences.to_dict()

        deactivated_at: None | str | Unset
        if isinstance(self.deactivated_at, Unset):
            deactivated_at = UNSET
        elif isinstance(self.deactivated_at, datetime.datetime):
            deactivated_at = self.deactivated_at.isoformat()
        else:
            deactivated_at = self.deactivated_at

        deactivation_reason: None | str | Unset
        if isinstance(self.deactivation_reason, Unset):
            deactivation_reason = UNSET
        elif isinstance(self.deactivation_reason, str):
            deactivation_reason = self.deactivation_reason
        else:
            deactivation_reason = self.deactivation_reason

        last_accepted_at: None | str | Unset
        if isinstance(self.last_accepted_at, Unset):
            last_accepted_at = UNSET
        elif isinstance(self.last_accepted_at, datetime.datetime):
            last_accepted_at = self.last_accepted_at.isoformat()
        else:
            last_accepted_at = self.last_accepted_at

        last_receipt_at: None | str | Unset
        if isinstance(self.last_receipt_at, Unset):
            last_receipt_at = UNSET
        elif isinstance(self.last_receipt_at, datetime.datetime):
            last_receipt_at = self.last_receipt_at.isoformat()
        else:
            last_receipt_at = self.last_receipt_at

        last_seen: None | str | Unset
        if isinstance(self.last_seen, Unset):
            last_seen = UNSET
        elif isinstance(self.last_seen, datetime.datetime):
            last_seen = self.last_seen.isoformat()
        else:
            last_seen = self.last_seen

        state: dict[str, Any] | None | Unset
        if isinstance(self.state, Unset):
            state = UNSET
        elif isinstance(self.state, DeviceStateView):
            state = self.state.to_dict()
        else:
            state = self.state

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "user_id": user_id,
                "device_token": device_token,
                "platform": platform,
                "is_active": is_active,
                "created_at": created_at,
                "updated_at": updated_at,
            }
        )
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
        if notification_preferences is not UNSET:
            field_dict["notification_preferences"] = notification_preferences
        if deactivated_at is not UNSET:
            field_dict["deactivated_at"] = deactivated_at
        if deactivation_reason is not UNSET:
            field_dict["deactivation_reason"] = deactivation_reason
        if last_accepted_at is not UNSET:
            field_dict["last_accepted_at"] = last_accepted_at
        if last_receipt_at is not UNSET:
            field_dict["last_receipt_at"] = last_receipt_at
        if last_seen is not UNSET:
            field_dict["last_seen"] = last_seen
        if state is not UNSET:
            field_dict["state"] = state

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.device_preferences_view import DevicePreferencesView  # noqa: PLC0415
        from ..models.device_state_view import DeviceStateView  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        user_id = d.pop("user_id")

        device_token = d.pop("device_token")

        platform = check_platform(d.pop("platform"))

        is_active = d.pop("is_active")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        updated_at = datetime.datetime.fromisoformat(d.pop("updated_at"))

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

        _notification_preferences = d.pop("notification_preferences", UNSET)
        notification_preferences: DevicePreferencesView | Unset
        if isinstance(_notification_preferences, Unset):
            notification_preferences = UNSET
        else:
            notification_preferences = DevicePreferencesView.from_dict(_notification_preferences)

        def _parse_deactivated_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                deactivated_at_type_0 = datetime.datetime.fromisoformat(data)

                return deactivated_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        deactivated_at = _parse_deactivated_at(d.pop("deactivated_at", UNSET))

        def _parse_deactivation_reason(data: object) -> DeactivationReason | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                deactivation_reason_type_0 = check_deactivation_reason(data)

                return deactivation_reason_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DeactivationReason | None | Unset, data)

        deactivation_reason = _parse_deactivation_reason(d.pop("deactivation_reason", UNSET))

        def _parse_last_accepted_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_accepted_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_accepted_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        last_accepted_at = _parse_last_accepted_at(d.pop("last_accepted_at", UNSET))

        def _parse_last_receipt_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_receipt_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_receipt_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        last_receipt_at = _parse_last_receipt_at(d.pop("last_receipt_at", UNSET))

        def _parse_last_seen(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_seen_type_0 = datetime.datetime.fromisoformat(data)

                return last_seen_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        last_seen = _parse_last_seen(d.pop("last_seen", UNSET))

        def _parse_state(data: object) -> DeviceStateView | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                state_type_0 = DeviceStateView.from_dict(data)

                return state_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DeviceStateView | None | Unset, data)

        state = _parse_state(d.pop("state", UNSET))

        device_view = cls(
            id=id,
            user_id=user_id,
            device_token=device_token,
            platform=platform,
            is_active=is_active,
            created_at=created_at,
            updated_at=updated_at,
            app_version=app_version,
            device_model=device_model,
            os_version=os_version,
            language=language,
            timezone=timezone,
            notification_preferences=notification_preferences,
            deactivated_at=deactivated_at,
            deactivation_reason=deactivation_reason,
            last_accepted_at=last_accepted_at,
            last_receipt_at=last_receipt_at,
            last_seen=last_seen,
            state=state,
        )

        device_view.additional_properties = d
        return device_view

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
