from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.template_request_parts import TemplateRequestParts


T = TypeVar("T", bound="TemplateRequest")


@_attrs_define
class TemplateRequest:
    """A new version of what a type says. It is used by nobody before it is published.

    Attributes:
        parts (TemplateRequestParts): By language: ``default``, and such as ``pt`` or ``pt-BR``.
        note (str | Unset): What has changed. Default: ''.
    """

    parts: TemplateRequestParts
    note: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        parts = self.parts.to_dict()

        note = self.note

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "parts": parts,
            }
        )
        if note is not UNSET:
            field_dict["note"] = note

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.template_request_parts import TemplateRequestParts  # noqa: PLC0415

        d = dict(src_dict)
        parts = TemplateRequestParts.from_dict(d.pop("parts"))

        note = d.pop("note", UNSET)

        template_request = cls(
            parts=parts,
            note=note,
        )

        return template_request
