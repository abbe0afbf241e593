from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.group_by import GroupBy, check_group_by

if TYPE_CHECKING:
    from ..models.statistics_group_view import StatisticsGroupView


T = TypeVar("T", bound="StatisticsView")


@_attrs_define
class StatisticsView:
    """The figures of a client's notifications, the largest group first.

    Attributes:
        by (GroupBy): What notifications are told apart by.
        results (list[StatisticsGroupView]):
        counted (int): Notifications that were counted.
        complete (bool): False: there are more, and older.
    """

    by: GroupBy
    results: list[StatisticsGroupView]
    counted: int
    complete: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        by: str = self.by

        results = []
        for results_item_data in self.results:
            results_item = results_item_data.to_dict()
            results.append(results_item)

        counted = self.counted

        complete = self.complete

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "by": by,
                "results": results,
                "counted": counted,
                "complete": complete,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.statistics_group_view import StatisticsGroupView  # noqa: PLC0415

        d = dict(src_dict)
        by = check_group_by(d.pop("by"))

        results = []
        _results = d.pop("results")
        for results_item_data in _results:
            results_item = StatisticsGroupView.from_dict(results_item_data)

            results.append(results_item)

        counted = d.pop("counted")

        complete = d.pop("complete")

        statistics_view = cls(
            by=by,
            results=results,
            counted=counted,
            complete=complete,
        )

        statistics_view.additional_properties = d
        return statistics_view

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
