from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.content_request import ContentRequest
    from ..models.local_time import LocalTime
    from ..models.notification_request_data import NotificationRequestData
    from ..models.recipient_request import RecipientRequest


T = TypeVar("T", bound="NotificationRequest")


@_attrs_define
class NotificationRequest:
    """A notification to accept. Only ``type`` and a way to reach someone are required.

    Attributes:
        type_ (str): A registered type's slug.
        user_id (None | str | Unset):
        recipient (RecipientRequest | Unset): Whom to reach. What is left out comes from the registered recipient
            ``user_id``.
        channels (list[str] | None | Unset):
        priority (None | str | Unset):
        entity_id (None | str | Unset):
        external_id (None | str | Unset):
        content (ContentRequest | Unset): What to say. A body given here is used as it is; without one, the template is
            rendered.
        data (NotificationRequestData | Unset): The template's variables.
        scheduled_at (datetime.datetime | None | Unset):
        scheduled_local (LocalTime | None | Unset):
        event_at (datetime.datetime | None | Unset):
        ttl (int | None | Unset):
        expires_at (datetime.datetime | None | Unset):
        max_retries (int | None | Unset):
    """

    type_: str
    user_id: None | str | Unset = UNSET
    recipient: RecipientRequest | Unset = UNSET
    channels: list[str] | None | Unset = UNSET
    priority: None | str | Unset = UNSET
    entity_id: None | str | Unset = UNSET
    external_id: None | str | Unset = UNSET
    content: ContentRequest | Unset = UNSET
    data: NotificationRequestData | Unset = UNSET
    scheduled_at: datetime.datetime | None | Unset = UNSET
    scheduled_local: LocalTime | None | Unset = UNSET
    event_at: datetime.datetime | None | Unset = UNSET
    ttl: int | None | Unset = UNSET
    expires_at: datetime.datetime | None | Unset = UNSET
    max_retries: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.local_time import LocalTime  # noqa: PLC0415

        type_ = self.type_

        user_id: None | str | Unset
        if isinstance(self.user_id, Unset):
            user_id = UNSET
        else:
            user_id = self.user_id

        recipient: dict[str, Any] | Unset = UNSET
        if not isinstance(self.recipient, Unset):
            recipient = self.recipient.to_dict()

        channels: list[str] | None | Unset
        if isinstance(self.channels, Unset):
            channels = UNSET
        elif isinstance(self.channels, list):
            channels = self.channels

        else:
            channels = self.channels

        priority: None | str | Unset
        if isinstance(self.priority, Unset):
            priority = UNSET
        else:
            priority = self.priority

        entity_id: None | str | Unset
        if isinstance(self.entity_id, Unset):
            entity_id = UNSET
        else:
            entity_id = self.entity_id

        external_id: None | str | Unset
        if isinstance(self.external_id, Unset):
            external_id = UNSET
        else:
            external_id = self.external_id

        content: dict[str, Any] | Unset = UNSET
        if not isinstance(self.content, Unset):
            content = self.content.to_dict()

        data: dict[str, Any] | Unset = UNSET
        if not isinstance(self.data, Unset):
            data = self.data.to_dict()

        scheduled_at: None | str | Unset
        if isinstance(self.scheduled_at, Unset):
            scheduled_at = UNSET
        elif isinstance(self.scheduled_at, datetime.datetime):
            scheduled_at = self.scheduled_at.isoformat()
        else:
            scheduled_at = self.scheduled_at

        scheduled_local: dict[str, Any] | None | Unset
        if isinstance(self.scheduled_local, Unset):
            scheduled_local = UNSET
        elif isinstance(self.scheduled_local, LocalTime):
            scheduled_local = self.scheduled_local.to_dict()
        else:
            scheduled_local = self.scheduled_local

        event_at: None | str | Unset
        if isinstance(self.event_at, Unset):
            event_at = UNSET
        elif isinstance(self.event_at, datetime.datetime):
            event_at = self.event_at.isoformat()
        else:
            event_at = self.event_at

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

        max_retries: int | None | Unset
        if isinstance(self.max_retries, Unset):
            max_retries = UNSET
        else:
            max_retries = self.max_retries

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "type": type_,
            }
        )
        if user_id is not UNSET:
            field_dict["user_id"] = user_id
        if recipient is not UNSET:
            field_dict["recipient"] = recipient
        if channels is not UNSET:
            field_dict["channels"] = channels
        if priority is not UNSET:
            field_dict["priority"] = priority
        if entity_id is not UNSET:
            field_dict["entity_id"] = entity_id
        if external_id is not UNSET:
            field_dict["external_id"] = external_id
        if content is not UNSET:
            field_dict["content"] = content
        if data is not UNSET:
            field_dict["data"] = data
        if scheduled_at is not UNSET:
            field_dict["scheduled_at"] = scheduled_at
        if scheduled_local is not UNSET:
            field_dict["scheduled_local"] = scheduled_local
        if event_at is not UNSET:
            field_dict["event_at"] = event_at
        if ttl is not UNSET:
            field_dict["ttl"] = ttl
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if max_retries is not UNSET:
            field_dict["max_retries"] = max_retries

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.content_request import ContentRequest  # noqa: PLC0415
        from ..models.local_time import LocalTime  # noqa: PLC0415
        from ..models.notification_request_data import NotificationRequestData  # noqa: PLC0415
        from ..models.recipient_request import RecipientRequest  # noqa: PLC0415

        d = dict(src_dict)
        type_ = d.pop("type")

        def _parse_user_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user_id = _parse_user_id(d.pop("user_id", UNSET))

        _recipient = d.pop("recipient", UNSET)
        recipient: RecipientRequest | Unset
        if isinstance(_recipient, Unset):
            recipient = UNSET
        else:
            recipient = RecipientRequest.from_dict(_recipient)

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

        def _parse_priority(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        priority = _parse_priority(d.pop("priority", UNSET))

        def _parse_entity_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        entity_id = _parse_entity_id(d.pop("entity_id", UNSET))

        def _parse_external_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        external_id = _parse_external_id(d.pop("external_id", UNSET))

        _content = d.pop("content", UNSET)
        content: ContentRequest | Unset
        if isinstance(_content, Unset):
            content = UNSET
        else:
            content = ContentRequest.from_dict(_content)

        _data = d.pop("data", UNSET)
        data: NotificationRequestData | Unset
        if isinstance(_data, Unset):
            data = UNSET
        else:
            data = NotificationRequestData.from_dict(_data)

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

        def _parse_scheduled_local(data: object) -> LocalTime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                scheduled_local_type_0 = LocalTime.from_dict(data)

                return scheduled_local_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LocalTime | None | Unset, data)

        scheduled_local = _parse_scheduled_local(d.pop("scheduled_local", UNSET))

        def _parse_event_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                event_at_type_0 = datetime.datetime.fromisoformat(data)

                return event_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        event_at = _parse_event_at(d.pop("event_at", UNSET))

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

        def _parse_max_retries(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        max_retries = _parse_max_retries(d.pop("max_retries", UNSET))

        notification_request = cls(
            type_=type_,
            user_id=user_id,
            recipient=recipient,
            channels=channels,
            priority=priority,
            entity_id=entity_id,
            external_id=external_id,
            content=content,
            data=data,
            scheduled_at=scheduled_at,
            scheduled_local=scheduled_local,
            event_at=event_at,
            ttl=ttl,
            expires_at=expires_at,
            max_retries=max_retries,
        )

        return notification_request
