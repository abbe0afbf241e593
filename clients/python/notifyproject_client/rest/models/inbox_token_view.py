from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="InboxTokenView")


@_attrs_define
class InboxTokenView:
    """A token for one person's inbox. It is not kept: hand it on now, and ask for another later.

    Attributes:
        token (str):
        jti (str):
        user_id (str):
        expires_at (datetime.datetime):
        stream_url (str):
    """

    token: str
    jti: str
    user_id: str
    expires_at: datetime.datetime
    stream_url: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        token = self.token

        jti = self.jti

        user_id = self.user_id

        expires_at = self.expires_at.isoformat()

        stream_url = self.stream_url

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "token": token,
                "jti": jti,
                "user_id": user_id,
                "expires_at": expires_at,
                "stream_url": stream_url,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        token = d.pop("token")

        jti = d.pop("jti")

        user_id = d.pop("user_id")

        expires_at = datetime.datetime.fromisoformat(d.pop("expires_at"))

        stream_url = d.pop("stream_url")

        inbox_token_view = cls(
            token=token,
            jti=jti,
            user_id=user_id,
            expires_at=expires_at,
            stream_url=stream_url,
        )

        inbox_token_view.additional_properties = d
        return inbox_token_view

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
