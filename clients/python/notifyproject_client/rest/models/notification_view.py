from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.category import Category, check_category
from ..models.channel import Channel, check_channel
from ..models.notification_status import NotificationStatus, check_notification_status
from ..models.priority import Priority, check_priority
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.content_view import ContentView
    from ..models.delivery_view import DeliveryView
    from ..models.error_view import ErrorView
    from ..models.notification_view_data import NotificationViewData
    from ..models.recipient_view import RecipientView


T = TypeVar("T", bound="NotificationView")


@_attrs_define
class NotificationView:
    """A notification and what became of it.

    Attributes:
        id (str):
        status (NotificationStatus): Where a notification stands as a whole: computed from its deliveries in every
            write.
        type_ (str):
        category (Category): What a notification is for; marketing needs the recipient's consent.
        priority (Priority): How urgent a notification is; each has queues of its own, served strictly in order.
        recipient (RecipientView): Whom it was for, as known when it was accepted.
        channels (list[Channel]):
        content (ContentView): What it says; secrets are masked.
        data (NotificationViewData):
        delivery (list[DeliveryView]):
        is_read (bool):
        created_at (datetime.datetime):
        updated_at (datetime.datetime):
        is_delivered (bool):
        is_failed (bool):
        is_pending (bool):
        can_retry (bool):
        successful_channels (list[Channel]):
        failed_channels (list[Channel]):
        user_id (None | str | Unset):
        entity_id (None | str | Unset):
        external_id (None | str | Unset):
        scheduled_at (datetime.datetime | None | Unset):
        adjusted (bool | Unset):  Default: False.
        expires_at (datetime.datetime | None | Unset):
        error (None | str | Unset):
        error_history (list[ErrorView] | Unset):
        read_at (datetime.datetime | None | Unset):
        is_archived (bool | Unset):  Default: False.
        archived_at (datetime.datetime | None | Unset):
        is_active (bool | Unset):  Default: True.
        content_removed_at (datetime.datetime | None | Unset):
        broadcast_id (None | str | Unset):
        resent_from (None | str | Unset):
        resent_as (list[str] | Unset):
        sent_at (datetime.datetime | None | Unset):
        failed_at (datetime.datetime | None | Unset):
        request_id (None | str | Unset):
        is_test (bool | Unset):  Default: False.
    """

    id: str
    status: NotificationStatus
    type_: str
    category: Category
    priority: Priority
    recipient: RecipientView
    channels: list[Channel]
    content: ContentView
    data: NotificationViewData
    delivery: list[DeliveryView]
    is_read: bool
    created_at: datetime.datetime
    updated_at: datetime.datetime
    is_delivered: bool
    is_failed: bool
    is_pending: bool
    can_retry: bool
    successful_channels: list[Channel]
    failed_channels: list[Channel]
    user_id: None | str | Unset = UNSET
    entity_id: None | str | Unset = UNSET
    external_id: None | str | Unset = UNSET
    scheduled_at: datetime.datetime | None | Unset = UNSET
    adjusted: bool | Unset = False
    expires_at: datetime.datetime | None | Unset = UNSET
    error: None | str | Unset = UNSET
    error_history: list[ErrorView] | Unset = UNSET
    read_at: datetime.datetime | None | Unset = UNSET
    is_archived: bool | Unset = False
    archived_at: datetime.datetime | None | Unset = UNSET
    is_active: bool | Unset = True
    content_removed_at: datetime.datetime | None | Unset = UNSET
    broadcast_id: None | str | Unset = UNSET
    resent_from: None | str | Unset = UNSET
    resent_as: list[str] | Unset = UNSET
    sent_at: datetime.datetime | None | Unset = UNSET
    failed_at: datetime.datetime | None | Unset = UNSET
    request_id: None | str | Unset = UNSET
    is_test: bool | Unset = False
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        status: str = self.status

        type_ = self.type_

        category: str = self.category

        priority: str = self.priority

        recipient = self.recipient.to_dict()

        channels = []
        for channels_item_data in self.channels:
            channels_item: str = channels_item_data
            channels.append(channels_item)

        content = self.content.to_dict()

        data = self.data.to_dict()

        delivery = []
        for delivery_item_data in self.delivery:
            delivery_item = delivery_item_data.to_dict()
            delivery.append(delivery_item)

        is_read = self.is_read

        created_at = self.created_at.isoformat()

        updated_at = self.updated_at.isoformat()

        is_delivered = self.is_delivered

        is_failed = self.is_failed

        is_pending = self.is_pending

        can_retry = self.can_retry

        successful_channels = []
        for successful_channels_item_data in self.successful_channels:
            successful_channels_item: str = successful_channels_item_data
            successful_channels.append(successful_channels_item)

        failed_channels = []
        for failed_channels_item_data in self.failed_channels:
            failed_channels_item: str = failed_channels_item_data
            failed_channels.append(failed_channels_item)

        user_id: None | str | Unset
        if isinstance(self.user_id, Unset):
            user_id = UNSET
        else:
            user_id = self.user_id

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

        scheduled_at: None | str | Unset
        if isinstance(self.scheduled_at, Unset):
            scheduled_at = UNSET
        elif isinstance(self.scheduled_at, datetime.datetime):
            scheduled_at = self.scheduled_at.isoformat()
        else:
            scheduled_at = self.scheduled_at

        adjusted = self.adjusted

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        error: None | str | Unset
        if isinstance(self.error, Unset):
            error = UNSET
        else:
            error = self.error

        error_history: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.error_history, Unset):
            error_history = []
            for error_history_item_data in self.error_history:
                error_history_item = error_history_item_data.to_dict()
                error_history.append(error_history_item)

        read_at: None | str | Unset
        if isinstance(self.read_at, Unset):
            read_at = UNSET
        elif isinstance(self.read_at, datetime.datetime):
            read_at = self.read_at.isoformat()
        else:
            read_at = self.read_at

        is_archived = self.is_archived

        archived_at: None | str | Unset
        if isinstance(self.archived_at, Unset):
            archived_at = UNSET
        elif isinstance(self.archived_at, datetime.datetime):
            archived_at = self.archived_at.isoformat()
        else:
            archived_at = self.archived_at

        is_active = self.is_active

        content_removed_at: None | str | Unset
        if isinstance(self.content_removed_at, Unset):
            content_removed_at = UNSET
        elif isinstance(self.content_removed_at, datetime.datetime):
            content_removed_at = self.content_removed_at.isoformat()
        else:
            content_removed_at = self.content_removed_at

        broadcast_id: None | str | Unset
        if isinstance(self.broadcast_id, Unset):
            broadcast_id = UNSET
        else:
            broadcast_id = self.broadcast_id

        resent_from: None | str | Unset
        if isinstance(self.resent_from, Unset):
            resent_from = UNSET
        else:
            resent_from = self.resent_from

        resent_as: list[str] | Unset = UNSET
        if not isinstance(self.resent_as, Unset):
            resent_as = self.resent_as

        sent_at: None | str | Unset
        if isinstance(self.sent_at, Unset):
            sent_at = UNSET
        elif isinstance(self.sent_at, datetime.datetime):
            sent_at = self.sent_at.isoformat()
        else:
            sent_at = self.sent_at

        failed_at: None | str | Unset
        if isinstance(self.failed_at, Unset):
            failed_at = UNSET
        elif isinstance(self.failed_at, datetime.datetime):
            failed_at = self.failed_at.isoformat()
        else:
            failed_at = self.failed_at

        request_id: None | str | Unset
        if isinstance(self.request_id, Unset):
            request_id = UNSET
        else:
            request_id = self.request_id

        is_test = self.is_test

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "status": status,
                "type": type_,
                "category": category,
                "priority": priority,
                "recipient": recipient,
                "channels": channels,
                "content": content,
                "data": data,
                "delivery": delivery,
                "is_read": is_read,
                "created_at": created_at,
                "updated_at": updated_at,
                "is_delivered": is_delivered,
                "is_failed": is_failed,
                "is_pending": is_pending,
                "can_retry": can_retry,
                "successful_channels": successful_channels,
                "failed_channels": failed_channels,
            }
        )
        if user_id is not UNSET:
            field_dict["user_id"] = user_id
        if entity_id is not UNSET:
            field_dict["entity_id"] = entity_id
        if external_id is not UNSET:
            field_dict["external_id"] = external_id
        if scheduled_at is not UNSET:
            field_dict["scheduled_at"] = scheduled_at
        if adjusted is not UNSET:
            field_dict["adjusted"] = adjusted
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if error is not UNSET:
            field_dict["error"] = error
        if error_history is not UNSET:
            field_dict["error_history"] = error_history
        if read_at is not UNSET:
            field_dict["read_at"] = read_at
        if is_archived is not UNSET:
            field_dict["is_archived"] = is_archived
        if archived_at is not UNSET:
            field_dict["archived_at"] = archived_at
        if is_active is not UNSET:
            field_dict["is_active"] = is_active
        if content_removed_at is not UNSET:
            field_dict["content_removed_at"] = content_removed_at
        if broadcast_id is not UNSET:
            field_dict["broadcast_id"] = broadcast_id
        if resent_from is not UNSET:
            field_dict["resent_from"] = resent_from
        if resent_as is not UNSET:
            field_dict["resent_as"] = resent_as
        if sent_at is not UNSET:
            field_dict["sent_at"] = sent_at
        if failed_at is not UNSET:
            field_dict["failed_at"] = failed_at
        if request_id is not UNSET:
            field_dict["request_id"] = request_id
        if is_test is not UNSET:
            field_dict["is_test"] = is_test

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.content_view import ContentView  # noqa: PLC0415
        from ..models.delivery_view import DeliveryView  # noqa: PLC0415
        from ..models.error_view import ErrorView  # noqa: PLC0415
        from ..models.notification_view_data import NotificationViewData  # noqa: PLC0415
        from ..models.recipient_view import RecipientView  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        status = check_notification_status(d.pop("status"))

        type_ = d.pop("type")

        category = check_category(d.pop("category"))

        priority = check_priority(d.pop("priority"))

        recipient = RecipientView.from_dict(d.pop("recipient"))

        channels = []
        _channels = d.pop("channels")
        for channels_item_data in _channels:
            channels_item = check_channel(channels_item_data)

            channels.append(channels_item)

        content = ContentView.from_dict(d.pop("content"))

        data = NotificationViewData.from_dict(d.pop("data"))

        delivery = []
        _delivery = d.pop("delivery")
        for delivery_item_data in _delivery:
            delivery_item = DeliveryView.from_dict(delivery_item_data)

            delivery.append(delivery_item)

        is_read = d.pop("is_read")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        updated_at = datetime.datetime.fromisoformat(d.pop("updated_at"))

        is_delivered = d.pop("is_delivered")

        is_failed = d.pop("is_failed")

        is_pending = d.pop("is_pending")

        can_retry = d.pop("can_retry")

        successful_channels = []
        _successful_channels = d.pop("successful_channels")
        for successful_channels_item_data in _successful_channels:
            successful_channels_item = check_channel(successful_channels_item_data)

            successful_channels.append(successful_channels_item)

        failed_channels = []
        _failed_channels = d.pop("failed_channels")
        for failed_channels_item_data in _failed_channels:
            failed_channels_item = check_channel(failed_channels_item_data)

            failed_channels.append(failed_channels_item)

        def _parse_user_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user_id = _parse_user_id(d.pop("user_id", UNSET))

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

        adjusted = d.pop("adjusted", UNSET)

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

        def _parse_error(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        error = _parse_error(d.pop("error", UNSET))

        _error_history = d.pop("error_history", UNSET)
        error_history: list[ErrorView] | Unset = UNSET
        if _error_history is not UNSET:
            error_history = []
            for error_history_item_data in _error_history:
                error_history_item = ErrorView.from_dict(error_history_item_data)

                error_history.append(error_history_item)

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

        is_archived = d.pop("is_archived", UNSET)

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

        is_active = d.pop("is_active", UNSET)

        def _parse_content_removed_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                content_removed_at_type_0 = datetime.datetime.fromisoformat(data)

                return content_removed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        content_removed_at = _parse_content_removed_at(d.pop("content_removed_at", UNSET))

        def _parse_broadcast_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        broadcast_id = _parse_broadcast_id(d.pop("broadcast_id", UNSET))

        def _parse_resent_from(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        resent_from = _parse_resent_from(d.pop("resent_from", UNSET))

        resent_as = cast(list[str], d.pop("resent_as", UNSET))

        def _parse_sent_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                sent_at_type_0 = datetime.datetime.fromisoformat(data)

                return sent_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        sent_at = _parse_sent_at(d.pop("sent_at", UNSET))

        def _parse_failed_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                failed_at_type_0 = datetime.datetime.fromisoformat(data)

                return failed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        failed_at = _parse_failed_at(d.pop("failed_at", UNSET))

        def _parse_request_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        request_id = _parse_request_id(d.pop("request_id", UNSET))

        is_test = d.pop("is_test", UNSET)

        notification_view = cls(
            id=id,
            status=status,
            type_=type_,
            category=category,
            priority=priority,
            recipient=recipient,
            channels=channels,
            content=content,
            data=data,
            delivery=delivery,
            is_read=is_read,
            created_at=created_at,
            updated_at=updated_at,
            is_delivered=is_delivered,
            is_failed=is_failed,
            is_pending=is_pending,
            can_retry=can_retry,
            successful_channels=successful_channels,
            failed_channels=failed_channels,
            user_id=user_id,
            entity_id=entity_id,
            external_id=external_id,
            scheduled_at=scheduled_at,
            adjusted=adjusted,
            expires_at=expires_at,
            error=error,
            error_history=error_history,
            read_at=read_at,
            is_archived=is_archived,
            archived_at=archived_at,
            is_active=is_active,
            content_removed_at=content_removed_at,
            broadcast_id=broadcast_id,
            resent_from=resent_from,
            resent_as=resent_as,
            sent_at=sent_at,
            failed_at=failed_at,
            request_id=request_id,
            is_test=is_test,
        )

        notification_view.additional_properties = d
        return notification_view

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
