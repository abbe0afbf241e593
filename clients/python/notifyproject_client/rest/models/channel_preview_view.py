from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.channel import Channel, check_channel
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.channel_preview_view_payload_type_0 import (
        ChannelPreviewViewPayloadType0,
    )


T = TypeVar("T", bound="ChannelPreviewView")


@_attrs_define
class ChannelPreviewView:
    """What one channel would say. Push: ``subject`` is the title and ``text`` the body.

    Attributes:
        channel (Channel): A way to reach a person.
        would_send (bool):
        reason (None | str | Unset):
        subject (None | str | Unset):
        text (None | str | Unset):
        html (None | str | Unset):
        image_url (None | str | Unset):
        deep_link (None | str | Unset):
        payload (ChannelPreviewViewPayloadType0 | None | Unset):
        problem (None | str | Unset):
    """

    channel: Channel
    would_send: bool
    reason: None | str | Unset = UNSET
    subject: None | str | Unset = UNSET
    text: None | str | Unset = UNSET
    html: None | str | Unset = UNSET
    image_url: None | str | Unset = UNSET
    deep_link: None | str | Unset = UNSET
    payload: ChannelPreviewViewPayloadType0 | None | Unset = UNSET
    problem: None | str | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.channel_preview_view_payload_type_0 import (
            ChannelPreviewViewPayloadType0,  # noqa: PLC0415
        )

        channel: str = self.channel

        would_send = self.would_send

        reason: None | str | Unset
        if isinstance(self.reason, Unset):
            reason = UNSET
        else:
            reason = self.reason

        subject: None | str | Unset
        if isinstance(self.subject, Unset):
            subject = UNSET
        else:
            subject = self.subject

        text: None | str | Unset
        if isinstance(self.text, Unset):
            text = UNSET
        else:
            text = self.text

        html: None | str | Unset
        if isinstance(self.html, Unset):
            html = UNSET
        else:
            html = self.html

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
        elif isinstance(self.payload, ChannelPreviewViewPayloadType0):
            payload = self.payload.to_dict()
        else:
            payload = self.payload

        problem: None | str | Unset
        if isinstance(self.problem, Unset):
            problem = UNSET
        else:
            problem = self.problem

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "channel": channel,
                "would_send": would_send,
            }
        )
        if reason is not UNSET:
            field_dict["reason"] = reason
        if subject is not UNSET:
            field_dict["subject"] = subject
        if text is not UNSET:
            field_dict["text"] = text
        if html is not UNSET:
            field_dict["html"] = html
        if image_url is not UNSET:
            field_dict["image_url"] = image_url
        if deep_link is not UNSET:
            field_dict["deep_link"] = deep_link
        if payload is not UNSET:
            field_dict["payload"] = payload
        if problem is not UNSET:
            field_dict["problem"] = problem

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.channel_preview_view_payload_type_0 import (
            ChannelPreviewViewPayloadType0,  # noqa: PLC0415
        )

        d = dict(src_dict)
        channel = check_channel(d.pop("channel"))

        would_send = d.pop("would_send")

        def _parse_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reason = _parse_reason(d.pop("reason", UNSET))

        def _parse_subject(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        subject = _parse_subject(d.pop("subject", UNSET))

        def _parse_text(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        text = _parse_text(d.pop("text", UNSET))

        def _parse_html(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        html = _parse_html(d.pop("html", UNSET))

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

        def _parse_payload(data: object) -> ChannelPreviewViewPayloadType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                payload_type_0 = ChannelPreviewViewPayloadType0.from_dict(data)

                return payload_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ChannelPreviewViewPayloadType0 | None | Unset, data)

        payload = _parse_payload(d.pop("payload", UNSET))

        def _parse_problem(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        problem = _parse_problem(d.pop("problem", UNSET))

        channel_preview_view = cls(
            channel=channel,
            would_send=would_send,
            reason=reason,
            subject=subject,
            text=text,
            html=html,
            image_url=image_url,
            deep_link=deep_link,
            payload=payload,
            problem=problem,
        )

        channel_preview_view.additional_properties = d
        return channel_preview_view

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
