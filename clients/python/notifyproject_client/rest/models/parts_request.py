from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PartsRequest")


@_attrs_define
class PartsRequest:
    """The texts of a template in one language. What is left out is the files', or made of those.

    Attributes:
        subject (None | str | Unset):
        body (None | str | Unset):
        email_html (None | str | Unset):
        push_title (None | str | Unset):
        push (None | str | Unset):
        whatsapp (None | str | Unset):
    """

    subject: None | str | Unset = UNSET
    body: None | str | Unset = UNSET
    email_html: None | str | Unset = UNSET
    push_title: None | str | Unset = UNSET
    push: None | str | Unset = UNSET
    whatsapp: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        subject: None | str | Unset
        if isinstance(self.subject, Unset):
            subject = UNSET
        else:
            subject = self.subject

        body: None | str | Unset
        if isinstance(self.body, Unset):
            body = UNSET
        else:
            body = self.body

        email_html: None | str | Unset
        if isinstance(self.email_html, Unset):
            email_html = UNSET
        else:
            email_html = self.email_html

        push_title: None | str | Unset
        if isinstance(self.push_title, Unset):
            push_title = UNSET
        else:
            push_title = self.push_title

        push: None | str | Unset
        if isinstance(self.push, Unset):
            push = UNSET
        else:
            push = self.push

        whatsapp: None | str | Unset
        if isinstance(self.whatsapp, Unset):
            whatsapp = UNSET
        else:
            whatsapp = self.whatsapp

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if subject is not UNSET:
            field_dict["subject"] = subject
        if body is not UNSET:
            field_dict["body"] = body
        if email_html is not UNSET:
            field_dict["email_html"] = email_html
        if push_title is not UNSET:
            field_dict["push_title"] = push_title
        if push is not UNSET:
            field_dict["push"] = push
        if whatsapp is not UNSET:
            field_dict["whatsapp"] = whatsapp

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_subject(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        subject = _parse_subject(d.pop("subject", UNSET))

        def _parse_body(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        body = _parse_body(d.pop("body", UNSET))

        def _parse_email_html(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        email_html = _parse_email_html(d.pop("email_html", UNSET))

        def _parse_push_title(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        push_title = _parse_push_title(d.pop("push_title", UNSET))

        def _parse_push(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        push = _parse_push(d.pop("push", UNSET))

        def _parse_whatsapp(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        whatsapp = _parse_whatsapp(d.pop("whatsapp", UNSET))

        parts_request = cls(
            subject=subject,
            body=body,
            email_html=email_html,
            push_title=push_title,
            push=push,
            whatsapp=whatsapp,
        )

        return parts_request
