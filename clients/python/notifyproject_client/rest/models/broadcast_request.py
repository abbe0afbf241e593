from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.audience_request import AudienceRequest
    from ..models.broadcast_request_data import BroadcastRequestData
    from ..models.content_request import ContentRequest


T = TypeVar("T", bound="BroadcastRequest")


@_attrs_define
class BroadcastRequest:
    """A message to an audience. What is left out comes from the type, as for a notification.

    Attributes:
        type_ (str): A registered type's slug; none that is critical or has secret variables.
        audience (AudienceRequest): Whom to tell: exactly one of these.
        data (BroadcastRequestData | Unset): The template's variables, the same for everybody.
        channels (list[str] | None | Unset):
        content (ContentRequest | Unset): What to say. A body given here is used as it is; without one, the template is
            rendered.
        priority (None | str | Unset):
        scheduled_at (datetime.datetime | None | Unset):
        ttl (int | None | Unset):
        expires_at (datetime.datetime | None | Unset):
    """

    type_: str
    audience: AudienceRequest
    data: BroadcastRequestData | Unset = UNSET
    channels: list[str] | None | Unset = UNSET
    content: ContentRequest | Unset = UNSET
    priority: None | str | Unset = UNSET
    scheduled_at: datetime.datetime | None | Unset = UNSET
    ttl: int | None | Unset = UNSET
    expires_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        type_ = self.type_

        audience = self.audience.to_dict()

        data: dict[str, Any] | Unset = UNSET
        if not isinstance(self.data, Unset):
            data = self.data.to_dict()

        channels: list[str] | None | Unset
        if isinstance(self.channels, Unset):
            channels = UNSET
        elif isinstance(self.channels, list):
            channels = self.channels

        else:
            channels = self.channels

        content: dict[str, Any] | Unset = UNSET
        if not isinstance(self.content, Unset):
            content = self.content.to_dict()

        priority: None | str | Unset
        if isinstance(self.priority, Unset):
            priority = UNSET
        else:
            priority = self.priority

        scheduled_at: None | str | Unset
        if isinstance(self.scheduled_at, Unset):
            scheduled_at = UNSET
        elif isinstance(self.scheduled_at, datetime.datetime):
            scheduled_at = self.scheduled_at.isoformat()
        else:
            scheduled_at = self.scheduled_at

        ttl: int | None | Unset
        if isinstance(self.ttl, Unset):
            ttl = UNSET
        else:
            ttl = self.ttl

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "type": type_,
                "audience": audience,
            }
        )
        if data is not UNSET:
            field_dict["data"] = data
        if channels is not UNSET:
            field_dict["channels"] = channels
        if content is not UNSET:
            field_dict["content"] = content
        if priority is not UNSET:
            field_dict["priority"] = priority
        if scheduled_at is not UNSET:
            field_dict["scheduled_at"] = scheduled_at
        if ttl is not UNSET:
            field_dict["ttl"] = ttl
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.audience_request import AudienceRequest  # noqa: PLC0415
        from ..models.broadcast_request_data import BroadcastRequestData  # noqa: PLC0415
        from ..models.content_request import ContentRequest  # noqa: PLC0415

        d = dict(src_dict)
        type_ = d.pop("type")

        audience = AudienceRequest.from_dict(d.pop("audience"))

        _data = d.pop("data", UNSET)
        data: BroadcastRequestData | Unset
        if isinstance(_data, Unset):
            data = UNSET
        else:
            data = BroadcastRequestData.from_dict(_data)

        def _parse_channels(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                channels_type_0 = cast(list[str], data)

                return channels_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        channels = _parse_channels(d.pop("channels", UNSET))

        _content = d.pop("content", UNSET)
        content: ContentRequest | Unset
        if isinstance(_content, Unset):
            content = UNSET
        else:
            content = ContentRequest.from_dict(_content)

        def _parse_priority(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        priority = _parse_priority(d.pop("priority", UNSET))

        def _parse_scheduled_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                scheduled_at_type_0 = datetime.datetime.fromisoformat(data)

                return scheduled_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        scheduled_at = _parse_scheduled_at(d.pop("scheduled_at", UNSET))

        def _parse_ttl(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ttl = _parse_ttl(d.pop("ttl", UNSET))

        def _parse_expires_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        expires_at = _parse_expires_at(d.pop("expires_at", UNSET))

        broadcast_request = cls(
            type_=type_,
            audience=audience,
            data=data,
            channels=channels,
            content=content,
            priority=priority,
            scheduled_at=scheduled_at,
            ttl=ttl,
            expires_at=expires_at,
        )

        return broadcast_request
