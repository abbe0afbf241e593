"""Recipients' preferences by type and category. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from .documents import StoredPreference

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


def preference_for(
    preferences: Mapping[str, StoredPreference], *, type_slug: str, category: str
) -> Preference:
    """Return the preference for a type. A category's preference applies if the type has none."""
    of_type, of_category = (preferences.get(name, {}) for name in (type_slug, category))
    chosen = of_type if any(name in of_type for name in CHANNEL_FIELDS) else of_category
    before = of_type.get("notify_before", of_category.get("notify_before"))
    return Preference(
        muted=chosen.get("muted", False),
        channels=tuple(chosen.get("channels", ())),
        muted_channels=frozenset(chosen.get("muted_channels", ())),
        notify_before=timedelta(seconds=before) if before is not None else None,
    )
