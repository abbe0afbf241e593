"""Preference for a type: by type, or by category."""

from datetime import timedelta
from typing import Any

from recipients.preferences import NO_PREFERENCE, Preference, preference_for
from tests.support.tables import each_case


def preference(**preferences: Any) -> Preference:
    return preference_for(preferences, type_slug="system_alert", category="alert")


@each_case(
    "preferences, expected",
    [
        ({}, NO_PREFERENCE),
        ({"alert": {"muted": True}}, Preference(muted=True)),
        ({"marketing": {"muted": True}}, NO_PREFERENCE),
        ({"system_alert": {"muted": False}, "alert": {"muted": True}}, NO_PREFERENCE),
        (
            {"system_alert": {"channels": ["email"]}, "alert": {"muted": True}},
            Preference(channels=("email",)),
        ),
        (
            {"system_alert": {"muted_channels": ["email"]}, "alert": {"channels": ["push"]}},
            Preference(muted_channels=frozenset({"email"})),
        ),
        ({"system_alert": {}, "alert": {"muted": True}}, Preference(muted=True)),
    ],
)
def test_type_preference_overrides_the_category(
    preferences: dict[str, Any], expected: Preference
) -> None:
    assert preference(**preferences) == expected


def test_reminder_time_does_not_override_muting() -> None:
    hour = {"notify_before": 3600}
    assert preference(system_alert=hour, alert={"muted": True}) == Preference(
        muted=True, notify_before=timedelta(hours=1)
    )
    assert preference(alert=hour).notify_before == timedelta(hours=1)
