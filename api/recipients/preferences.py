"""Validates preferences of recipients."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from domain.channels import Channel
from domain.digests import Every
from domain.states import Priority
from domain.time import MAX_REMINDER, MIN_REMINDER
from domain.unchanged import UNCHANGED
from notifications.catalog import types
from notifications.catalog.digests import (
    DEFAULT_AT,
    RECIPIENT_ZONE,
    Day,
    TimeOfDay,
    WindowRequest,
    parse_window,
)
from notifications.catalog.types import TypeConfig
from notifications.validation import (
    ChannelNames,
    ProblemCollector,
    enum_of,
    is_all,
    parse_channels,
    pointer_token,
)
from providers.registry import every_channel
from recipients.registration import PreferenceChanges

from ..http.body import convert
from ..http.fields import QuietHours, check_quiet_hours
from ..http.problems import ApiError
from ..openapi.operations import register
from .schemas import CATEGORIES, stored_quiet_hours, takes_preference

MAX_PREFERENCES = 200
POINTER = "/preferences"
LOCKED_FIELDS = ("muted", "channels", "muted_channels", "notify_before", "digest")
CRITICAL_DETAIL = (
    "Critical types, such as login codes, can't be muted, delayed, or sent on other channels."
)
SENSITIVE_DETAIL = (
    "Types with sensitive variables can't be muted, delayed, or sent on other channels."
)


@register
class DigestScheduleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipient's own schedule of digests, in local time."""

    every: Annotated[str, enum_of(Every)]
    at: Annotated[TimeOfDay, Meta(description="Time of day; `every: hour` uses its minutes.")] = (
        DEFAULT_AT
    )
    days: Annotated[
        list[Day],
        Meta(max_length=7, description="Days; empty: all, or Monday for `every: week`."),
    ] = []
    zone: Annotated[
        str, Meta(max_length=64, description="IANA time zone; recipient: the recipient's.")
    ] = RECIPIENT_ZONE


@register
class PreferenceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A preference for a type or category. Omitted fields stay; null clears a field.

    Critical types and types with sensitive variables have none: they are always sent on the
    channels of the request or type. A category's preference doesn't apply to them.
    """

    muted: Annotated[bool, Meta(description="True: send nothing.")] | UnsetType | None = UNSET
    channels: (
        Annotated[
            ChannelNames,
            Meta(
                description="Replaces the type's channels if the request names none; all: every "
                "channel."
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    muted_channels: (
        Annotated[
            list[Annotated[str, enum_of(Channel)]],
            Meta(
                description="Never used, even if the request names them, and no longer in "
                "`channels`."
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    notify_before: (
        Annotated[
            int,
            Meta(
                ge=int(MIN_REMINDER.total_seconds()),
                le=int(MAX_REMINDER.total_seconds()),
                description="Reminder lead time: seconds before the event.",
                examples=[7200],
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    digest: (
        Annotated[
            Literal["off"] | DigestScheduleRequest,
            Meta(
                description="When digests of the type are sent; off: each message by itself. No "
                "effect on types without a digest.",
                examples=[{"every": "day", "at": "08:00"}],
            ),
        ]
        | UnsetType
        | None
    ) = UNSET


class PreferencesRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to a recipient's preferences. What is omitted stays; null clears it."""

    preferences: (
        Annotated[
            dict[str, Any],
            Meta(
                max_length=MAX_PREFERENCES,
                description="By category or type; a type's overrides its category's. A preference "
                "that is null is removed, and so are all of them if this is null.",
                examples=[
                    {"marketing": {"muted": True}, "contest_reminder": {"notify_before": 7200}}
                ],
                extra_json_schema={
                    "additionalProperties": {
                        "anyOf": [
                            {"$ref": "#/components/schemas/PreferenceRequest"},
                            {"type": "null"},
                        ]
                    }
                },
            ),
        ]
        | UnsetType
        | None
    ) = UNSET
    quiet_hours: (
        Annotated[QuietHours | None, Meta(description="Omitted: unchanged; null: none.")]
        | UnsetType
    ) = UNSET


def parse_preferences(raw: Mapping[str, Any]) -> PreferenceChanges:
    """Return the changes in a body. Raises ApiError or InvalidRequestError."""
    body = convert(raw, PreferencesRequest, check=_changes)
    return _changes(body)


def _changes(body: PreferencesRequest) -> PreferenceChanges:
    problems = ProblemCollector()
    given = {} if isinstance(body.preferences, UnsetType) else body.preferences or {}
    by_name = {
        name: _parse_preference(name, raw_preference, problems)
        for name, raw_preference in given.items()
    }
    hours = body.quiet_hours
    if isinstance(hours, QuietHours):
        check_quiet_hours(hours, problems)
    problems.raise_if_any()
    return PreferenceChanges(
        by_name=by_name,
        removes_others=body.preferences is None,
        quiet_hours=UNCHANGED if isinstance(hours, UnsetType) else stored_quiet_hours(hours),
    )


def _parse_preference(name: str, raw: Any, problems: ProblemCollector) -> dict[str, Any] | None:
    """Return the changed fields, or None to remove the preference."""
    pointer = f"{POINTER}/{pointer_token(name)}"
    if raw is None:
        _check_name(name, PreferenceRequest(), pointer, problems)
        return None
    try:
        preference = convert(raw, PreferenceRequest, pointer=pointer)
    except ApiError as problem:
        for error in problem.errors:
            problems.add(error.pointer, error.code, error.detail)
        return {}
    _check_name(name, preference, pointer, problems)
    stored = {
        field: value
        for field, value in msgspec.structs.asdict(preference).items()
        if not isinstance(value, UnsetType)
    }
    if isinstance(preference.digest, DigestScheduleRequest):
        fields = msgspec.structs.asdict(preference.digest)
        parse_window(WindowRequest(**fields), problems, pointer=f"{pointer}/digest")
        stored["digest"] = fields
    for field in ("channels", "muted_channels"):
        if stored.get(field) is not None:
            stored[field] = _stored_channels(stored[field], f"{pointer}/{field}", problems)
    if set(stored.get("channels") or ()) & set(stored.get("muted_channels") or ()):
        detail = "A channel can't be both preferred and muted."
        problems.add(f"{pointer}/muted_channels", "conflict", detail)
    return stored


def _check_name(
    name: str, preference: PreferenceRequest, pointer: str, problems: ProblemCollector
) -> None:
    try:
        type_config = _find_type(name)
    except types.UnknownTypeError as error:
        suggestion = f" Did you mean {', '.join(error.suggestions)}?" if error.suggestions else ""
        problems.add(pointer, "unknown_type", f"Unknown type or category.{suggestion}")
        return
    if not takes_preference(name):
        is_critical = not types.sensitive_variables(name) or (
            type_config is not None and type_config.priority is Priority.CRITICAL
        )
        code, detail = (
            ("critical", CRITICAL_DETAIL) if is_critical else ("sensitive_type", SENSITIVE_DETAIL)
        )
        for field in LOCKED_FIELDS:
            if getattr(preference, field):
                problems.add(f"{pointer}/{field}", code, detail)
        return
    if type_config is None:
        return
    if preference.notify_before and type_config.notify_before is None:
        problems.add(f"{pointer}/notify_before", "not_a_reminder", "Not a reminder type.")


def _find_type(name: str) -> TypeConfig | None:
    """Return a type, or None for a category or a disabled type. Raises UnknownTypeError."""
    if name in CATEGORIES:
        return None
    if not types.SLUG.fullmatch(name):
        raise types.UnknownTypeError([])
    try:
        return types.get_type(name)
    except types.UnknownTypeError:
        if types.read_type(name) is None:
            raise
        return None


def _stored_channels(names: ChannelNames, pointer: str, problems: ProblemCollector) -> list[str]:
    """Return channels in their stored form. Only ``muted_channels`` may be empty."""
    is_muted = pointer.endswith("muted_channels")
    if is_muted and not names:
        return []
    if is_all(names) and not is_muted:
        return [channel.value for channel in every_channel() if channel.is_personal]
    channels = parse_channels(names, problems=problems, pointer=pointer, takes_all=not is_muted)
    for index, channel in enumerate(channels):
        if not channel.is_personal:
            problems.add(
                f"{pointer}/{index}", "not_personal", "A room is no way to reach a person."
            )
    return [channel.value for channel in channels]
