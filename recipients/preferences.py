"""What a person wants to be told, and where. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

CHANNEL_FIELDS = ("muted", "channels", "muted_channels")
"""Parts of a wish that hold together: a type's go before its category's as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """What a person wants of one type."""

    muted: bool = False
    """Nothing of it, on any channel."""
    channels: tuple[str, ...] = ()
    """Used in place of the type's when the app names none; empty: the type's."""
    muted_channels: frozenset[str] = frozenset()
    """Nothing of it on these, whoever names them."""
    notify_before: timedelta | None = None
    """How long before an event to be reminded of it; None: as long as the type says."""


NO_PREFERENCE = Preference()
"""The wish of somebody who has told none."""


def preference_for(preferences: Mapping[str, Any], *, type_slug: str, category: str) -> Preference:
    """Return what holds for a type: what was told of it, or else of its category.

    Stored by an older release, a wish may have any form: what is none is passed over.
    """
    of_type, of_category = (as_mapping(preferences.get(name)) for name in (type_slug, category))
    chosen = of_type if any(name in of_type for name in CHANNEL_FIELDS) else of_category
    before = of_type.get("notify_before", of_category.get("notify_before"))
    return Preference(
        muted=chosen.get("muted") is True,
        channels=tuple(_names(chosen.get("channels"))),
        muted_channels=frozenset(_names(chosen.get("muted_channels"))),
        notify_before=timedelta(seconds=before) if _is_number(before) else None,
    )


def as_mapping(stored: Any) -> Mapping[str, Any]:
    """Return what is stored as an object; nothing for what is none."""
    return stored if isinstance(stored, Mapping) else {}


def _names(stored: Any) -> list[str]:
    return [name for name in stored if isinstance(name, str)] if isinstance(stored, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
