from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.channel import Channel, check_channel
from ..models.suppression_reason import SuppressionReason, check_suppression_reason
from ..types import UNSET, Unset

T = TypeVar("T", bound="SuppressionView")


@_attrs_define
class SuppressionView:
    """A reason why an address gets nothing more on a channel. There may be several for one.

    Attributes:
        channel (Channel): A way to reach a person.
        reason (SuppressionReason): Why nothing more goes to an address.
        source (str):
        marketing_only (bool):
        created_at (datetime.datetime):
        address (None | str | Unset):
        expires_at (datetime.datetime | None | Unset):
    """

    channel: Channel
    reason: SuppressionReason
    source: str
    marketing_only: bool
    created_at: datetime.datetime
    address: None | str | Unset = UNSET
    expires_at: datetime.datetime | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        channel: str = self.channel

        reason: str = self.reason

        source = self.source

        marketing_only = self.marketing_only

        created_at = self.created_at.isoformat()

        address: None | str | Unset
        if isinstance(self.address, Unset):
            address = UNSET
        else:
            address = self.address

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "channel": channel,
                "reason": reason,
                "source": source,
                "marketing_only": marketing_only,
                "created_at": created_at,
            }
        )
        if address is not UNSET:
            field_dict["address"] = address
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        channel = check_channel(d.pop("channel"))

        reason = check_suppression_reason(d.pop("reason"))

        source = d.pop("source")

        marketing_only = d.pop("marketing_only")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_address(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        address = _parse_address(d.pop("address", UNSET))

        def _parse_expires_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        expires_at = _parse_expires_at(d.pop("expires_at", UNSET))

        suppression_view = cls(
            channel=channel,
            reason=reason,
            source=source,
            marketing_only=marketing_only,
            created_at=created_at,
            address=address,
            expires_at=expires_at,
        )

        suppression_view.additional_properties = d
        return suppression_view

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
