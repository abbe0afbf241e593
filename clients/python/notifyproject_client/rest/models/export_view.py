from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.attempt_view import AttemptView
    from ..models.device_view import DeviceView
    from ..models.notification_view import NotificationView
    from ..models.person_view import PersonView
    from ..models.preferences_view import PreferencesView
    from ..models.suppression_view import SuppressionView


T = TypeVar("T", bound="ExportView")


@_attrs_define
class ExportView:
    """Everything that is held about a person. What is secret in a notification is masked.

    Attributes:
        user_id (str):
        exported_at (datetime.datetime):
        of_all_apps (bool):
        devices (list[DeviceView]):
        topics (list[str]):
        suppressions (list[SuppressionView]):
        notifications (list[NotificationView]):
        attempts (list[AttemptView]):
        person (None | PersonView | Unset):
        preferences (None | PreferencesView | Unset):
        last_inbound_at (datetime.datetime | None | Unset):
        next_ (None | str | Unset):
    """

    user_id: str
    exported_at: datetime.datetime
    of_all_apps: bool
    devices: list[DeviceView]
    topics: list[str]
    suppressions: list[SuppressionView]
    notifications: list[NotificationView]
    attempts: list[AttemptView]
    person: None | PersonView | Unset = UNSET
    preferences: None | PreferencesView | Unset = UNSET
    last_inbound_at: datetime.datetime | None | Unset = UNSET
    next_: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.person_view import PersonView  # noqa: PLC0415
        from ..models.preferences_view import PreferencesView  # noqa: PLC0415

        user_id = self.user_id

        exported_at = self.exported_at.isoformat()

        of_all_apps = self.of_all_apps

        devices = []
        for devices_item_data in self.devices:
            devices_item = devices_item_data.to_dict()
            devices.append(devices_item)

        topics = self.topics

        suppressions = []
        for suppressions_item_data in self.suppressions:
            suppressions_item = suppressions_item_data.to_dict()
            suppressions.append(suppressions_item)

        notifications = []
        for notifications_item_data in self.notifications:
            notifications_item = notifications_item_data.to_dict()
            notifications.append(notifications_item)

        attempts = []
        for attempts_item_data in self.attempts:
            attempts_item = attempts_item_data.to_dict()
            attempts.append(attempts_item)

        person: dict[str, Any] | None | Unset
        if isinstance(self.person, Unset):
            person = UNSET
        elif isinstance(self.person, PersonView):
            person = self.person.to_dict()
        else:
            person = self.person

        preferences: dict[str, Any] | None | Unset
        if isinstance(self.preferences, Unset):
            preferences = UNSET
        elif isinstance(self.preferences, PreferencesView):
            preferences = self.preferences.to_dict()
        else:
            preferences = self.preferences

        last_inbound_at: None | str | Unset
        if isinstance(self.last_inbound_at, Unset):
            last_inbound_at = UNSET
        elif isinstance(self.last_inbound_at, datetime.datetime):
            last_inbound_at = self.last_inbound_at.isoformat()
        else:
            last_inbound_at = self.last_inbound_at

        next_: None | str | Unset
        if isinstance(self.next_, Unset):
            next_ = UNSET
        else:
            next_ = self.next_

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "user_id": user_id,
                "exported_at": exported_at,
                "of_all_apps": of_all_apps,
                "devices": devices,
                "topics": topics,
                "suppressions": suppressions,
                "notifications": notifications,
                "attempts": attempts,
            }
        )
        if person is not UNSET:
            field_dict["person"] = person
        if preferences is not UNSET:
            field_dict["preferences"] = preferences
        if last_inbound_at is not UNSET:
            field_dict["last_inbound_at"] = last_inbound_at
        if next_ is not UNSET:
            field_dict["next"] = next_

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.attempt_view import AttemptView  # noqa: PLC0415
        from ..models.device_view import DeviceView  # noqa: PLC0415
        from ..models.notification_view import NotificationView  # noqa: PLC0415
        from ..models.person_view import PersonView  # noqa: PLC0415
        from ..models.preferences_view import PreferencesView  # noqa: PLC0415
        from ..models.suppression_view import SuppressionView  # noqa: PLC0415

        d = dict(src_dict)
        user_id = d.pop("user_id")

        exported_at = datetime.datetime.fromisoformat(d.pop("exported_at"))

        of_all_apps = d.pop("of_all_apps")

        devices = []
        _devices = d.pop("devices")
        for devices_item_data in _devices:
            devices_item = DeviceView.from_dict(devices_item_data)

            devices.append(devices_item)

        topics = cast(list[str], d.pop("topics"))

        suppressions = []
        _suppressions = d.pop("suppressions")
        for suppressions_item_data in _suppressions:
            suppressions_item = SuppressionView.from_dict(suppressions_item_data)

            suppressions.append(suppressions_item)

        notifications = []
        _notifications = d.pop("notifications")
        for notifications_item_data in _notifications:
            notifications_item = NotificationView.from_dict(notifications_item_data)

            notifications.append(notifications_item)

        attempts = []
        _attempts = d.pop("attempts")
        for attempts_item_data in _attempts:
            attempts_item = AttemptView.from_dict(attempts_item_data)

            attempts.append(attempts_item)

        def _parse_person(data: object) -> None | PersonView | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                person_type_0 = PersonView.from_dict(data)

                return person_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PersonView | Unset, data)

        person = _parse_person(d.pop("person", UNSET))

        def _parse_preferences(data: object) -> None | PreferencesView | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                preferences_type_0 = PreferencesView.from_dict(data)

                return preferences_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PreferencesView | Unset, data)

        preferences = _parse_preferences(d.pop("preferences", UNSET))

        def _parse_last_inbound_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_inbound_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_inbound_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        last_inbound_at = _parse_last_inbound_at(d.pop("last_inbound_at", UNSET))

        def _parse_next_(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        next_ = _parse_next_(d.pop("next", UNSET))

        export_view = cls(
            user_id=user_id,
            exported_at=exported_at,
            of_all_apps=of_all_apps,
            devices=devices,
            topics=topics,
            suppressions=suppressions,
            notifications=notifications,
            attempts=attempts,
            person=person,
            preferences=preferences,
            last_inbound_at=last_inbound_at,
            next_=next_,
        )

        export_view.additional_properties = d
        return export_view

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
