from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="LocalTime")


@_attrs_define
class LocalTime:
    """A time on the recipient's wall clock.

    One that a clock change skips becomes the first instant after it, one that happens twice the
    first.

        Attributes:
            at (str):
            timezone (None | str | Unset):
    """

    at: str
    timezone: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        at = self.at

        timezone: None | str | Unset
        if isinstance(self.timezone, Unset):
            timezone = UNSET
        else:
            timezone = self.timezone

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "at": at,
            }
        )
        if timezone is not UNSET:
            field_dict["timezone"] = timezone

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = d.pop("at")

        def _parse_timezone(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        timezone = _parse_timezone(d.pop("timezone", UNSET))

        local_time = cls(
            at=at,
            timezone=timezone,
        )

        return local_time
