"""Recipients' preferences by type and category. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

CHANNEL_FIELDS = ("muted", "channels", "muted_channels")
"""Fields that apply together: if a type has any of them, its category's are ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preference:
    """A recipient's preference for one type."""

    muted: bool = False
    channels: tuple[str, ...] = ()  # Replace the type's channels if the request names none
    muted_channels: frozenset[str] = frozenset()  # Muted even if the request names them
    notify_before: timedelta | None = None  # Reminder lead time; None: the type's


NO_PREFERENCE = Preference()


def preference_for(preferences: Mapping[str, Any], *, type_slug: str, category: str) -> Preference:
    """Return the preference for a type. A category's preference applies if the type has none."""
    # An older release may have stored any value: invalid ones are ignored.
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
    """Return ``stored`` if it is an object, else an empty mapping."""
    return stored if isinstance(stored, Mapping) else {}


def _names(stored: Any) -> list[str]:
    return [name for name in stored if isinstance(name, str)] if isinstance(stored, list) else []


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
