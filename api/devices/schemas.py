"""Structures of the device operations."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, ClassVar, TypeVar, cast

import msgspec
from bson import ObjectId
from msgspec import UNSET, Meta, UnsetType

from devices.documents import DeviceDocument
from devices.models import DeactivationReason, Platform
from devices.preferences import DevicePreferenceChanges
from devices.presence import Presence
from devices.registration import Credential, Registration
from devices.tokens import MAX_LENGTH, MIN_LENGTH, TOKEN_PATTERN, is_token, mask_token
from domain.unchanged import UNCHANGED
from notifications.models.notification import USER_ID_LENGTH
from notifications.receipts.device_receipts import DeviceEvent
from notifications.validation import FieldProblem, ProblemCollector, enum_of

from ..http.field_errors import ONE_OF, missing_one
from ..http.fields import (
    DeviceId,
    Language,
    NotificationId,
    QuietHours,
    TimeZoneName,
    UserId,
    check_language,
    check_quiet_hours,
    check_time_zone,
    view_of,
)
from ..http.paging import PageView
from ..http.query import one_of
from .browsers import PushSubscriptionRequest, PushSubscriptionView, parse_subscription

MAX_CATEGORIES = 100
IS_ACTIVE_DESCRIPTION = "False, such as when its user signs out: no more push. True: push again."
PLATFORMS = {
    name: platform for platform in Platform for name in (platform.value, platform.value.upper())
}
_SLUG = re.compile(r"[a-z0-9_]{1,64}", re.ASCII)
S = TypeVar("S", bound=msgspec.Struct)
TOKEN_FORM = f"{MIN_LENGTH} to {MAX_LENGTH:,} letters, digits, and _ : -"


Text40 = Annotated[str, Meta(max_length=40)]
Text120 = Annotated[str, Meta(max_length=120)]
DESCRIPTION: Mapping[str, Any] = {
    "app_version": Annotated[Text40 | None, Meta(examples=["2.4.0"])],
    "device_model": Text120 | None,
    "os_version": Text40 | None,
    "language": Language | None,
    "timezone": TimeZoneName | None,
}
"""What an app says of its device: fields of registrations, of changes, and of responses."""


def described(
    *, after: str, fields: Sequence[tuple[str, Any, Any]]
) -> Callable[[type[S]], type[S]]:
    """Return a decorator that adds fields of DESCRIPTION to a structure, ``after`` one of its own.

    ``fields`` are names, types, and defaults.
    """

    def add_fields(structure: type[S]) -> type[S]:
        own: list[tuple[str, Any, Any]] = []
        for field in msgspec.structs.fields(structure):
            default: Any = {"default": field.default, "default_factory": field.default_factory}
            own.append((field.name, field.type, msgspec.field(**default)))
        place = structure.__struct_fields__.index(after) + 1
        complete = msgspec.defstruct(
            structure.__name__,
            [*own[:place], *fields, *own[place:]],
            namespace={"__doc__": structure.__doc__, ONE_OF: getattr(structure, ONE_OF, ())},
            module=structure.__module__,
            kw_only=True,
            frozen=True,
            forbid_unknown_fields=structure.__struct_config__.forbid_unknown_fields,
        )
        return cast("type[S]", complete)

    return add_fields


def _as_shown(kind: Any) -> Any:
    """Return a type without its limits. What is stored may have had others."""
    notes = getattr(kind, "__metadata__", ())
    return Annotated[(str | None, *notes)] if notes else str | None


class DeviceQuietHoursView(msgspec.Struct, kw_only=True, frozen=True):
    """A device's quiet hours."""

    enabled: bool = False
    start: Annotated[str, Meta(examples=["22:00"])]
    end: Annotated[str, Meta(examples=["07:00"])]
    timezone: str | None = None


class DevicePreferencesView(msgspec.Struct, kw_only=True, frozen=True):
    """A device's preferences."""

    enabled: bool = True
    categories: dict[str, bool] = {}
    quiet_hours: DeviceQuietHoursView | None = None


class DeviceStateView(msgspec.Struct, kw_only=True, frozen=True):
    """A device's presence as of its last heartbeat, within the last hour."""

    online: Annotated[bool, Meta(examples=[True])]
    app_foreground: bool
    notification_enabled: Annotated[bool, Meta(examples=[True])]
    last_active: datetime


class DeviceWarningView(msgspec.Struct, kw_only=True, frozen=True):
    """A field of a request that was left out, since it says nothing that the service knows."""

    pointer: Annotated[str, Meta(examples=["/timezone"])]
    code: Annotated[str, Meta(examples=["unknown_timezone"])]
    detail: Annotated[str, Meta(examples=["Expected an IANA zone such as Europe/Lisbon."])]


@described(
    after="platform", fields=[(name, _as_shown(kind), None) for name, kind in DESCRIPTION.items()]
)
class DeviceView(msgspec.Struct, kw_only=True, frozen=True):
    """A device and its presence."""

    id: DeviceId
    user_id: UserId
    device_token: Annotated[str | None, Meta(examples=["cXk3…base"])] = None
    """Masked: its beginning and end. null for a browser with a subscription."""
    subscription: PushSubscriptionView | None = None
    platform: Platform
    notification_preferences: DevicePreferencesView = DevicePreferencesView()
    is_active: Annotated[bool, Meta(examples=[True])]  # False: no push until registered again
    deactivated_at: datetime | None = None
    deactivation_reason: DeactivationReason | None = None
    replaced_by: DeviceId | None = None  # The device of a newer token, to which this ID leads
    replaces: list[DeviceId] = []  # Earlier IDs of the installation, by which it is still found
    last_accepted_at: datetime | None = None
    last_receipt_at: datetime | None = None
    last_seen: datetime | None = None
    state: DeviceStateView | None = None  # null: no heartbeat within the last hour, or unknown
    warnings: list[DeviceWarningView] = []  # Fields of the request that were left out
    created_at: datetime
    updated_at: datetime


class DeviceList(PageView[DeviceView], kw_only=True, frozen=True):
    """A page of devices. ``next`` and ``previous`` are values for the parameter ``cursor``."""


def device_view(
    document: DeviceDocument,
    state: Presence | None,
    *,
    warnings: Sequence[FieldProblem] = (),
) -> DeviceView:
    """Return a stored device as the API shows it."""
    return view_of(
        DeviceView,
        document,
        id=document["_id"],
        device_token=mask_token(token) if (token := document.get("device_token")) else None,
        notification_preferences=document.get("notification_preferences") or {},
        replaces=document.get("replaces") or [],
        state=state and msgspec.convert(state, DeviceStateView, from_attributes=True),
        warnings=[
            DeviceWarningView(pointer=warning.pointer, code=warning.code, detail=warning.detail)
            for warning in warnings
        ],
    )


Token = Annotated[
    str,
    Meta(
        description=f"Firebase's registration token: {TOKEN_FORM}.",
        examples=["cXk3-a-token-of-firebase"],
        extra_json_schema={"pattern": TOKEN_PATTERN},
    ),
]


@described(after="platform", fields=[(name, kind, None) for name, kind in DESCRIPTION.items()])
class DeviceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device to register. Omitted fields are cleared."""

    ONE_OF: ClassVar[Sequence[Sequence[str]]] = (("device_token", "subscription"),)

    user_id: Annotated[UserId, Meta(min_length=1, max_length=USER_ID_LENGTH)]
    device_token: Token | UnsetType = UNSET
    subscription: PushSubscriptionRequest | UnsetType = UNSET
    """Of a browser, in place of `device_token`."""
    platform: Annotated[str, enum_of(Platform), Meta(examples=["android"])]


@described(
    after="device_token",
    fields=[(name, kind | UnsetType, UNSET) for name, kind in DESCRIPTION.items()],
)
class DeviceChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Changes to a device. Omitted fields stay; null clears a field."""

    device_token: (
        Annotated[
            str,
            Meta(
                description="Creates a new device with this one's data and state, which replaces "
                "it.",
                extra_json_schema={"pattern": TOKEN_PATTERN},
            ),
        ]
        | UnsetType
    ) = UNSET
    subscription: PushSubscriptionRequest | UnsetType = UNSET
    """A browser's, which creates a new device as a new token does."""
    is_active: Annotated[bool, Meta(description=IS_ACTIVE_DESCRIPTION)] | UnsetType = UNSET


class HeartbeatRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device's presence, kept for an hour."""

    online: Annotated[bool, Meta(examples=[True])]
    app_foreground: bool
    notification_enabled: Annotated[bool, Meta(examples=[True])]


class DeviceReceiptRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device's receipt for a push."""

    notification_id: Annotated[
        NotificationId, Meta(description="24 hex digits: notification_id in the push's data.")
    ]
    event: Annotated[str, enum_of(DeviceEvent), Meta(examples=["opened"])]


class DevicePreferencesRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Changes to a device's preferences. What is omitted stays; null clears it."""

    enabled: Annotated[bool, Meta(examples=[True])] | UnsetType | None = UNSET
    """False: no push at all."""
    categories: (
        Annotated[
            dict[str, Any],
            Meta(
                max_length=MAX_CATEGORIES,
                description="By category or type; a type's overrides its category's.",
                examples=[{"marketing": False}],
                extra_json_schema={
                    "additionalProperties": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}
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


def parse_registration(body: DeviceRequest) -> tuple[Registration, Sequence[FieldProblem]]:
    """Return the registration in a body, and warnings. Raises InvalidRequestError."""
    problems = ProblemCollector()
    if body.platform not in PLATFORMS:
        problems.add("/platform", "unknown_platform", one_of(list(Platform)))
    problems.check_identifier(body.user_id, "/user_id")
    credential = _credential(body, problems)
    if body.device_token is UNSET and body.subscription is UNSET:
        problems.add(*missing_one(DeviceRequest.ONE_OF[0]))
    is_browser = PLATFORMS.get(body.platform) is Platform.WEB
    if body.subscription is not UNSET and body.platform in PLATFORMS and not is_browser:
        problems.add("/platform", "no_browser", "A subscription is of the platform web.")
    fields, warnings = _device_fields(body, problems)
    problems.raise_if_any()
    new = Registration(
        user_id=body.user_id,
        token=credential or "",
        platform=PLATFORMS[body.platform],
        **fields,
    )
    return new, warnings


def device_changes(
    body: DeviceChanges,
) -> tuple[dict[str, str | None], Credential | None, Sequence[FieldProblem]]:
    """Return the given fields but for activity, the new credential if any, and warnings.

    Raises InvalidRequestError.
    """
    problems = ProblemCollector()
    credential = _credential(body, problems)
    fields, warnings = _device_fields(body, problems)
    problems.raise_if_any()
    return fields, credential, warnings


def _credential(
    body: DeviceRequest | DeviceChanges, problems: ProblemCollector
) -> Credential | None:
    token, subscription = body.device_token, body.subscription
    if not isinstance(token, UnsetType):
        if not isinstance(subscription, UnsetType):
            expected = "A device has a token or a subscription."
            problems.add("/subscription", "not_both", expected)
        _check_token(token, problems)
        return token
    if isinstance(subscription, UnsetType):
        return None
    return parse_subscription(subscription, problems, at="/subscription")


def parse_preferences(body: DevicePreferencesRequest) -> DevicePreferenceChanges:
    """Return the changes in a body. Raises InvalidRequestError."""
    problems = ProblemCollector()
    categories = {} if isinstance(body.categories, UnsetType) else body.categories or {}
    for name, is_enabled in categories.items():
        if not _SLUG.fullmatch(name):
            expected = "Expected slugs of categories or types, such as marketing."
            problems.add("/categories", "invalid_category", expected)
        elif not isinstance(is_enabled, bool | None):
            problems.add(f"/categories/{name}", "wrong_type", "Expected true or false.")
    hours = body.quiet_hours
    if isinstance(hours, QuietHours):
        check_quiet_hours(hours, problems)
    problems.raise_if_any()
    return DevicePreferenceChanges(
        # A device without the field is enabled.
        enabled=None if isinstance(body.enabled, UnsetType) else body.enabled is not False,
        categories=categories,
        removes_categories=body.categories is None,
        quiet_hours=UNCHANGED if isinstance(hours, UnsetType) else msgspec.to_builtins(hours),
    )


def parse_receipt(body: DeviceReceiptRequest) -> tuple[ObjectId, DeviceEvent]:
    """Return the notification and the event of a receipt. Raises InvalidRequestError."""
    problems = ProblemCollector()
    if not ObjectId.is_valid(body.notification_id):
        problems.add("/notification_id", "invalid_id", "Expected 24 hex digits.")
    if body.event not in set(DeviceEvent):
        problems.add("/event", "unknown_event", one_of(list(DeviceEvent)))
    problems.raise_if_any()
    return ObjectId(body.notification_id), DeviceEvent(body.event)


def _check_token(token: str, problems: ProblemCollector) -> None:
    if not is_token(token):
        expected = f"Expected {TOKEN_FORM}."
        problems.add("/device_token", "invalid_token", expected)


def _device_fields(
    body: DeviceRequest | DeviceChanges, problems: ProblemCollector
) -> tuple[dict[str, str | None], Sequence[FieldProblem]]:
    given = {name: getattr(body, name) for name in DESCRIPTION}
    fields = {name: value for name, value in given.items() if not isinstance(value, UnsetType)}
    for name, value in fields.items():
        problems.check_one_line(value, f"/{name}")
    # An operating system has zones and languages of its own, such as GMT+05:30 and Etc/Unknown. A
    # device without one still gets its pushes, unlike one that isn't registered.
    left_out = ProblemCollector()
    if "language" in fields:
        fields["language"] = check_language(fields["language"], "/language", left_out)
    if "timezone" in fields:
        fields["timezone"] = check_time_zone(fields["timezone"], "/timezone", left_out)
    for problem in left_out.problems:
        fields[problem.pointer[1:]] = None
    return fields, left_out.problems
