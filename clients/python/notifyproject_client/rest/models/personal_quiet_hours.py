from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PersonalQuietHours")


@_attrs_define
class PersonalQuietHours:
    """A daily span of local time in which a person is left alone: start included, end not.

    Attributes:
        enabled (bool):
        start (str | Unset):  Default: '22:00'.
        end (str | Unset):  Default: '07:00'.
        timezone (None | str | Unset):
    """

    enabled: bool
    start: str | Unset = "22:00"
    end: str | Unset = "07:00"
    timezone: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        enabled = self.enabled

        start = self.start

        end = self.end

        timezone: None | str | Unset
        if isinstance(self.timezone, Unset):
            timezone = UNSET
        else:
            timezone = self.timezone

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "enabled": enabled,
            }
        )
        if start is not UNSET:
            field_dict["start"] = start
        if end is not UNSET:
            field_dict["end"] = end
        if timezone is not UNSET:
            field_dict["timezone"] = timezone

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        enabled = d.pop("enabled")

        start = d.pop("start", UNSET)

        end = d.pop("end", UNSET)

        def _parse_timezone(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        timezone = _parse_timezone(d.pop("timezone", UNSET))

        personal_quiet_hours = cls(
            enabled=enabled,
            start=start,
            end=end,
            timezone=timezone,
        )

        return personal_quiet_hours
