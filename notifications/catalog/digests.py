"""Digests in definitions of types, in stored types, and in recipients' preferences."""

from collections.abc import Mapping, Sequence
from datetime import time, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta

from domain.channels import INBOX, ROOM, Channel
from domain.digests import (
    MAX_ITEMS,
    MAX_MINUTES,
    MAX_SLIDES,
    MIN_MINUTES,
    Digest,
    Every,
    Schedule,
)
from domain.states import Priority
from domain.stored import known_member
from domain.time import InvalidTimeError, parse_wall_clock, parse_zone
from recipients.documents import DigestWindow, StoredPreference

from ..documents.catalog import NotificationTypeDocument
from ..models.catalog import VARIABLE_LENGTH
from ..validation import ProblemCollector, enum_of, parse_channels

RECIPIENT_ZONE = "recipient"
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DEFAULT_AT = "09:00"
DIGEST_VARIABLE = "digest"
"""The name under which templates of a type with a digest access its messages."""
OFF = "off"
"""A recipient's preference to get each message by itself."""
TimeOfDay = Annotated[str, Meta(max_length=5, examples=["18:00"])]
Day = Annotated[str, Meta(max_length=3, extra_json_schema={"enum": list(DAYS)})]


DEFAULT_CHANNEL = next(iter(Channel))
"""The channel of a digest that names none: the first in lists."""


class WindowRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a digest is sent: some minutes after its first message, or by a schedule."""

    minutes: Annotated[
        Annotated[int, Meta(ge=MIN_MINUTES, le=MAX_MINUTES)] | None,
        Meta(description="Minutes after the first message.", examples=[30]),
    ] = None
    every: Annotated[
        Annotated[str, enum_of(Every)] | None,
        Meta(description="Instead of `minutes`: a schedule in local time."),
    ] = None
    at: Annotated[TimeOfDay, Meta(description="Time of day; `every: hour` uses its minutes.")] = (
        DEFAULT_AT
    )
    days: Annotated[
        list[Day],
        Meta(max_length=7, description="Days; empty: all, or Monday for `every: week`."),
    ] = []
    zone: Annotated[
        str,
        Meta(max_length=64, description="IANA time zone; recipient: that of each recipient."),
    ] = RECIPIENT_ZONE


class DigestRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sends the messages of a type to one recipient as one."""

    channels: Annotated[
        list[Annotated[str, enum_of(Channel)]],
        Meta(description="Each channel has its own digest. In-app has none."),
    ] = msgspec.field(default_factory=lambda: [DEFAULT_CHANNEL.value])
    key: Annotated[
        Annotated[str, Meta(min_length=1, max_length=VARIABLE_LENGTH)] | None,
        Meta(
            description="Variable whose values have digests of their own; null: one for all.",
            examples=["document_id"],
        ),
    ] = None
    window: WindowRequest
    leading: Annotated[
        bool, Meta(description="Send the first message at once, and only later ones as a digest.")
    ] = False
    sliding: Annotated[
        bool,
        Meta(description="Each message moves the end, at most to four times `minutes`."),
    ] = False
    max_items: Annotated[
        int,
        Meta(
            ge=1,
            le=MAX_ITEMS,
            description="Messages in `digest.items`; `digest.more` counts the others.",
        ),
    ] = 20
    min_items: Annotated[
        int, Meta(ge=2, le=MAX_ITEMS, description="Fewer messages are sent one by one.")
    ] = 2
    only_over_limit: Annotated[
        bool,
        Meta(description="Only messages that a limit with `overflow: digest` refuses."),
    ] = False


def parse_digest(
    request: DigestRequest,
    problems: ProblemCollector,
    *,
    allowed: Sequence[Channel],
    priority: str,
    sensitive_variables: Sequence[str],
) -> Digest | None:
    """Return a type's digest, or None after adding each problem."""
    before, pointer = len(problems.problems), "/digest"
    if priority == Priority.CRITICAL:
        problems.add(pointer, "critical_type", "A critical type is sent at once.")
    if sensitive_variables:
        reason = "A digest can't contain sensitive variables."
        problems.add(pointer, "sensitive_type", reason)
    channels = parse_channels(request.channels, problems=problems, pointer=f"{pointer}/channels")
    if INBOX in channels:
        problems.add(f"{pointer}/channels", "not_digested", "In-app shows each message.")
    if ROOM in channels:
        reason = "A room has its own digest, of messages that come too fast."
        problems.add(f"{pointer}/channels", "not_digested", reason)
    if other := [
        channel for channel in channels if not channel.is_inbox and channel not in allowed
    ]:
        reason = f"Not one of the type's channels: {', '.join(other)}."
        problems.add(f"{pointer}/channels", "not_a_channel", reason)
    window = parse_window(request.window, problems, pointer=f"{pointer}/window")
    if request.sliding and request.window.minutes is None:
        problems.add(f"{pointer}/sliding", "conflict", "Needs `window.minutes`.")
    elif request.sliding and (request.window.minutes or 0) * MAX_SLIDES > MAX_MINUTES:
        reason = f"Needs at most {MAX_MINUTES // MAX_SLIDES} minutes."
        problems.add(f"{pointer}/sliding", "out_of_range", reason)
    if request.only_over_limit and request.leading:
        reason = "Messages below the limit are sent at once anyway."
        problems.add(f"{pointer}/leading", "conflict", reason)
    if window is None or len(problems.problems) > before:
        return None
    return Digest(
        channels=tuple(channels),
        window=window,
        key=request.key,
        is_leading=request.leading,
        is_sliding=request.sliding,
        max_items=request.max_items,
        min_items=request.min_items,
        is_only_over_limit=request.only_over_limit,
    )


def parse_window(
    request: WindowRequest, problems: ProblemCollector, *, pointer: str
) -> timedelta | Schedule | None:
    """Return a window, or None after adding each problem."""
    if (request.minutes is None) == (request.every is None):
        problems.add(pointer, "conflict", "Use either `minutes` or `every`.")
        return None
    if request.minutes is not None:
        return timedelta(minutes=request.minutes)
    before = len(problems.problems)
    if request.every not in [member.value for member in Every]:
        problems.add(f"{pointer}/every", "unknown_value", f"Expected one of {', '.join(Every)}.")
    at = time()
    try:
        at = parse_wall_clock(request.at)
    except InvalidTimeError as problem:
        problems.add(f"{pointer}/at", problem.code, str(problem))
    for index, day in enumerate(request.days):
        if day not in DAYS:
            expected = f"Expected one of {', '.join(DAYS)}."
            problems.add(f"{pointer}/days/{index}", "unknown_value", expected)
    zone = None
    if request.zone != RECIPIENT_ZONE:
        try:
            zone = parse_zone(request.zone).key
        except InvalidTimeError as problem:
            problems.add(f"{pointer}/zone", problem.code, str(problem))
    if len(problems.problems) > before or request.every is None:
        return None
    return Schedule(
        every=Every(request.every),
        at=at,
        days=frozenset(DAYS.index(day) for day in request.days),
        zone=zone,
    )


def digest_of(document: NotificationTypeDocument) -> Digest | None:
    """Return the digest of a stored type, or None."""
    stored = document.get("digest")
    if stored is None:
        return None
    return Digest(
        channels=tuple(Channel(name) for name in stored["channels"]),
        window=window_of(stored["window"]),
        key=stored["key"],
        is_leading=stored["leading"],
        is_sliding=stored["sliding"],
        max_items=stored["max_items"],
        min_items=stored["min_items"],
        is_only_over_limit=stored["only_over_limit"],
    )


def preferred_window(
    preferences: Mapping[str, StoredPreference], *, type_slug: str, category: str
) -> timedelta | Schedule | str | None:
    """Return a recipient's digest window for a type, or else for its category.

    OFF if they want none, None if they have no preference.
    """
    for name in (type_slug, category):
        stored = preferences.get(name, {}).get("digest")
        if stored is not None:
            return OFF if isinstance(stored, str) else window_of(stored)
    return None


def window_of(stored: DigestWindow) -> timedelta | Schedule:
    """Return a stored window."""
    if (minutes := stored.get("minutes")) is not None:
        return timedelta(minutes=minutes)
    zone = stored.get("zone", RECIPIENT_ZONE)
    return Schedule(
        every=known_member(stored.get("every") or "", otherwise=Every.DAY),
        at=parse_wall_clock(stored.get("at", DEFAULT_AT)),
        days=frozenset(DAYS.index(day) for day in stored.get("days", ())),
        zone=None if zone == RECIPIENT_ZONE else zone,
    )
