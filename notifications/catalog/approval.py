"""Which broadcasts another person approves before they are sent."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec
from django.conf import settings
from msgspec import Meta

from domain.states import Category

from ..validation import enum_of

MAX_ABOVE = 100_000_000


class ApprovedBy(StrEnum):
    """Who approves."""

    APPROVERS = "approvers"
    """Whoever has the permission or the scope to approve, other than the authors."""


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which broadcasts of the type another person approves."""

    above: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_ABOVE,
            description="Broadcasts to more recipients than this; 0: all of them.",
            examples=[500],
        ),
    ]
    by: Annotated[str, enum_of(ApprovedBy)] = ApprovedBy.APPROVERS.value


def approval_above(category: str, policy: Mapping[str, Any] | None) -> int | None:
    """Return the recipients that a broadcast may have without an approval; None: any number.

    ``policy`` is that of the type. Of marketing, the lower of both numbers counts, so that a type
    can't loosen the setting.
    """
    bounds = [policy["above"]] if policy is not None else []
    if category == Category.MARKETING and settings.MARKETING_APPROVAL_ABOVE is not None:
        bounds.append(settings.MARKETING_APPROVAL_ABOVE)
    return min(bounds, default=None)


def is_loosened(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether a type's new fields let a broadcast go that had to be approved."""
    old = approval_above(before["category"], before.get("approval"))
    new = approval_above(after["category"], after.get("approval"))
    return old is not None and (new is None or new > old)
