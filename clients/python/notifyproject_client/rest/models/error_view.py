from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.channel import Channel, check_channel

T = TypeVar("T", bound="ErrorView")


@_attrs_define
class ErrorView:
    """One line of the error history.

    Attributes:
        timestamp (datetime.datetime):
        channel (Channel): A way to reach a person.
        code (str):
        error (str):
    """

    timestamp: datetime.datetime
    channel: Channel
    code: str
    error: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        timestamp = self.timestamp.isoformat()

        channel: str = self.channel

        code = self.code

        error = self.error

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "timestamp": timestamp,
                "channel": channel,
                "code": code,
                "error": error,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        timestamp = datetime.datetime.fromisoformat(d.pop("timestamp"))

        channel = check_channel(d.pop("channel"))

        code = d.pop("code")

        error = d.pop("error")

        error_view = cls(
            timestamp=timestamp,
            channel=channel,
            code=code,
            error=error,
        )

        error_view.additional_properties = d
        return error_view

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
