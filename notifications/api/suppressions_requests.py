"""What apps send about suppressions, and whether it makes sense."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import msgspec
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta

from domain import time
from recipients.addresses import ADDRESSED, EMAIL
from recipients.models import SuppressionReason

from ..intake.requests import Timestamp
from ..validation import InvalidAddressError, ProblemCollector, normalize_email, normalize_phone
from . import paging
from .paging import Asked
from .parameters import check_names

LIST = "suppressions"
REASONS = frozenset(reason.value for reason in SuppressionReason)
CHANNEL_FILTER = OpenApiParameter("channel", str, enum=list(ADDRESSED))
REASON_FILTER = OpenApiParameter("reason", str, enum=sorted(REASONS))
DESCRIBED = (CHANNEL_FILTER, REASON_FILTER, *paging.DESCRIBED)


class SuppressionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why an address gets nothing more. What stands already for this reason is never loosened."""

    reason: Annotated[str, Meta(extra_json_schema={"enum": sorted(REASONS)})] = (
        SuppressionReason.MANUAL.value
    )
    marketing_only: Annotated[bool, Meta(description="True: receipts and codes still go.")] = False
    expires_at: (
        Annotated[Timestamp, Meta(description="Until when, of a manual one; null: until lifted.")]
        | None
    ) = None


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """A suppression to add."""

    channel: str
    address: str
    reason: SuppressionReason
    marketing_only: bool
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What part of which suppressions is asked for."""

    asked: Asked
    channel: str | None
    reason: SuppressionReason | None


def new(channel: str, address: str, body: SuppressionRequest, *, now: datetime) -> New:
    """Return the suppression a body is; raises InvalidRequest."""
    problems = ProblemCollector()
    known = _address(channel, address, problems)
    if body.reason not in REASONS:
        problems.add("/reason", "unknown_reason", _expected(REASONS))
    expires_at = _expiry(body, now, problems)
    problems.raise_if_any()
    return New(
        channel=channel,
        address=known,
        reason=SuppressionReason(body.reason),
        marketing_only=body.marketing_only,
        expires_at=expires_at,
    )


def list_request(query: QueryDict) -> ListRequest:
    """Return a checked list request; raises Problem 400 or InvalidRequest."""
    problems = ProblemCollector()
    asked = paging.parse(query, of=LIST, problems=problems, others=("channel", "reason"))
    channel = _one_of(query, "channel", ADDRESSED, problems)
    reason = _one_of(query, "reason", REASONS, problems)
    problems.raise_if_any()
    return ListRequest(
        asked=asked, channel=channel, reason=SuppressionReason(reason) if reason else None
    )


def named_reason(query: QueryDict) -> SuppressionReason | None:
    """Return the reason that is to be lifted; None if none is named.

    Raises Problem 400 or InvalidRequest.
    """
    problems = ProblemCollector()
    check_names(query, allowed={"reason"})
    reason = _one_of(query, "reason", REASONS, problems)
    problems.raise_if_any()
    return SuppressionReason(reason) if reason else None


def _address(channel: str, address: str, problems: ProblemCollector) -> str:
    """Return the address of the path; what is wrong with it is told of the whole request."""
    if channel not in ADDRESSED:
        problems.add("", "unknown_channel", _expected(ADDRESSED))
        return address
    try:
        return normalize_email(address) if channel == EMAIL else normalize_phone(address)
    except InvalidAddressError as problem:
        code = "invalid_email" if channel == EMAIL else "invalid_phone"
        problems.add("", code, str(problem))
        return address


def _expiry(body: SuppressionRequest, now: datetime, problems: ProblemCollector) -> datetime | None:
    if body.expires_at is None:
        return None
    if body.reason != SuppressionReason.MANUAL:
        problems.add("/expires_at", "conflict", "Only a manual suppression is for a time.")
        return None
    try:
        expires_at = time.parse_timestamp(body.expires_at)
    except time.InvalidTimeError as problem:
        problems.add("/expires_at", problem.code, str(problem))
        return None
    if expires_at <= now:
        problems.add("/expires_at", "in_the_past", "It would be over before it begins.")
    return expires_at


def _one_of(
    query: QueryDict, name: str, words: Collection[str], problems: ProblemCollector
) -> str | None:
    value = query.get(name)
    if value is not None and value not in words:
        problems.add(f"/{name}", "unknown_value", _expected(words))
        return None
    return value


def _expected(words: Collection[str]) -> str:
    return f"Expected one of {', '.join(sorted(words))}."
