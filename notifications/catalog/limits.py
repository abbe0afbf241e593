"""Limits for recipients: their definitions in requests, stored, and cached in each process."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import msgspec
from django.conf import settings
from msgspec import Meta
from pymongo.client_session import ClientSession

from domain.channels import Channel
from domain.limits import (
    MAX_PERIOD,
    MAX_USES,
    MIN_PERIOD,
    Limit,
    LimitUsage,
    Overflow,
    next_allowed,
)
from domain.states import Category, Priority
from notifications.documents.policies import LimitUsesDocument
from notifications.store.limit_uses import read_counters, stricter_of
from notifyproject.platform.cache import SharedCache
from recipients.suppressions import suppression_keys

from ..documents.policies import LIMITS, LimitDocument
from ..validation import ProblemCollector, enum_of, parse_channels
from . import types

MAX_PERIOD_SECONDS = int(MAX_PERIOD.total_seconds())
MIN_PERIOD_SECONDS = int(MIN_PERIOD.total_seconds())
DEFAULT_CHANNELS = tuple(
    channel.value for channel in Channel if channel.is_personal and not channel.is_inbox
)
MAX_TYPES = 100
MAX_LIMITS = 50
"""Each limit that applies costs a send one more write."""
CODES = "sms_codes"
"""The name of the limits of codes by SMS to a number, which come from the settings."""
CODES_PERIOD = timedelta(minutes=10)


class LimitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit for each recipient. Without types and categories, it applies to all messages."""

    types: Annotated[
        list[Annotated[str, Meta(max_length=64)]],
        Meta(max_length=MAX_TYPES, description="Types that count."),
    ] = []
    categories: Annotated[
        list[Annotated[str, enum_of(Category)]],
        Meta(description="Categories that count.", examples=[["marketing"]]),
    ] = []
    channels: Annotated[
        list[Annotated[str, enum_of(Channel)]],
        Meta(description="Channels that count together. In-app is never limited."),
    ] = msgspec.field(default_factory=lambda: list(DEFAULT_CHANNELS))
    max: Annotated[
        int, Meta(ge=1, le=MAX_USES, description="Messages in the period.", examples=[3])
    ]
    period_seconds: Annotated[
        int,
        Meta(
            ge=MIN_PERIOD_SECONDS,
            le=MAX_PERIOD_SECONDS,
            description="The period rolls: it ends now.",
            examples=[604_800],
        ),
    ]
    min_gap_seconds: Annotated[
        int, Meta(ge=0, le=MAX_PERIOD_SECONDS, description="Least time between two messages.")
    ] = 0
    overflow: Annotated[
        str,
        enum_of(Overflow),
        Meta(
            description="later: a message beyond the limit waits, up to ten for each recipient. "
            "digest: it waits for its type's digest, or as with later. drop: it is suppressed."
        ),
    ] = Overflow.LATER.value


class StricterLimitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipient's own values for a limit. They apply if they are stricter."""

    max: Annotated[int, Meta(ge=1, le=MAX_USES, examples=[1])] | None = None
    """null: that of the limit."""
    min_gap_seconds: Annotated[int, Meta(ge=0, le=MAX_PERIOD_SECONDS)] = 0


def validate_limit(
    name: str,
    request: LimitRequest,
    *,
    known: Collection[str] | None = None,
    new_types: Collection[str] = (),
) -> dict[str, Any]:
    """Return a limit's stored fields. Raises InvalidRequestError with every problem.

    ``known`` are the limits beside it; None: those that there are. ``new_types`` are types that are
    stored with it.
    """
    problems = ProblemCollector()
    check_name(name, problems)
    _check_new_name(name, problems, known=known)
    slugs: list[str] = []
    for index, slug in enumerate(request.types):
        try:
            slugs.append(slug if slug in new_types else types.stored_slug(slug))
        except types.UnknownTypeError:
            problems.add(f"/types/{index}", "unknown_type", "Unknown type.")
    for index, category in enumerate(request.categories):
        if category not in [member.value for member in Category]:
            expected = f"Expected one of {', '.join(Category)}."
            problems.add(f"/categories/{index}", "unknown_value", expected)
    channels = parse_channels(request.channels, problems=problems)
    if not all(map(is_limited, channels)):
        problems.add("/channels", "not_limited", "In-app and rooms are never limited.")
    if request.overflow not in [member.value for member in Overflow]:
        problems.add("/overflow", "unknown_value", f"Expected one of {', '.join(Overflow)}.")
    if request.min_gap_seconds * (request.max - 1) > request.period_seconds:
        reason = "`max` messages with this gap don't fit into the period."
        problems.add("/min_gap_seconds", "out_of_range", reason)
    problems.raise_if_any()
    return {
        "types": list(dict.fromkeys(slugs)),
        "categories": list(dict.fromkeys(request.categories)),
        "channels": [channel.value for channel in channels],
        "max": request.max,
        "period_seconds": request.period_seconds,
        "min_gap_seconds": request.min_gap_seconds,
        "overflow": request.overflow,
    }


def check_name(name: str, problems: ProblemCollector) -> None:
    """Add a problem if no limit can have a name."""
    if not types.SLUG.fullmatch(name):
        expected = "lower-case letters, digits and underscores, starting with a letter"
        problems.add("", "invalid_slug", f"Must be 1 to 64 {expected}.")


def _check_new_name(
    name: str, problems: ProblemCollector, *, known: Collection[str] | None
) -> None:
    if name == CODES:
        problems.add("", "reserved", "Set SMS_CODES_PER_NUMBER in place of this limit.")
    if known is None:
        known = {document["_id"] for document in read_limits()}
    if name not in known and len(known) >= MAX_LIMITS:
        problems.add("", "too_many", f"At most {MAX_LIMITS} limits.")


def define_limit(name: str, fields: Mapping[str, Any], *, now: datetime) -> bool:
    """Store a limit and return whether it is new. Raises PyMongoError."""
    is_new = store_limit(name, fields, now=now)
    invalidate_limits()
    return is_new


def store_limit(
    name: str, fields: Mapping[str, Any], *, now: datetime, session: ClientSession | None = None
) -> bool:
    """Store a limit, in a transaction if there is a session. Return whether it is new.

    Processes know it once :func:`invalidate_limits` was called. Raises PyMongoError.
    """
    result = LIMITS().update_one(
        {"_id": name},
        {"$set": {**fields, "updated_at": now}, "$setOnInsert": {"created_at": now}},
        upsert=True,
        session=session,
    )
    return result.upserted_id is not None


def remove_limit(name: str) -> bool:
    """Remove a limit and return whether there was one. What it holds keeps its time."""
    is_removed = delete_limit(name)
    invalidate_limits()
    return is_removed


def delete_limit(name: str, *, session: ClientSession | None = None) -> bool:
    """Remove a limit as :func:`store_limit` stores one. Return whether there was one."""
    return LIMITS().delete_one({"_id": name}, session=session).deleted_count > 0


def read_limit(name: str) -> LimitDocument | None:
    """Return a limit's document, or None."""
    return LIMITS().find_one({"_id": name})


def read_limits() -> list[LimitDocument]:
    """Return the documents of all limits by name, uncached."""
    return list(LIMITS().find().sort("_id", 1))


def active_limits() -> Sequence[Limit]:
    """Return all limits by name."""
    return _limits.get()


def is_limited(channel: Channel) -> bool:
    """Return whether limits can apply to a channel."""
    return channel.value in DEFAULT_CHANNELS


def may_apply(channel: Channel) -> bool:
    """Return whether any limit may count messages of a channel."""
    return bool(active_limits()) or limits_codes(channel)


def limits_codes(channel: Channel) -> bool:
    """Return whether the codes that an address gets on a channel are limited.

    Each part is paid for, and anybody can ask for codes to numbers whose carrier shares the price.
    """
    return channel.pays_by_part and settings.SMS_CODES_PER_NUMBER > 0


def limit_of_codes(channel: Channel, type_slug: str) -> Limit:
    """Return the limit of the codes of a type that an address gets, whichever app asks.

    Each type has its own, so that the PINs of parcels use up no login codes.
    """
    return Limit(
        name=f"{CODES}:{type_slug}",
        channels=frozenset({channel}),
        maximum=settings.SMS_CODES_PER_NUMBER,
        period=CODES_PERIOD,
        overflow=Overflow.DROP,
        counts_addresses=True,
    )


def person_counted(
    applying: Sequence[Limit], *, user_id: str | None, channel: Channel, address: str | None
) -> str | None:
    """Return the key under which limits count a message."""
    by_address = any(limit.counts_addresses for limit in applying)
    return person_of(user_id=None if by_address else user_id, channel=channel, address=address)


def person_of(*, user_id: str | None, channel: Channel, address: str | None) -> str | None:
    """Return the key under which messages count: of the user ID, or else of the address."""
    if user_id is not None:
        return person_of_user(user_id)
    return suppression_keys(channel.value, address)[0] if address else None


def person_of_user(user_id: str) -> str:
    """Return the key of a recipient with a user ID."""
    return f"user:{user_id}"


def applying_limits(
    *,
    type_slug: str,
    template_id: str | None,
    category: Category,
    priority: Priority,
    channel: Channel,
    is_test: bool,
) -> list[Limit]:
    """Return the limits that count a message.

    None counts critical, in-app, and test messages, those to rooms, and those with sensitive
    variables. Only the limit of codes counts the last.
    """
    if is_test or not is_limited(channel):
        return []
    if limits_codes(channel) and types.sensitive_variables(type_slug, template_id):
        return [limit_of_codes(channel, type_slug)]
    # Limits are shared by all clients: one client's campaign must not hold another's codes.
    if priority is Priority.CRITICAL:
        return []
    if types.is_locked(type_slug, template_id):
        return []
    return [
        limit
        for limit in active_limits()
        if limit.applies_to(type_slug=type_slug, category=category, channel=channel)
    ]


def read_usage(limits: Sequence[Limit], *, person: str, now: datetime) -> list[LimitUsage]:
    """Return how much of each limit a person has used. Raises PyMongoError."""
    return read_usages({person: limits}, now=now)[person]


def read_usages(
    limits: Mapping[str, Sequence[Limit]], *, now: datetime
) -> dict[str, list[LimitUsage]]:
    """Return how much of their limits people have used, with one read. Raises PyMongoError."""
    wanted = [(limit.name, person) for person, own in limits.items() for limit in own]
    counters = read_counters(wanted) if wanted else {}
    return {
        person: [_usage_of(limit, counters.get((limit.name, person)), now) for limit in own]
        for person, own in limits.items()
    }


def _usage_of(limit: Limit, counter: LimitUsesDocument | None, now: datetime) -> LimitUsage:
    own = limit if counter is None else stricter_of(counter).applied_to(limit)
    times = [] if counter is None else [use["at"] for use in counter.get("uses", ())]
    uses = sorted(at for at in times if at > now - own.period)
    line = () if counter is None else counter.get("waiting", ())
    planned = [place["until"] for place in line if place["until"] > now]
    return LimitUsage(
        limit=own,
        uses=uses,
        waiting=len(planned),
        next_at=next_allowed(own, taken=[*uses, *planned], not_before=now),
        is_stricter=counter is not None and bool(counter.get("own")),
    )


def invalidate_limits() -> None:
    """Make every process reload the limits. Raises PyMongoError."""
    _limits.invalidate()


def limit_of(document: LimitDocument) -> Limit:
    """Return a stored limit."""
    return Limit(
        name=document["_id"],
        types=frozenset(document["types"]),
        categories=frozenset(Category(category) for category in document["categories"]),
        channels=frozenset(Channel(channel) for channel in document["channels"]),
        maximum=document["max"],
        period=timedelta(seconds=document["period_seconds"]),
        min_gap=timedelta(seconds=document["min_gap_seconds"]),
        overflow=Overflow(document["overflow"]),
    )


_limits = SharedCache("limits", lambda: tuple(limit_of(limit) for limit in read_limits()))
