from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.category import Category, check_category
from ..models.channel import Channel, check_channel
from ..models.priority import Priority, check_priority
from ..models.unknown_policy import UnknownPolicy, check_unknown_policy
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.type_view_example_data import TypeViewExampleData
    from ..models.whats_app_template_request import WhatsAppTemplateRequest


T = TypeVar("T", bound="TypeView")


@_attrs_define
class TypeView:
    """A registered type.

    Attributes:
        slug (str):
        name (str):
        description (str):
        category (Category): What a notification is for; marketing needs the recipient's consent.
        priority (Priority): How urgent a notification is; each has queues of its own, served strictly in order.
        channels (list[Channel]):
        max_retries (int):
        on_unknown (UnknownPolicy): What a type wants when nobody can tell whether a message went.
        fallback_after_seconds (int):
        approved_templates (list[WhatsAppTemplateRequest]):
        example_data (TypeViewExampleData):
        sensitive_variables (list[str]):
        is_active (bool):
        template_version (int):
        created_at (datetime.datetime):
        updated_at (datetime.datetime):
        ttl_seconds (int | None | Unset):
        notify_before_seconds (int | None | Unset):
        fallback_channel (Channel | None | Unset):
    """

    slug: str
    name: str
    description: str
    category: Category
    priority: Priority
    channels: list[Channel]
    max_retries: int
    on_unknown: UnknownPolicy
    fallback_after_seconds: int
    approved_templates: list[WhatsAppTemplateRequest]
    example_data: TypeViewExampleData
    sensitive_variables: list[str]
    is_active: bool
    template_version: int
    created_at: datetime.datetime
    updated_at: datetime.datetime
    ttl_seconds: int | None | Unset = UNSET
    notify_before_seconds: int | None | Unset = UNSET
    fallback_channel: Channel | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        slug = self.slug

        name = self.name

        description = self.description

        category: str = self.category

        priority: str = self.priority

        channels = []
        for channels_item_data in self.channels:
            channels_item: str = channels_item_data
            channels.append(channels_item)

        max_retries = self.max_retries

        on_unknown: str = self.on_unknown

        fallback_after_seconds = self.fallback_after_seconds

        approved_templates = []
        for approved_templates_item_data in self.approved_templates:
            approved_templates_item = approved_templates_item_data.to_dict()
            approved_templates.append(approved_templates_item)

        example_data = self.example_data.to_dict()

        sensitive_variables = self.sensitive_variables

        is_active = self.is_active

        template_version = self.template_version

        created_at = self.created_at.isoformat()

        updated_at = self.updated_at.isoformat()

        ttl_seconds: int | None | Unset
        if isinstance(self.ttl_seconds, Unset):
            ttl_seconds = UNSET
        else:
            ttl_seconds = self.ttl_seconds

        notify_before_seconds: int | None | Unset
        if isinstance(self.notify_before_seconds, Unset):
            notify_before_seconds = UNSET
        else:
            notify_before_seconds = self.notify_before_seconds

        fallback_channel: None | str | Unset
        if isinstance(self.fallback_channel, Unset):
            fallback_channel = UNSET
        elif isinstance(self.fallback_channel, str):
            fallback_channel = self.fallback_channel
        else:
            fallback_channel = self.fallback_channel

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "slug": slug,
                "name": name,
                "description": description,
                "category": category,
                "priority": priority,
                "channels": channels,
                "max_retries": max_retries,
                "on_unknown": on_unknown,
                "fallback_after_seconds": fallback_after_seconds,
                "approved_templates": approved_templates,
                "example_data": example_data,
                "sensitive_variables": sensitive_variables,
                "is_active": is_active,
                "template_version": template_version,
                "created_at": created_at,
                "updated_at": updated_at,
            }
        )
        if ttl_seconds is not UNSET:
            field_dict["ttl_seconds"] = ttl_seconds
        if notify_before_seconds is not UNSET:
            field_dict["notify_before_seconds"] = notify_before_seconds
        if fallback_channel is not UNSET:
            field_dict["fallback_channel"] = fallback_channel

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.type_view_example_data import TypeViewExampleData  # noqa: PLC0415
        from ..models.whats_app_template_request import WhatsAppTemplateRequest  # noqa: PLC0415

        d = dict(src_dict)
        slug = d.pop("slug")

        name = d.pop("name")

        description = d.pop("description")

        category = check_category(d.pop("category"))

        priority = check_priority(d.pop("priority"))

        channels = []
        _channels = d.pop("channels")
        for channels_item_data in _channels:
            channels_item = check_channel(channels_item_data)

            channels.append(channels_item)

        max_retries = d.pop("max_retries")

        on_unknown = check_unknown_policy(d.pop("on_unknown"))

        fallback_after_seconds = d.pop("fallback_after_seconds")

        approved_templates = []
        _approved_templates = d.pop("approved_templates")
        for approved_templates_item_data in _approved_templates:
            approved_templates_item = WhatsAppTemplateRequest.from_dict(
                approved_templates_item_data
            )

            approved_templates.append(approved_templates_item)

        example_data = TypeViewExampleData.from_dict(d.pop("example_data"))

        sensitive_variables = cast(list[str], d.pop("sensitive_variables"))

        is_active = d.pop("is_active")

        template_version = d.pop("template_version")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        updated_at = datetime.datetime.fromisoformat(d.pop("updated_at"))

        def _parse_ttl_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ttl_seconds = _parse_ttl_seconds(d.pop("ttl_seconds", UNSET))

        def _parse_notify_before_seconds(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        notify_before_seconds = _parse_notify_before_seconds(d.pop("notify_before_seconds", UNSET))

        def _parse_fallback_channel(data: object) -> Channel | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                fallback_channel_type_0 = check_channel(data)

                return fallback_channel_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Channel | None | Unset, data)

        fallback_channel = _parse_fallback_channel(d.pop("fallback_channel", UNSET))

        type_view = cls(
            slug=slug,
            name=name,
            description=description,
            category=category,
            priority=priority,
            channels=channels,
            max_retries=max_retries,
            on_unknown=on_unknown,
            fallback_after_seconds=fallback_after_seconds,
            approved_templates=approved_templates,
            example_data=example_data,
            sensitive_variables=sensitive_variables,
            is_active=is_active,
            template_version=template_version,
            created_at=created_at,
            updated_at=updated_at,
            ttl_seconds=ttl_seconds,
            notify_before_seconds=notify_before_seconds,
            fallback_channel=fallback_channel,
        )

        type_view.additional_properties = d
        return type_view

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
