from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.category import Category, check_category
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.inbox_item_payload_type_0 import InboxItemPayloadType0


T = TypeVar("T", bound="InboxItem")


@_attrs_define
class InboxItem:
    """A notification in the inbox. Its texts are plain text: escape them where HTML is expected.

    Attributes:
        id (str):
        type_ (str):
        category (Category): What a notification is for; marketing needs the recipient's consent.
        delivered_at (datetime.datetime):
        is_read (bool):
        is_archived (bool):
        subject (None | str | Unset):
        body (None | str | Unset):
        image_url (None | str | Unset):
        deep_link (None | str | Unset):
        payload (InboxItemPayloadType0 | None | Unset):
        read_at (datetime.datetime | None | Unset):
        archived_at (datetime.datetime | None | Unset):
    """

    id: str
    type_: str
    category: Category
    delivered_at: datetime.datetime
    is_read: bool
    is_archived: bool
    subject: None | str | Unset = UNSET
    body: None | str | Unset = UNSET
    image_url: None | str | Unset = UNSET
    deep_link: None | str | Unset = UNSET
    payload: InboxItemPayloadType0 | None | Unset = UNSET
    read_at: datetime.datetime | None | Unset = UNSET
    archived_at: datetime.datetime | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.inbox_item_payload_type_0 import InboxItemPayloadType0  # noqa: PLC0415

        id = self.id

        type_ = self.type_

        category: str = self.category

        delivered_at = self.delivered_at.isoformat()

        is_read = self.is_read

        is_archived = self.is_archived

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

        image_url: None | str | Unset
        if isinstance(self.image_url, Unset):
            image_url = UNSET
        else:
            image_url = self.image_url

        deep_link: None | str | Unset
        if isinstance(self.deep_link, Unset):
            deep_link = UNSET
        else:
            deep_link = self.deep_link

        payload: dict[str, Any] | None | Unset
        if isinstance(self.payload, Unset):
            payload = UNSET
        elif isinstance(self.payload, InboxItemPayloadType0):
            payload = self.payload.to_dict()
        else:
            payload = self.payload

        read_at: None | str | Unset
        if isinstance(self.read_at, Unset):
            read_at = UNSET
        elif isinstance(self.read_at, datetime.datetime):
            read_at = self.read_at.isoformat()
        else:
            read_at = self.read_at

        archived_at: None | str | Unset
        if isinstance(self.archived_at, Unset):
            archived_at = UNSET
        elif isinstance(self.archived_at, datetime.datetime):
            archived_at = self.archived_at.isoformat()
        else:
            archived_at = self.archived_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "type": type_,
                "category": category,
                "delivered_at": delivered_at,
                "is_read": is_read,
                "is_archived": is_archived,
            }
        )
        if subject is not UNSET:
            field_dict["subject"] = subject
        if body is not UNSET:
            field_dict["body"] = body
        if image_url is not UNSET:
            field_dict["image_url"] = image_url
        if deep_link is not UNSET:
            field_dict["deep_link"] = deep_link
        if payload is not UNSET:
            field_dict["payload"] = payload
        if read_at is not UNSET:
            field_dict["read_at"] = read_at
        if archived_at is not UNSET:
            field_dict["archived_at"] = archived_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.inbox_item_payload_type_0 import InboxItemPayloadType0  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        type_ = d.pop("type")

        category = check_category(d.pop("category"))

        delivered_at = datetime.datetime.fromisoformat(d.pop("delivered_at"))

        is_read = d.pop("is_read")

        is_archived = d.pop("is_archived")

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

        def _parse_image_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        image_url = _parse_image_url(d.pop("image_url", UNSET))

        def _parse_deep_link(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        deep_link = _parse_deep_link(d.pop("deep_link", UNSET))

        def _parse_payload(data: object) -> InboxItemPayloadType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                payload_type_0 = InboxItemPayloadType0.from_dict(data)

                return payload_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(InboxItemPayloadType0 | None | Unset, data)

        payload = _parse_payload(d.pop("payload", UNSET))

        def _parse_read_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                read_at_type_0 = datetime.datetime.fromisoformat(data)

                return read_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        read_at = _parse_read_at(d.pop("read_at", UNSET))

        def _parse_archived_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                archived_at_type_0 = datetime.datetime.fromisoformat(data)

                return archived_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        archived_at = _parse_archived_at(d.pop("archived_at", UNSET))

        inbox_item = cls(
            id=id,
            type_=type_,
            category=category,
            delivered_at=delivered_at,
            is_read=is_read,
            is_archived=is_archived,
            subject=subject,
            body=body,
            image_url=image_url,
            deep_link=deep_link,
            payload=payload,
            read_at=read_at,
            archived_at=archived_at,
        )

        inbox_item.additional_properties = d
        return inbox_item

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
