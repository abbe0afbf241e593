"""What a device wants to be told, and whether a notification is among it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CRITICAL = "critical"
"""The priority that a preference about a whole category does not hold back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """The wishes of one device."""

    enabled: bool = True
    """False: nothing at all is pushed to it."""
    categories: Mapping[str, bool] = field(default_factory=dict)
    """By category or type; what is not named is wanted."""
    quiet_hours: Mapping[str, Any] | None = None
    """``{enabled, start, end, timezone}``: the same form as a recipient's; without a zone the
    device's own."""


NO_PREFERENCES = Preferences()
"""The wishes of a device that has told none."""


def allows(preferences: Preferences, *, category: str, type_slug: str, priority: str) -> bool:
    """Return whether a device wants a notification, whatever the hour.

    A preference about the type goes before one about its category, and holds for every priority. One
    about the category does not hold back what is critical: who mutes all transactional messages
    still wants the code to sign in with.
    """
    if not preferences.enabled:
        return False
    preference = preferences.categories.get(type_slug)
    if preference is None and priority != CRITICAL:
        preference = preferences.categories.get(category)
    return preference is not False


def from_document(stored: Mapping[str, Any] | None) -> Preferences:
    """Return stored preferences; what is missing or no preference is as if nobody had told it."""
    if not stored:
        return NO_PREFERENCES
    categories = stored.get("categories")
    items = categories.items() if isinstance(categories, Mapping) else ()
    return Preferences(
        enabled=stored.get("enabled") is not False,
        categories={name: preference for name, preference in items if isinstance(preference, bool)},
        quiet_hours=stored.get("quiet_hours"),
    )


def to_document(preferences: Preferences) -> dict[str, Any]:
    """Return preferences as they are stored."""
    document: dict[str, Any] = {
        "enabled": preferences.enabled,
        "categories": dict(preferences.categories),
    }
    if preferences.quiet_hours is not None:
        document["quiet_hours"] = dict(preferences.quiet_hours)
    return document
