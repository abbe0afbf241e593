"""Device preferences and quiet hours."""

from dataclasses import asdict
from typing import Any

from delivery import eligibility
from devices.preferences import NO_PREFERENCES, Preferences, allows, from_document
from domain.states import Category, Priority
from tests.support.tables import each_case

QUIET = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": None}


def allowed(
    preferences: Preferences,
    *,
    category: str = Category.MARKETING,
    type_slug: str = "new_sale",
    priority: str = Priority.NORMAL,
    is_locked: bool = False,
) -> bool:
    return allows(
        preferences,
        category=category,
        type_slug=type_slug,
        priority=priority,
        is_locked=is_locked,
    )


@each_case("priority", list(Priority))
def test_device_without_preferences_gets_everything(priority: Priority) -> None:
    assert allowed(NO_PREFERENCES, priority=priority)
    assert allowed(Preferences(categories={"alert": False}), priority=priority)


@each_case("priority", list(Priority))
def test_disabled_device_gets_nothing(priority: Priority) -> None:
    off = Preferences(enabled=False, categories={"marketing": True, "new_sale": True})
    assert not allowed(off, priority=priority)


@each_case(
    "categories, expected",
    [
        ({"marketing": False}, False),
        ({"marketing": True}, True),
        ({"new_sale": False}, False),
        ({"new_sale": True, "marketing": False}, True),
        ({"new_sale": False, "marketing": True}, False),
        ({"transactional": False}, True),
    ],
)
def test_type_preference_overrides_the_category(
    categories: dict[str, bool], expected: bool
) -> None:
    assert allowed(Preferences(categories=categories)) is expected


@each_case("name", ["mfa_code", "transactional"])
@each_case("priority", list(Priority))
def test_locked_type_passes_every_preference_but_a_device_without_push(
    name: str, priority: Priority
) -> None:
    code = {"category": "transactional", "type_slug": "mfa_code", "priority": priority}
    assert allowed(Preferences(categories={name: False}), **code, is_locked=True)
    assert not allowed(Preferences(enabled=False), **code, is_locked=True)


def test_critical_notification_passes_a_muted_category_only() -> None:
    critical = {"category": "transactional", "type_slug": "outage", "priority": "critical"}
    assert allowed(Preferences(categories={"transactional": False}), **critical)
    assert not allowed(Preferences(categories={"outage": False}), **critical)
    high = {**critical, "priority": "high"}
    assert not allowed(Preferences(categories={"transactional": False}), **high)


@each_case(
    "preferences",
    [
        NO_PREFERENCES,
        Preferences(enabled=False),
        Preferences(categories={"marketing": False, "mfa_code": True}),
        Preferences(quiet_hours=QUIET),
    ],
)
def test_preferences_round_trip(preferences: Preferences) -> None:
    assert from_document(asdict(preferences)) == preferences


@each_case("stored", [None, {}])
def test_missing_preferences_are_the_defaults(stored: dict[str, Any] | None) -> None:
    assert from_document(stored) == NO_PREFERENCES


@each_case(
    "stored, own_zone, zone",
    [
        (QUIET, "Europe/Lisbon", "Europe/Lisbon"),
        ({**QUIET, "timezone": "Asia/Tokyo"}, "Europe/Lisbon", "Asia/Tokyo"),
        (QUIET, None, "UTC"),
    ],
)
def test_quiet_hours_default_to_the_device_timezone(
    stored: dict[str, Any], own_zone: str | None, zone: str
) -> None:
    preferences = from_document({"quiet_hours": stored})
    quiet = eligibility.parse_quiet_hours(
        preferences.quiet_hours, own_zone=own_zone, notification_zone=None
    )
    assert (f"{quiet.start:%H:%M}", f"{quiet.end:%H:%M}") == ("22:00", "07:00")
    assert quiet.zone.key == zone


def test_disabled_quiet_hours_are_none() -> None:
    preferences = from_document({"quiet_hours": {**QUIET, "enabled": False}})
    assert (
        eligibility.parse_quiet_hours(
            preferences.quiet_hours, own_zone=None, notification_zone=None
        )
        is None
    )
