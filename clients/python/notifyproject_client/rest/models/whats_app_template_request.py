from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="WhatsAppTemplateRequest")


@_attrs_define
class WhatsAppTemplateRequest:
    """A wording that WhatsApp has approved, for people of one language.

    Attributes:
        locale (str): Whom it is for: ``pt``, ``pt-BR``.
        name (str): As it is called at Meta.
        language (str): As Meta writes it: ``pt_PT``.
        parameters (list[str] | Unset): Variables, in the order of their places in its text.
    """

    locale: str
    name: str
    language: str
    parameters: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        locale = self.locale

        name = self.name

        language = self.language

        parameters: list[str] | Unset = UNSET
        if not isinstance(self.parameters, Unset):
            parameters = self.parameters

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "locale": locale,
                "name": name,
                "language": language,
            }
        )
        if parameters is not UNSET:
            field_dict["parameters"] = parameters

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        locale = d.pop("locale")

        name = d.pop("name")

        language = d.pop("language")

        parameters = cast(list[str], d.pop("parameters", UNSET))

        whats_app_template_request = cls(
            locale=locale,
            name=name,
            language=language,
            parameters=parameters,
        )

        return whats_app_template_request
