"""Device preferences by category and type. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CRITICAL = "critical"  # The priority that a preference for a category doesn't apply to


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """The preferences of one device."""

    enabled: bool = True
    """False: no push messages."""
    categories: Mapping[str, bool] = field(default_factory=dict)
    """By category or type; the default is True."""
    quiet_hours: Mapping[str, Any] | None = None
    """``{enabled, start, end, timezone}`` as for recipients; the default zone is the device's."""


NO_PREFERENCES = Preferences()


def allows(
    preferences: Preferences, *, category: str, type_slug: str, priority: str, is_locked: bool
) -> bool:
    """Return whether a device accepts a notification. Quiet hours aren't considered."""
    # A preference for the type comes first and applies to every priority. One for the category
    # doesn't apply to critical notifications: a device that mutes transactional messages still gets
    # critical alerts. Neither applies to a locked type: only a device without push refuses it.
    if not preferences.enabled or is_locked:
        return preferences.enabled
    preference = preferences.categories.get(type_slug)
    if preference is None and priority != CRITICAL:
        preference = preferences.categories.get(category)
    return preference is not False


def from_document(stored: Mapping[str, Any] | None) -> Preferences:
    """Return stored preferences. Invalid or missing values become the defaults."""
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
    """Return preferences in their stored form."""
    document: dict[str, Any] = {
        "enabled": preferences.enabled,
        "categories": dict(preferences.categories),
    }
    if preferences.quiet_hours is not None:
        document["quiet_hours"] = dict(preferences.quiet_hours)
    return document
