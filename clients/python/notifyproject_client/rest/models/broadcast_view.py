from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.broadcast_status import BroadcastStatus, check_broadcast_status
from ..models.priority import Priority, check_priority
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.broadcast_audience_view import BroadcastAudienceView
    from ..models.broadcast_view_data import BroadcastViewData
    from ..models.broadcast_view_notifications_type_0 import (
        BroadcastViewNotificationsType0,
    )
    from ..models.content_request import ContentRequest
    from ..models.reason_view import ReasonView


T = TypeVar("T", bound="BroadcastView")


@_attrs_define
class BroadcastView:
    """A broadcast and how far it has come.

    Attributes:
        id (str):
        status (BroadcastStatus): Where a broadcast stands: how far its audience has been read, not what arrived.
        type_ (str):
        priority (Priority): How urgent a notification is; each has queues of its own, served strictly in order.
        audience (BroadcastAudienceView): Whom it is for: one of these.
        audience_size (int | None): About how many there were when it was asked for; null: not counted.
        content (ContentRequest): What to say. A body given here is used as it is; without one, the template is
            rendered.
        data (BroadcastViewData):
        accepted (int): Notifications that were made.
        skipped (list[ReasonView]): People who want nothing of it, or whom nothing reaches: no notification is made for
            them.
        rejected (list[ReasonView]): People whose notification could not be made, by the problem's code.
        withdrawn (int): Notifications that its being cancelled ended.
        is_waiting (bool): It waits by itself: too much is to be sent already.
        created_at (datetime.datetime):
        updated_at (datetime.datetime):
        channels (list[str] | None | Unset):
        ttl (int | None | Unset):
        notifications (BroadcastViewNotificationsType0 | None | Unset): Of one broadcast: how many of its notifications
            are in each status; null if there are too many to count, and in lists.
        failure_code (None | str | Unset): expired, unknown_type or stuck; see failure_reason.
        failure_reason (None | str | Unset):
        scheduled_at (datetime.datetime | None | Unset):
        expires_at (datetime.datetime | None | Unset):
        started_at (datetime.datetime | None | Unset):
        finished_at (datetime.datetime | None | Unset):
        request_id (None | str | Unset):
        is_test (bool | Unset):  Default: False.
    """

    id: str
    status: BroadcastStatus
    type_: str
    priority: Priority
    audience: BroadcastAudienceView
    audience_size: int | None
    content: ContentRequest
    data: BroadcastViewData
    accepted: int
    skipped: list[ReasonView]
    rejected: list[ReasonView]
    withdrawn: int
    is_waiting: bool
    created_at: datetime.datetime
    updated_at: datetime.datetime
    channels: list[str] | None | Unset = UNSET
    ttl: int | None | Unset = UNSET
    notifications: BroadcastViewNotificationsType0 | None | Unset = UNSET
    failure_code: None | str | Unset = UNSET
    failure_reason: None | str | Unset = UNSET
    scheduled_at: datetime.datetime | None | Unset = UNSET
    expires_at: datetime.datetime | None | Unset = UNSET
    started_at: datetime.datetime | None | Unset = UNSET
    finished_at: datetime.datetime | None | Unset = UNSET
    request_id: None | str | Unset = UNSET
    is_test: bool | Unset = False
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.broadcast_view_notifications_type_0 import (
            BroadcastViewNotificationsType0,  # noqa: PLC0415
        )

        id = self.id

        status: str = self.status

        type_ = self.type_

        priority: str = self.priority

        audience = self.audience.to_dict()

        audience_size: int | None
        audience_size = self.audience_size

        content = self.content.to_dict()

        data = self.data.to_dict()

        accepted = self.accepted

        skipped = []
        for skipped_item_data in self.skipped:
            skipped_item = skipped_item_data.to_dict()
            skipped.append(skipped_item)

        rejected = []
        for rejected_item_data in self.rejected:
            rejected_item = rejected_item_data.to_dict()
            rejected.append(rejected_item)

        withdrawn = self.withdrawn

        is_waiting = self.is_waiting

        created_at = self.created_at.isoformat()

        updated_at = self.updated_at.isoformat()

        channels: list[str] | None | Unset
        if isinstance(self.channels, Unset):
            channels = UNSET
        elif isinstance(self.channels, list):
            channels = self.channels

        else:
            channels = self.channels

        ttl: int | None | Unset
        if isinstance(self.ttl, Unset):
            ttl = UNSET
        else:
            ttl = self.ttl

        notifications: dict[str, Any] | None | Unset
        if isinstance(self.notifications, Unset):
            notifications = UNSET
        elif isinstance(self.notifications, BroadcastViewNotificationsType0):
            notifications = self.notifications.to_dict()
        else:
            notifications = self.notifications

        failure_code: None | str | Unset
        if isinstance(self.failure_code, Unset):
            failure_code = UNSET
        else:
            failure_code = self.failure_code

        failure_reason: None | str | Unset
        if isinstance(self.failure_reason, Unset):
            failure_reason = UNSET
        else:
            failure_reason = self.failure_reason

        scheduled_at: None | str | Unset
        if isinstance(self.scheduled_at, Unset):
            scheduled_at = UNSET
        elif isinstance(self.scheduled_at, datetime.datetime):
            scheduled_at = self.scheduled_at.isoformat()
        else:
            scheduled_at = self.scheduled_at

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        started_at: None | str | Unset
        if isinstance(self.started_at, Unset):
            started_at = UNSET
        elif isinstance(self.started_at, datetime.datetime):
            started_at = self.started_at.isoformat()
        else:
            started_at = self.started_at

        finished_at: None | str | Unset
        if isinstance(self.finished_at, Unset):
            finished_at = UNSET
        elif isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

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
                "priority": priority,
                "audience": audience,
                "audience_size": audience_size,
                "content": content,
                "data": data,
                "accepted": accepted,
                "skipped": skipped,
                "rejected": rejected,
                "withdrawn": withdrawn,
                "is_waiting": is_waiting,
                "created_at": created_at,
                "updated_at": updated_at,
            }
        )
        if channels is not UNSET:
            field_dict["channels"] = channels
        if ttl is not UNSET:
            field_dict["ttl"] = ttl
        if notifications is not UNSET:
            field_dict["notifications"] = notifications
        if failure_code is not UNSET:
            field_dict["failure_code"] = failure_code
        if failure_reason is not UNSET:
            field_dict["failure_reason"] = failure_reason
        if scheduled_at is not UNSET:
            field_dict["scheduled_at"] = scheduled_at
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if started_at is not UNSET:
            field_dict["started_at"] = started_at
        if finished_at is not UNSET:
            field_dict["finished_at"] = finished_at
        if request_id is not UNSET:
            field_dict["request_id"] = request_id
        if is_test is not UNSET:
            field_dict["is_test"] = is_test

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.broadcast_audience_view import BroadcastAudienceView  # noqa: PLC0415
        from ..models.broadcast_view_data import BroadcastViewData  # noqa: PLC0415
        from ..models.broadcast_view_notifications_type_0 import (
            BroadcastViewNotificationsType0,  # noqa: PLC0415
        )
        from ..models.content_request import ContentRequest  # noqa: PLC0415
        from ..models.reason_view import ReasonView  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        status = check_broadcast_status(d.pop("status"))

        type_ = d.pop("type")

        priority = check_priority(d.pop("priority"))

        audience = BroadcastAudienceView.from_dict(d.pop("audience"))

        def _parse_audience_size(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        audience_size = _parse_audience_size(d.pop("audience_size"))

        content = ContentRequest.from_dict(d.pop("content"))

        data = BroadcastViewData.from_dict(d.pop("data"))

        accepted = d.pop("accepted")

        skipped = []
        _skipped = d.pop("skipped")
        for skipped_item_data in _skipped:
            skipped_item = ReasonView.from_dict(skipped_item_data)

            skipped.append(skipped_item)

        rejected = []
        _rejected = d.pop("rejected")
        for rejected_item_data in _rejected:
            rejected_item = ReasonView.from_dict(rejected_item_data)

            rejected.append(rejected_item)

        withdrawn = d.pop("withdrawn")

        is_waiting = d.pop("is_waiting")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        updated_at = datetime.datetime.fromisoformat(d.pop("updated_at"))

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

        def _parse_ttl(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ttl = _parse_ttl(d.pop("ttl", UNSET))

        def _parse_notifications(data: object) -> BroadcastViewNotificationsType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                notifications_type_0 = BroadcastViewNotificationsType0.from_dict(data)

                return notifications_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BroadcastViewNotificationsType0 | None | Unset, data)

        notifications = _parse_notifications(d.pop("notifications", UNSET))

        def _parse_failure_code(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        failure_code = _parse_failure_code(d.pop("failure_code", UNSET))

        def _parse_failure_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        failure_reason = _parse_failure_reason(d.pop("failure_reason", UNSET))

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

        def _parse_started_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                started_at_type_0 = datetime.datetime.fromisoformat(data)

                return started_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        started_at = _parse_started_at(d.pop("started_at", UNSET))

        def _parse_finished_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                finished_at_type_0 = datetime.datetime.fromisoformat(data)

                return finished_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        finished_at = _parse_finished_at(d.pop("finished_at", UNSET))

        def _parse_request_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        request_id = _parse_request_id(d.pop("request_id", UNSET))

        is_test = d.pop("is_test", UNSET)

        broadcast_view = cls(
            id=id,
            status=status,
            type_=type_,
            priority=priority,
            audience=audience,
            audience_size=audience_size,
            content=content,
            data=data,
            accepted=accepted,
            skipped=skipped,
            rejected=rejected,
            withdrawn=withdrawn,
            is_waiting=is_waiting,
            created_at=created_at,
            updated_at=updated_at,
            channels=channels,
            ttl=ttl,
            notifications=notifications,
            failure_code=failure_code,
            failure_reason=failure_reason,
            scheduled_at=scheduled_at,
            expires_at=expires_at,
            started_at=started_at,
            finished_at=finished_at,
            request_id=request_id,
            is_test=is_test,
        )

        broadcast_view.additional_properties = d
        return broadcast_view

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
