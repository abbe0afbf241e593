from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.event_type import EventType, check_event_type

if TYPE_CHECKING:
    from ..models.callback_event_data import CallbackEventData


T = TypeVar("T", bound="CallbackEvent")


@_attrs_define
class CallbackEvent:
    """The body of a callback; of one of the type test, the data hold a message alone.

    Attributes:
        type_ (EventType): What happened.
        timestamp (datetime.datetime): When it happened.
        data (CallbackEventData): What an event is about. No address, no text and no variable is in it.
    """

    type_: EventType
    timestamp: datetime.datetime
    data: CallbackEventData
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        type_: str = self.type_

        timestamp = self.timestamp.isoformat()

        data = self.data.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
                "timestamp": timestamp,
                "data": data,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.callback_event_data import CallbackEventData  # noqa: PLC0415

        d = dict(src_dict)
        type_ = check_event_type(d.pop("type"))

        timestamp = datetime.datetime.fromisoformat(d.pop("timestamp"))

        data = CallbackEventData.from_dict(d.pop("data"))

        callback_event = cls(
            type_=type_,
            timestamp=timestamp,
            data=data,
        )

        callback_event.additional_properties = d
        return callback_event

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
