"""What answers about suppressions look like."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from domain.states import Channel
from recipients.models import SuppressionReason


class SuppressionView(msgspec.Struct, kw_only=True, frozen=True):
    """A reason why an address gets nothing more on a channel. There may be several for one."""

    channel: Channel
    address: str | None = None
    """null: of somebody who was erased. It is recognised, and no longer known."""
    reason: SuppressionReason
    source: str
    """Who said so: a provider's name, api, admin or one-click."""
    marketing_only: bool
    """True: receipts and codes still go."""
    created_at: datetime
    expires_at: datetime | None = None


class SuppressionList(msgspec.Struct, kw_only=True, frozen=True):
    """Part of a list. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[SuppressionView]
    next: str | None = None
    previous: str | None = None


class LiftedView(msgspec.Struct, kw_only=True, frozen=True):
    """What no longer holds an address back, and what still does."""

    lifted: list[SuppressionReason]
    standing: list[SuppressionReason]


def suppression_view(document: Mapping[str, Any]) -> SuppressionView:
    """Return a stored suppression as it is shown to apps."""
    shown = {name: document.get(name) for name in SuppressionView.__struct_fields__}
    return msgspec.convert(shown, SuppressionView)
