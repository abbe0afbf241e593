from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.attempt_status import AttemptStatus, check_attempt_status
from ..models.channel import Channel, check_channel
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.attempt_view_platform_response_type_0 import (
        AttemptViewPlatformResponseType0,
    )


T = TypeVar("T", bound="AttemptView")


@_attrs_define
class AttemptView:
    """One try to hand a message to a provider.

    Attributes:
        id (str):
        notification_id (str):
        channel (Channel): A way to reach a person.
        attempt_number (int):
        status (AttemptStatus): What became of one try to hand a message to a provider.
        attempted_at (datetime.datetime):
        device_id (None | str | Unset):
        provider (None | str | Unset):
        provider_message_id (None | str | Unset):
        platform_response (AttemptViewPlatformResponseType0 | None | Unset):
        error_code (None | str | Unset):
        error_message (None | str | Unset):
        finished_at (datetime.datetime | None | Unset):
        duration_ms (int | None | Unset):
    """

    id: str
    notification_id: str
    channel: Channel
    attempt_number: int
    status: AttemptStatus
    attempted_at: datetime.datetime
    device_id: None | str | Unset = UNSET
    provider: None | str | Unset = UNSET
    provider_message_id: None | str | Unset = UNSET
    platform_response: AttemptViewPlatformResponseType0 | None | Unset = UNSET
    error_code: None | str | Unset = UNSET
    error_message: None | str | Unset = UNSET
    finished_at: datetime.datetime | None | Unset = UNSET
    duration_ms: int | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.attempt_view_platform_response_type_0 import (
            AttemptViewPlatformResponseType0,  # noqa: PLC0415
        )

        id = self.id

        notification_id = self.notification_id

        channel: str = self.channel

        attempt_number = self.attempt_number

        status: str = self.status

        attempted_at = self.attempted_at.isoformat()

        device_id: None | str | Unset
        if isinstance(self.device_id, Unset):
            device_id = UNSET
        else:
            device_id = self.device_id

        provider: None | str | Unset
        if isinstance(self.provider, Unset):
            provider = UNSET
        else:
            provider = self.provider

        provider_message_id: None | str | Unset
        if isinstance(self.provider_message_id, Unset):
            provider_message_id = UNSET
        else:
            provider_message_id = self.provider_message_id

        platform_response: dict[str, Any] | None | Unset
        if isinstance(self.platform_response, Unset):
            platform_response = UNSET
        elif isinstance(self.platform_response, AttemptViewPlatformResponseType0):
            platform_response = self.platform_response.to_dict()
        else:
            platform_response = self.platform_response

        error_code: None | str | Unset
        if isinstance(self.error_code, Unset):
            error_code = UNSET
        else:
            error_code = self.error_code

        error_message: None | str | Unset
        if isinstance(self.error_message, Unset):
            error_message = UNSET
        else:
            error_message = self.error_message

        finished_at: None | str | Unset
        if isinstance(self.finished_at, Unset):
            finished_at = UNSET
        elif isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        duration_ms: int | None | Unset
        if isinstance(self.duration_ms, Unset):
            duration_ms = UNSET
        else:
            duration_ms = self.duration_ms

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "notification_id": notification_id,
                "channel": channel,
                "attempt_number": attempt_number,
                "status": status,
                "attempted_at": attempted_at,
            }
        )
        if device_id is not UNSET:
            field_dict["device_id"] = device_id
        if provider is not UNSET:
            field_dict["provider"] = provider
        if provider_message_id is not UNSET:
            field_dict["provider_message_id"] = provider_message_id
        if platform_response is not UNSET:
            field_dict["platform_response"] = platform_response
        if error_code is not UNSET:
            field_dict["error_code"] = error_code
        if error_message is not UNSET:
            field_dict["error_message"] = error_message
        if finished_at is not UNSET:
            field_dict["finished_at"] = finished_at
        if duration_ms is not UNSET:
            field_dict["duration_ms"] = duration_ms

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.attempt_view_platform_response_type_0 import (
            AttemptViewPlatformResponseType0,  # noqa: PLC0415
        )

        d = dict(src_dict)
        id = d.pop("id")

        notification_id = d.pop("notification_id")

        channel = check_channel(d.pop("channel"))

        attempt_number = d.pop("attempt_number")

        status = check_attempt_status(d.pop("status"))

        attempted_at = datetime.datetime.fromisoformat(d.pop("attempted_at"))

        def _parse_device_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        device_id = _parse_device_id(d.pop("device_id", UNSET))

        def _parse_provider(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        provider = _parse_provider(d.pop("provider", UNSET))

        def _parse_provider_message_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        provider_message_id = _parse_provider_message_id(d.pop("provider_message_id", UNSET))

        def _parse_platform_response(
            data: object,
        ) -> AttemptViewPlatformResponseType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                platform_response_type_0 = AttemptViewPlatformResponseType0.from_dict(data)

                return platform_response_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(AttemptViewPlatformResponseType0 | None | Unset, data)

        platform_response = _parse_platform_response(d.pop("platform_response", UNSET))

        def _parse_error_code(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        error_code = _parse_error_code(d.pop("error_code", UNSET))

        def _parse_error_message(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        error_message = _parse_error_message(d.pop("error_message", UNSET))

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

        def _parse_duration_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        duration_ms = _parse_duration_ms(d.pop("duration_ms", UNSET))

        attempt_view = cls(
            id=id,
            notification_id=notification_id,
            channel=channel,
            attempt_number=attempt_number,
            status=status,
            attempted_at=attempted_at,
            device_id=device_id,
            provider=provider,
            provider_message_id=provider_message_id,
            platform_response=platform_response,
            error_code=error_code,
            error_message=error_message,
            finished_at=finished_at,
            duration_ms=duration_ms,
        )

        attempt_view.additional_properties = d
        return attempt_view

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
