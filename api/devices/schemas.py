"""Devices in the API."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import msgspec
from bson import ObjectId
from msgspec import UNSET, Meta, UnsetType

from devices.models import DeactivationReason, Platform
from devices.preferences import Preferences
from devices.presence import Presence
from devices.registration import Registration
from devices.tokens import MAX_LENGTH, is_token, mask_token
from notifications.models.notification import USER_ID_LENGTH
from notifications.receipts.device_receipts import DeviceEvent
from notifications.validation import ProblemCollector, has_control_characters

from ..http.fields import (
    Language,
    QuietHours,
    TimeZoneName,
    check_language,
    check_quiet_hours,
    check_time_zone,
)


class DeviceQuietHoursView(msgspec.Struct, kw_only=True, frozen=True):
    """When a device is left alone."""

    enabled: bool = False
    start: str
    end: str
    timezone: str | None = None


class DevicePreferencesView(msgspec.Struct, kw_only=True, frozen=True):
    """What a device wants to be told."""

    enabled: bool = True
    categories: dict[str, bool] = {}
    quiet_hours: DeviceQuietHoursView | None = None


class DeviceStateView(msgspec.Struct, kw_only=True, frozen=True):
    """How a device was when its app last sent a heartbeat, within the last hour."""

    online: bool
    app_foreground: bool
    notification_enabled: bool
    last_active: datetime


class DeviceView(msgspec.Struct, kw_only=True, frozen=True):
    """A device and where it stands."""

    id: str
    user_id: str
    device_token: str
    """Its beginning and end."""
    platform: Platform
    app_version: str | None = None
    device_model: str | None = None
    os_version: str | None = None
    language: str | None = None
    timezone: str | None = None
    notification_preferences: DevicePreferencesView = DevicePreferencesView()
    is_active: bool
    """False: nothing is pushed to it until it registers again."""
    deactivated_at: datetime | None = None
    deactivation_reason: DeactivationReason | None = None
    last_accepted_at: datetime | None = None
    """When the push provider last took a message for it."""
    last_receipt_at: datetime | None = None
    """When the device itself last reported a message."""
    last_seen: datetime | None = None
    state: DeviceStateView | None = None
    """null: no heartbeat for an hour, or nobody can tell now."""
    created_at: datetime
    updated_at: datetime


class DeviceList(msgspec.Struct, kw_only=True, frozen=True):
    """Part of a list. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[DeviceView]
    next: str | None
    previous: str | None


def device_view(document: Mapping[str, Any], state: Presence | None) -> DeviceView:
    """Return a stored device as it is shown to apps."""
    fields = {name: document[name] for name in _COPIED_FIELDS & document.keys()}
    return msgspec.convert(
        {
            **fields,
            "id": document["_id"],
            "device_token": mask_token(document["device_token"]),
            "notification_preferences": document.get("notification_preferences") or {},
            "state": _state_view(state) if state is not None else None,
        },
        DeviceView,
    )


_COMPUTED_FIELDS = {"id", "device_token", "notification_preferences", "state"}
_COPIED_FIELDS = set(DeviceView.__struct_fields__) - _COMPUTED_FIELDS


def _state_view(state: Presence) -> DeviceStateView:
    return DeviceStateView(
        online=state.online,
        app_foreground=state.app_foreground,
        notification_enabled=state.notification_enabled,
        last_active=state.last_active,
    )


MAX_CATEGORIES = 100
TOKEN_DESCRIPTION = (
    "A new token makes a new device with all that is known of this one, which is switched off."
)
IS_ACTIVE_DESCRIPTION = (
    "False, such as when its user signs out: nothing more is pushed to it. True: again."
)
PLATFORMS = {name: one for one in Platform for name in (one.value, one.value.upper())}
"""Platforms by how they may be written."""
_ONE_LINE_FIELDS = ("app_version", "device_model", "os_version")
_SLUG = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
Text40 = Annotated[str, Meta(max_length=40)]
Text120 = Annotated[str, Meta(max_length=120)]
Token = Annotated[str, Meta(description=f"1 to {MAX_LENGTH} visible ASCII characters.")]


class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device to register. What is left out is not known afterwards."""

    user_id: Annotated[str, Meta(min_length=1, max_length=USER_ID_LENGTH)]
    device_token: Token
    platform: Annotated[str, Meta(description="android, ios or web.")]
    app_version: Text40 | None = None
    device_model: Text120 | None = None
    os_version: Text40 | None = None
    language: Language | None = None
    timezone: TimeZoneName | None = None


class DeviceChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What has changed of a device. What is left out stays; null forgets a value."""

    device_token: Annotated[str, Meta(description=TOKEN_DESCRIPTION)] | UnsetType = UNSET
    app_version: Text40 | UnsetType | None = UNSET
    device_model: Text120 | UnsetType | None = UNSET
    os_version: Text40 | UnsetType | None = UNSET
    language: Language | UnsetType | None = UNSET
    timezone: TimeZoneName | UnsetType | None = UNSET
    is_active: Annotated[bool, Meta(description=IS_ACTIVE_DESCRIPTION)] | UnsetType = UNSET


class HeartbeatRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a device is now. It is forgotten after an hour."""

    online: bool
    app_foreground: bool
    notification_enabled: bool


class DeviceReceiptRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a push at a device."""

    notification_id: Annotated[
        str, Meta(description="24 hex digits: notification_id in the data of the push.")
    ]
    event: Annotated[
        str,
        Meta(
            description="delivered or opened.",
            extra_json_schema={"enum": [event.value for event in DeviceEvent]},
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of which push."""

    notification_id: ObjectId
    event: DeviceEvent


class QuietHoursRequest(QuietHours, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A daily span of local time in which a device is left alone: start included, end not."""


class DevicePreferencesRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """What a device wants to be told. What is left out is as if it had never been told."""

    enabled: bool = True
    """False: nothing at all."""
    categories: Annotated[
        dict[str, Any],
        Meta(
            max_length=MAX_CATEGORIES,
            description="By category or type; a type goes before its category.",
            examples=[{"marketing": False}],
            extra_json_schema={"additionalProperties": {"type": "boolean"}},
        ),
    ] = {}
    quiet_hours: QuietHoursRequest | None = None


def registration(body: DeviceRequest) -> Registration:
    """Return the registration a body is; raises InvalidRequestError."""
    problems = ProblemCollector()
    if body.platform not in PLATFORMS:
        expected = f"Expected one of {', '.join(Platform)}."
        problems.add("/platform", "unknown_platform", expected)
    _check_token(body.device_token, problems)
    fields = _device_fields(body)
    _check_device_fields(fields, problems)
    problems.raise_if_any()
    return Registration(
        user_id=body.user_id,
        token=body.device_token,
        platform=PLATFORMS[body.platform],
        **fields,
    )


def device_changes(body: DeviceChanges) -> dict[str, str | None]:
    """Return what a body changes of a device's description; raises InvalidRequestError."""
    problems = ProblemCollector()
    if body.device_token is not UNSET:
        _check_token(body.device_token, problems)
    fields = _device_fields(body)
    _check_device_fields(fields, problems)
    problems.raise_if_any()
    return fields


def parse_preferences(body: DevicePreferencesRequest) -> Preferences:
    """Return the preferences a body is; raises InvalidRequestError."""
    problems = ProblemCollector()
    for name, is_enabled in body.categories.items():
        if not _SLUG.fullmatch(name):
            slug = "A category or type is named by its slug, such as marketing."
            problems.add("/categories", "invalid_category", slug)
        elif not isinstance(is_enabled, bool):
            problems.add(f"/categories/{name}", "wrong_type", "Expected true or false.")
    if body.quiet_hours is not None:
        check_quiet_hours(body.quiet_hours, problems)
    problems.raise_if_any()
    return Preferences(
        enabled=body.enabled,
        categories=body.categories,
        quiet_hours=msgspec.to_builtins(body.quiet_hours) if body.quiet_hours else None,
    )


def parse_receipt(body: DeviceReceiptRequest) -> Receipt:
    """Return the receipt a body is; raises InvalidRequestError."""
    problems = ProblemCollector()
    if not ObjectId.is_valid(body.notification_id):
        problems.add("/notification_id", "invalid_id", "Expected 24 hex digits.")
    if body.event not in set(DeviceEvent):
        problems.add("/event", "unknown_event", f"Expected one of {', '.join(DeviceEvent)}.")
    problems.raise_if_any()
    return Receipt(notification_id=ObjectId(body.notification_id), event=DeviceEvent(body.event))


def _check_token(token: str, problems: ProblemCollector) -> None:
    if not is_token(token):
        expected = f"A token has 1 to {MAX_LENGTH} visible ASCII characters."
        problems.add("/device_token", "invalid_token", expected)


def _device_fields(body: DeviceRequest | DeviceChanges) -> dict[str, str | None]:
    """Return what a body says of the device; what it leaves unset is left out."""
    given = {name: getattr(body, name) for name in (*_ONE_LINE_FIELDS, "language", "timezone")}
    return {name: value for name, value in given.items() if not isinstance(value, UnsetType)}


def _check_device_fields(fields: dict[str, str | None], problems: ProblemCollector) -> None:
    for name in _ONE_LINE_FIELDS:
        if has_control_characters(fields.get(name) or ""):
            problems.add(f"/{name}", "control_characters", "One line without control characters.")
    check_language(fields.get("language"), "/language", problems)
    check_time_zone(fields.get("timezone"), "/timezone", problems)
