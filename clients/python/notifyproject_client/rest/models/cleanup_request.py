from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="CleanupRequest")


@_attrs_define
class CleanupRequest:
    """How old is old.

    Attributes:
        older_than_days (int): Nothing has happened to them for so long.
        dry_run (bool | Unset): Count, and delete nothing. Default: False.
    """

    older_than_days: int
    dry_run: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        older_than_days = self.older_than_days

        dry_run = self.dry_run

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "older_than_days": older_than_days,
            }
        )
        if dry_run is not UNSET:
            field_dict["dry_run"] = dry_run

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        older_than_days = d.pop("older_than_days")

        dry_run = d.pop("dry_run", UNSET)

        cleanup_request = cls(
            older_than_days=older_than_days,
            dry_run=dry_run,
        )

        return cleanup_request
