from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.channel import Channel, check_channel
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.callback_outcome import CallbackOutcome


T = TypeVar("T", bound="CallbackEventData")


@_attrs_define
class CallbackEventData:
    """What an event is about. No address, no text and no variable is in it.

    Attributes:
        notification_id (str):
        notification_type (str):
        is_test (bool):
        status (str): Of the channel; of notification.completed, overall.
        external_id (None | str | Unset):
        entity_id (None | str | Unset):
        channel (Channel | None | Unset):
        attempt_count (int | None | Unset):
        failure_code (None | str | Unset):
        deliveries (list[CallbackOutcome] | None | Unset):
    """

    notification_id: str
    notification_type: str
    is_test: bool
    status: str
    external_id: None | str | Unset = UNSET
    entity_id: None | str | Unset = UNSET
    channel: Channel | None | Unset = UNSET
    attempt_count: int | None | Unset = UNSET
    failure_code: None | str | Unset = UNSET
    deliveries: list[CallbackOutcome] | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        notification_id = self.notification_id

        notification_type = self.notification_type

        is_test = self.is_test

        status = self.status

        external_id: None | str | Unset
        if isinstance(self.external_id, Unset):
            external_id = UNSET
        else:
            external_id = self.external_id

        entity_id: None | str | Unset
        if isinstance(self.entity_id, Unset):
            entity_id = UNSET
        else:
            entity_id = self.entity_id

        channel: None | str | Unset
        if isinstance(self.channel, Unset):
            channel = UNSET
        elif isinstance(self.channel, str):
            channel = self.channel
        else:
            channel = self.channel

        attempt_count: int | None | Unset
        if isinstance(self.attempt_count, Unset):
            attempt_count = UNSET
        else:
            attempt_count = self.attempt_count

        failure_code: None | str | Unset
        if isinstance(self.failure_code, Unset):
            failure_code = UNSET
        else:
            failure_code = self.failure_code

        deliveries: list[dict[str, Any]] | None | Unset
        if isinstance(self.deliveries, Unset):
            deliveries = UNSET
        elif isinstance(self.deliveries, list):
            deliveries = []
            for deliveries_type_0_item_data in self.deliveries:
                deliveries_type_0_item = deliveries_type_0_item_data.to_dict()
                deliveries.append(deliveries_type_0_item)

        else:
            deliveries = self.deliveries

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "notification_id": notification_id,
                "notification_type": notification_type,
                "is_test": is_test,
                "status": status,
            }
        )
        if external_id is not UNSET:
            field_dict["external_id"] = external_id
        if entity_id is not UNSET:
            field_dict["entity_id"] = entity_id
        if channel is not UNSET:
            field_dict["channel"] = channel
        if attempt_count is not UNSET:
            field_dict["attempt_count"] = attempt_count
        if failure_code is not UNSET:
            field_dict["failure_code"] = failure_code
        if deliveries is not UNSET:
            field_dict["deliveries"] = deliveries

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.callback_outcome import CallbackOutcome  # noqa: PLC0415

        d = dict(src_dict)
        notification_id = d.pop("notification_id")

        notification_type = d.pop("notification_type")

        is_test = d.pop("is_test")

        status = d.pop("status")

        def _parse_external_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        external_id = _parse_external_id(d.pop("external_id", UNSET))

        def _parse_entity_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        entity_id = _parse_entity_id(d.pop("entity_id", UNSET))

        def _parse_channel(data: object) -> Channel | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                channel_type_0 = check_channel(data)

                return channel_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Channel | None | Unset, data)

        channel = _parse_channel(d.pop("channel", UNSET))

        def _parse_attempt_count(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        attempt_count = _parse_attempt_count(d.pop("attempt_count", UNSET))

        def _parse_failure_code(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        failure_code = _parse_failure_code(d.pop("failure_code", UNSET))

        def _parse_deliveries(data: object) -> list[CallbackOutcome] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                deliveries_type_0 = []
                _deliveries_type_0 = data
                for deliveries_type_0_item_data in _deliveries_type_0:
                    deliveries_type_0_item = CallbackOutcome.from_dict(deliveries_type_0_item_data)

                    deliveries_type_0.append(deliveries_type_0_item)

                return deliveries_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[CallbackOutcome] | None | Unset, data)

        deliveries = _parse_deliveries(d.pop("deliveries", UNSET))

        callback_event_data = cls(
            notification_id=notification_id,
            notification_type=notification_type,
            is_test=is_test,
            status=status,
            external_id=external_id,
            entity_id=entity_id,
            channel=channel,
            attempt_count=attempt_count,
            failure_code=failure_code,
            deliveries=deliveries,
        )

        callback_event_data.additional_properties = d
        return callback_event_data

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
