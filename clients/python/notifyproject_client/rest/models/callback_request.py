from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.callback_request_events_item import (
    CallbackRequestEventsItem,
    check_callback_request_events_item,
)

T = TypeVar("T", bound="CallbackRequest")


@_attrs_define
class CallbackRequest:
    """Where to call back, and what for.

    Attributes:
        url (str): https, on port 443 or one above 1024, at a public address.
        events (list[CallbackRequestEventsItem]):
    """

    url: str
    events: list[CallbackRequestEventsItem]

    def to_dict(self) -> dict[str, Any]:
        url = self.url

        events = []
        for events_item_data in self.events:
            events_item: str = events_item_data
            events.append(events_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "url": url,
                "events": events,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        url = d.pop("url")

        events = []
        _events = d.pop("events")
        for events_item_data in _events:
            events_item = check_callback_request_events_item(events_item_data)

            events.append(events_item)

        callback_request = cls(
            url=url,
            events=events,
        )

        return callback_request
