from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.attachment_request import AttachmentRequest
    from ..models.content_request_payload_type_0 import ContentRequestPayloadType0


T = TypeVar("T", bound="ContentRequest")


@_attrs_define
class ContentRequest:
    """What to say. A body given here is used as it is; without one, the template is rendered.

    Attributes:
        subject (None | str | Unset):
        body (None | str | Unset):
        template_id (None | str | Unset):
        image_url (None | str | Unset):
        deep_link (None | str | Unset):
        payload (ContentRequestPayloadType0 | None | Unset):
        reply_to (None | str | Unset):
        attachments (list[AttachmentRequest] | Unset): Of the mail; 10 MB in all.
    """

    subject: None | str | Unset = UNSET
    body: None | str | Unset = UNSET
    template_id: None | str | Unset = UNSET
    image_url: None | str | Unset = UNSET
    deep_link: None | str | Unset = UNSET
    payload: ContentRequestPayloadType0 | None | Unset = UNSET
    reply_to: None | str | Unset = UNSET
    attachments: list[AttachmentRequest] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.content_request_payload_type_0 import ContentRequestPayloadType0  # noqa: PLC0415

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

        template_id: None | str | Unset
        if isinstance(self.template_id, Unset):
            template_id = UNSET
        else:
            template_id = self.template_id

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
        elif isinstance(self.payload, ContentRequestPayloadType0):
            payload = self.payload.to_dict()
        else:
            payload = self.payload

        reply_to: None | str | Unset
        if isinstance(self.reply_to, Unset):
            reply_to = UNSET
        else:
            reply_to = self.reply_to

        attachments: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.attachments, Unset):
            attachments = []
            for attachments_item_data in self.attachments:
                attachments_item = attachments_item_data.to_dict()
                attachments.append(attachments_item)

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if subject is not UNSET:
            field_dict["subject"] = subject
        if body is not UNSET:
            field_dict["body"] = body
        if template_id is not UNSET:
            field_dict["template_id"] = template_id
        if image_url is not UNSET:
            field_dict["image_url"] = image_url
        if deep_link is not UNSET:
            field_dict["deep_link"] = deep_link
        if payload is not UNSET:
            field_dict["payload"] = payload
        if reply_to is not UNSET:
            field_dict["reply_to"] = reply_to
        if attachments is not UNSET:
            field_dict["attachments"] = attachments

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.attachment_request import AttachmentRequest  # noqa: PLC0415
        from ..models.content_request_payload_type_0 import ContentRequestPayloadType0  # noqa: PLC0415

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

        def _parse_template_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        template_id = _parse_template_id(d.pop("template_id", UNSET))

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

        def _parse_payload(data: object) -> ContentRequestPayloadType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                payload_type_0 = ContentRequestPayloadType0.from_dict(data)

                return payload_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ContentRequestPayloadType0 | None | Unset, data)

        payload = _parse_payload(d.pop("payload", UNSET))

        def _parse_reply_to(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reply_to = _parse_reply_to(d.pop("reply_to", UNSET))

        _attachments = d.pop("attachments", UNSET)
        attachments: list[AttachmentRequest] | Unset = UNSET
        if _attachments is not UNSET:
            attachments = []
            for attachments_item_data in _attachments:
                attachments_item = AttachmentRequest.from_dict(attachments_item_data)

                attachments.append(attachments_item)

        content_request = cls(
            subject=subject,
            body=body,
            template_id=template_id,
            image_url=image_url,
            deep_link=deep_link,
            payload=payload,
            reply_to=reply_to,
            attachments=attachments,
        )

        return content_request
