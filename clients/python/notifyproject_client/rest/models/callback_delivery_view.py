from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.callback_status import CallbackStatus, check_callback_status
from ..models.event_type import EventType, check_event_type
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.callback_try_view import CallbackTryView


T = TypeVar("T", bound="CallbackDeliveryView")


@_attrs_define
class CallbackDeliveryView:
    """One event, and how telling the app of it went.

    Attributes:
        id (str):
        type_ (EventType): What happened.
        status (CallbackStatus): Where one message to an app stands.
        tries (int):
        body (Any):
        history (list[CallbackTryView]):
        created_at (datetime.datetime):
        notification_id (None | str | Unset):
        next_try_at (datetime.datetime | None | Unset):
        error (None | str | Unset):
        replayed_at (datetime.datetime | None | Unset):
        delivered_at (datetime.datetime | None | Unset):
    """

    id: str
    type_: EventType
    status: CallbackStatus
    tries: int
    body: Any
    history: list[CallbackTryView]
    created_at: datetime.datetime
    notification_id: None | str | Unset = UNSET
    next_try_at: datetime.datetime | None | Unset = UNSET
    error: None | str | Unset = UNSET
    replayed_at: datetime.datetime | None | Unset = UNSET
    delivered_at: datetime.datetime | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        type_: str = self.type_

        status: str = self.status

        tries = self.tries

        body = self.body

        history = []
        for history_item_data in self.history:
            history_item = history_item_data.to_dict()
            history.append(history_item)

        created_at = self.created_at.isoformat()

        notification_id: None | str | Unset
        if isinstance(self.notification_id, Unset):
            notification_id = UNSET
        else:
            notification_id = self.notification_id

        next_try_at: None | str | Unset
        if isinstance(self.next_try_at, Unset):
            next_try_at = UNSET
        elif isinstance(self.next_try_at, datetime.datetime):
            next_try_at = self.next_try_at.isoformat()
        else:
            next_try_at = self.next_try_at

        error: None | str | Unset
        if isinstance(self.error, Unset):
            error = UNSET
        else:
            error = self.error

        replayed_at: None | str | Unset
        if isinstance(self.replayed_at, Unset):
            replayed_at = UNSET
        elif isinstance(self.replayed_at, datetime.datetime):
            replayed_at = self.replayed_at.isoformat()
        else:
            replayed_at = self.replayed_at

        delivered_at: None | str | Unset
        if isinstance(self.delivered_at, Unset):
            delivered_at = UNSET
        elif isinstance(self.delivered_at, datetime.datetime):
            delivered_at = self.delivered_at.isoformat()
        else:
            delivered_at = self.delivered_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "type": type_,
                "status": status,
                "tries": tries,
                "body": body,
                "history": history,
                "created_at": created_at,
            }
        )
        if notification_id is not UNSET:
            field_dict["notification_id"] = notification_id
        if next_try_at is not UNSET:
            field_dict["next_try_at"] = next_try_at
        if error is not UNSET:
            field_dict["error"] = error
        if replayed_at is not UNSET:
            field_dict["replayed_at"] = replayed_at
        if delivered_at is not UNSET:
            field_dict["delivered_at"] = delivered_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.callback_try_view import CallbackTryView  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        type_ = check_event_type(d.pop("type"))

        status = check_callback_status(d.pop("status"))

        tries = d.pop("tries")

        body = d.pop("body")

        history = []
        _history = d.pop("history")
        for history_item_data in _history:
            history_item = CallbackTryView.from_dict(history_item_data)

            history.append(history_item)

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_notification_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        notification_id = _parse_notification_id(d.pop("notification_id", UNSET))

        def _parse_next_try_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                next_try_at_type_0 = datetime.datetime.fromisoformat(data)

                return next_try_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        next_try_at = _parse_next_try_at(d.pop("next_try_at", UNSET))

        def _parse_error(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        error = _parse_error(d.pop("error", UNSET))

        def _parse_replayed_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                replayed_at_type_0 = datetime.datetime.fromisoformat(data)

                return replayed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        replayed_at = _parse_replayed_at(d.pop("replayed_at", UNSET))

        def _parse_delivered_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                delivered_at_type_0 = datetime.datetime.fromisoformat(data)

                return delivered_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        delivered_at = _parse_delivered_at(d.pop("delivered_at", UNSET))

        callback_delivery_view = cls(
            id=id,
            type_=type_,
            status=status,
            tries=tries,
            body=body,
            history=history,
            created_at=created_at,
            notification_id=notification_id,
            next_try_at=next_try_at,
            error=error,
            replayed_at=replayed_at,
            delivered_at=delivered_at,
        )

        callback_delivery_view.additional_properties = d
        return callback_delivery_view

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
