"""Device preferences by category and type. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from domain.unchanged import UNCHANGED, Unchanged

from .documents import DevicePreferencesDocument

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


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePreferenceChanges:
    """Changes to the preferences of one device. What isn't named stays."""

    enabled: bool | None = None
    categories: Mapping[str, bool | None] = field(default_factory=dict)
    """By category or type; None removes one."""
    removes_categories: bool = False
    """Categories and types that aren't named are removed."""
    quiet_hours: Mapping[str, Any] | Unchanged | None = UNCHANGED

    def as_stages(self, path: str) -> list[dict[str, Any]]:
        """Return the stages of an update that changes the preferences stored at ``path``."""
        # Names are slugs, so that a path to one has no other dots.
        categories = f"{path}.categories"
        changed: dict[str, Any] = {} if self.enabled is None else {f"{path}.enabled": self.enabled}
        changed |= {
            f"{categories}.{name}": v for name, v in self.categories.items() if v is not None
        }
        removed = [f"{categories}.{name}" for name, v in self.categories.items() if v is None]
        if self.quiet_hours is None:
            removed.append(f"{path}.quiet_hours")
        elif not isinstance(self.quiet_hours, Unchanged):
            changed[f"{path}.quiet_hours"] = {"$literal": dict(self.quiet_hours)}
        return [
            *([{"$unset": categories}] if self.removes_categories else []),
            *([{"$unset": removed}] if removed else []),
            *([{"$set": changed}] if changed else []),
        ]


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


def from_document(stored: DevicePreferencesDocument | None) -> Preferences:
    """Return stored preferences. Missing ones become the defaults."""
    if not stored:
        return NO_PREFERENCES
    return Preferences(
        enabled=stored.get("enabled", True),
        categories=stored.get("categories", {}),
        quiet_hours=stored.get("quiet_hours"),
    )
