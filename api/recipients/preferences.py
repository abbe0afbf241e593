"""Validates preferences of recipients."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from domain.digests import Every
from domain.states import Channel, Priority
from domain.time import MAX_REMINDER, MIN_REMINDER
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
from notifications.validation import ProblemCollector, enum_of, parse_channels, pointer_token

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
    """A preference for a type or category. Omitted fields are not set.

    Critical types and types with sensitive variables have none: they are always sent on the
    channels of the request or type. A category's preference doesn't apply to them.
    """

    muted: Annotated[bool, Meta(description="True: send nothing.")] | None = None
    channels: (
        Annotated[
            list[Annotated[str, enum_of(Channel)]],
            Meta(description="Replaces the type's channels if the request names none."),
        ]
        | None
    ) = None
    muted_channels: (
        Annotated[
            list[Annotated[str, enum_of(Channel)]],
            Meta(description="Never used, even if the request names them."),
        ]
        | None
    ) = None
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
        | None
    ) = None
    digest: (
        Annotated[
            Literal["off"] | DigestScheduleRequest,
            Meta(
                description="When digests of the type are sent; off: each message by itself. No "
                "effect on types without a digest.",
                examples=[{"every": "day", "at": "08:00"}],
            ),
        ]
        | None
    ) = None


class PreferencesRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipient's preferences. Omitted fields are cleared."""

    preferences: Annotated[
        dict[str, Any],
        Meta(
            max_length=MAX_PREFERENCES,
            description="By category or type; a type's overrides its category's.",
            examples=[{"marketing": {"muted": True}, "contest_reminder": {"notify_before": 7200}}],
            extra_json_schema={
                "additionalProperties": {"$ref": "#/components/schemas/PreferenceRequest"}
            },
        ),
    ] = {}
    quiet_hours: QuietHours | None = None


def parse_preferences(raw: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """Return preferences and quiet hours as stored; raises ApiError or InvalidRequestError."""
    body = convert(raw, PreferencesRequest)
    problems = ProblemCollector()
    parsed = {
        name: _parse_preference(name, raw_preference, problems)
        for name, raw_preference in body.preferences.items()
    }
    if body.quiet_hours is not None:
        check_quiet_hours(body.quiet_hours, problems)
    problems.raise_if_any()
    stored = {name: preference for name, preference in parsed.items() if preference}
    return stored, stored_quiet_hours(body.quiet_hours)


def _parse_preference(name: str, raw: Any, problems: ProblemCollector) -> dict[str, Any]:
    pointer = f"{POINTER}/{pointer_token(name)}"
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
        if value is not None
    }
    if isinstance(preference.digest, DigestScheduleRequest):
        fields = msgspec.structs.asdict(preference.digest)
        parse_window(WindowRequest(**fields), problems, pointer=f"{pointer}/digest")
        stored["digest"] = fields
    for field in ("channels", "muted_channels"):
        if field in stored:
            stored[field] = _stored_channels(stored[field], f"{pointer}/{field}", problems)
    if set(stored.get("channels", ())) & set(stored.get("muted_channels", ())):
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
    if preference.notify_before is not None and type_config.notify_before is None:
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


def _stored_channels(names: list[str], pointer: str, problems: ProblemCollector) -> list[str]:
    """Return channels in their stored form. Only ``muted_channels`` may be empty."""
    if not names and pointer.endswith("muted_channels"):
        return []
    return [channel.value for channel in parse_channels(names, problems=problems, pointer=pointer)]
