from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.field_problem_view import FieldProblemView


T = TypeVar("T", bound="ProblemView")


@_attrs_define
class ProblemView:
    """RFC 9457 problem details: what every answer that is not a success looks like.

    Attributes:
        type_ (str):
        title (str):
        status (int):
        detail (str):
        instance (str):
        code (str):
        request_id (None | str):
        errors (list[FieldProblemView]):
    """

    type_: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    request_id: None | str
    errors: list[FieldProblemView]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_

        title = self.title

        status = self.status

        detail = self.detail

        instance = self.instance

        code = self.code

        request_id: None | str
        request_id = self.request_id

        errors = []
        for errors_item_data in self.errors:
            errors_item = errors_item_data.to_dict()
            errors.append(errors_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "type": type_,
                "title": title,
                "status": status,
                "detail": detail,
                "instance": instance,
                "code": code,
                "request_id": request_id,
                "errors": errors,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.field_problem_view import FieldProblemView  # noqa: PLC0415

        d = dict(src_dict)
        type_ = d.pop("type")

        title = d.pop("title")

        status = d.pop("status")

        detail = d.pop("detail")

        instance = d.pop("instance")

        code = d.pop("code")

        def _parse_request_id(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        request_id = _parse_request_id(d.pop("request_id"))

        errors = []
        _errors = d.pop("errors")
        for errors_item_data in _errors:
            errors_item = FieldProblemView.from_dict(errors_item_data)

            errors.append(errors_item)

        problem_view = cls(
            type_=type_,
            title=title,
            status=status,
            detail=detail,
            instance=instance,
            code=code,
            request_id=request_id,
            errors=errors,
        )

        problem_view.additional_properties = d
        return problem_view

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
