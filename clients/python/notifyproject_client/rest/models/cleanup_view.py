from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="CleanupView")


@_attrs_define
class CleanupView:
    """What was deleted, or would be.

    Attributes:
        notifications (int):
        attempts (int | None): Not counted in a dry run.
        dry_run (bool):
        complete (bool): False: there is more to delete.
    """

    notifications: int
    attempts: int | None
    dry_run: bool
    complete: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        notifications = self.notifications

        attempts: int | None
        attempts = self.attempts

        dry_run = self.dry_run

        complete = self.complete

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "notifications": notifications,
                "attempts": attempts,
                "dry_run": dry_run,
                "complete": complete,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        notifications = d.pop("notifications")

        def _parse_attempts(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        attempts = _parse_attempts(d.pop("attempts"))

        dry_run = d.pop("dry_run")

        complete = d.pop("complete")

        cleanup_view = cls(
            notifications=notifications,
            attempts=attempts,
            dry_run=dry_run,
            complete=complete,
        )

        cleanup_view.additional_properties = d
        return cleanup_view

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
