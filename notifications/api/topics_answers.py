"""What answers about topics look like."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec


class MemberView(msgspec.Struct, kw_only=True, frozen=True):
    """A member of a topic."""

    user_id: str
    topic: str
    created_at: datetime


class MemberList(msgspec.Struct, kw_only=True, frozen=True):
    """Part of a list. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[MemberView]
    next: str | None
    previous: str | None


def member_view(document: Mapping[str, Any]) -> MemberView:
    """Return a stored membership as it is shown to apps."""
    return MemberView(
        user_id=document["user_id"], topic=document["topic"], created_at=document["created_at"]
    )
