from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="AttachmentRequest")


@_attrs_define
class AttachmentRequest:
    """A file that goes with the mail. It is fetched, without credentials, when the mail is sent.

    Attributes:
        url (str): https, on a host that the service is set up to fetch from.
        filename (str):
        content_type (None | str | Unset):
    """

    url: str
    filename: str
    content_type: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        filename = self.filename

        content_type: None | str | Unset
        if isinstance(self.content_type, Unset):
            content_type = UNSET
        else:
            content_type = self.content_type

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "url": url,
                "filename": filename,
            }
        )
        if content_type is not UNSET:
            field_dict["content_type"] = content_type

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        url = d.pop("url")

        filename = d.pop("filename")

        def _parse_content_type(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        content_type = _parse_content_type(d.pop("content_type", UNSET))

        attachment_request = cls(
            url=url,
            filename=filename,
            content_type=content_type,
        )

        return attachment_request
