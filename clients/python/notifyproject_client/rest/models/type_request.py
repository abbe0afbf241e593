from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.type_request_example_data import TypeRequestExampleData
    from ..models.whats_app_template_request import WhatsAppTemplateRequest


T = TypeVar("T", bound="TypeRequest")


@_attrs_define
class TypeRequest:
    """A type, as it is to be. What is left out gets its default, not what it was before.

    Attributes:
        name (str):
        category (str): transactional, marketing, alert
        channels (list[str]): Used when neither the caller nor the recipient names any.
        description (str | Unset):  Default: ''.
        priority (str | Unset): critical, high, normal, low Default: 'normal'.
        max_retries (int | Unset):  Default: 3.
        ttl_seconds (int | None | Unset):
        notify_before_seconds (int | None | Unset):
        on_unknown (str | Unset): When nobody knows whether it went: retry, fail. Default: 'retry'.
        fallback_channel (None | str | Unset): One of the channels, used only if the first other one has not delivered
            in time; null: all channels at once.
        fallback_after_seconds (int | Unset): How long the other channel has for that. Default: 600.
        approved_templates (list[WhatsAppTemplateRequest] | Unset): What WhatsApp has approved for people who have not
            written for a day.
        example_data (TypeRequestExampleData | Unset): Every variable that templates may use, with an example.
        sensitive_variables (list[str] | Unset):
        is_active (bool | Unset):  Default: True.
    """

    name: str
    category: str
    channels: list[str]
    description: str | Unset = ""
    priority: str | Unset = "normal"
    max_retries: int | Unset = 3
    ttl_seconds: int | None | Unset = UNSET
    notify_before_seconds: int | None | Unset = UNSET
    on_unknown: str | Unset = "retry"
    fallback_channel: None | str | Unset = UNSET
    fallback_after_seconds: int | Unset = 600
    approved_templates: list[WhatsAppTemplateRequest] | Unset = UNSET
    example_data: TypeRequestExampleData | Unset = UNSET
    sensitive_variables: list[str] | Unset = UNSET
    is_active: bool | Unset = True

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        category = self.category

        channels = self.channels

        description = self.description

        priority = self.priority

        max_retries = self.max_retries

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

        on_unknown = self.on_unknown

        fallback_channel: None | str | Unset
        if isinstance(self.fallback_channel, Unset):
            fallback_channel = UNSET
        else:
            fallback_channel = self.fallback_channel

        fallback_after_seconds = self.fallback_after_seconds

        approved_templates: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.approved_templates, Unset):
            approved_templates = []
            for approved_templates_item_data in self.approved_templates:
                approved_templates_item = approved_templates_item_data.to_dict()
                approved_templates.append(approved_templates_item)

        example_data: dict[str, Any] | Unset = UNSET
        if not isinstance(self.example_data, Unset):
            example_data = self.example_data.to_dict()

        sensitive_variables: list[str] | Unset = UNSET
        if not isinstance(self.sensitive_variables, Unset):
            sensitive_variables = self.sensitive_variables

        is_active = self.is_active

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "category": category,
                "channels": channels,
            }
        )
        if description is not UNSET:
            field_dict["description"] = description
        if priority is not UNSET:
            field_dict["priority"] = priority
        if max_retries is not UNSET:
            field_dict["max_retries"] = max_retries
        if ttl_seconds is not UNSET:
            field_dict["ttl_seconds"] = ttl_seconds
        if notify_before_seconds is not UNSET:
            field_dict["notify_before_seconds"] = notify_before_seconds
        if on_unknown is not UNSET:
            field_dict["on_unknown"] = on_unknown
        if fallback_channel is not UNSET:
            field_dict["fallback_channel"] = fallback_channel
        if fallback_after_seconds is not UNSET:
            field_dict["fallback_after_seconds"] = fallback_after_seconds
        if approved_templates is not UNSET:
            field_dict["approved_templates"] = approved_templates
        if example_data is not UNSET:
            field_dict["example_data"] = example_data
        if sensitive_variables is not UNSET:
            field_dict["sensitive_variables"] = sensitive_variables
        if is_active is not UNSET:
            field_dict["is_active"] = is_active

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.type_request_example_data import TypeRequestExampleData  # noqa: PLC0415
        from ..models.whats_app_template_request import WhatsAppTemplateRequest  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        category = d.pop("category")

        channels = cast(list[str], d.pop("channels"))

        description = d.pop("description", UNSET)

        priority = d.pop("priority", UNSET)

        max_retries = d.pop("max_retries", UNSET)

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

        on_unknown = d.pop("on_unknown", UNSET)

        def _parse_fallback_channel(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        fallback_channel = _parse_fallback_channel(d.pop("fallback_channel", UNSET))

        fallback_after_seconds = d.pop("fallback_after_seconds", UNSET)

        _approved_templates = d.pop("approved_templates", UNSET)
        approved_templates: list[WhatsAppTemplateRequest] | Unset = UNSET
        if _approved_templates is not UNSET:
            approved_templates = []
            for approved_templates_item_data in _approved_templates:
                approved_templates_item = WhatsAppTemplateRequest.from_dict(
                    approved_templates_item_data
                )

                approved_templates.append(approved_templates_item)

        _example_data = d.pop("example_data", UNSET)
        example_data: TypeRequestExampleData | Unset
        if isinstance(_example_data, Unset):
            example_data = UNSET
        else:
            example_data = TypeRequestExampleData.from_dict(_example_data)

        sensitive_variables = cast(list[str], d.pop("sensitive_variables", UNSET))

        is_active = d.pop("is_active", UNSET)

        type_request = cls(
            name=name,
            category=category,
            channels=channels,
            description=description,
            priority=priority,
            max_retries=max_retries,
            ttl_seconds=ttl_seconds,
            notify_before_seconds=notify_before_seconds,
            on_unknown=on_unknown,
            fallback_channel=fallback_channel,
            fallback_after_seconds=fallback_after_seconds,
            approved_templates=approved_templates,
            example_data=example_data,
            sensitive_variables=sensitive_variables,
            is_active=is_active,
        )

        return type_request
