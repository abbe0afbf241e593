"""Checks of Twilio's settings."""

from typing import Any

import pytest

from providers.accounts import account_of
from providers.twilio.checks import check_server, check_settings
from tests.support.tables import each_case

SID, TOKEN, SERVICE = f"AC{'f' * 32}", "f" * 32, f"MG{'f' * 32}"


@pytest.fixture
def complete(settings: Any) -> Any:
    settings.TWILIO_ACCOUNT_SID, settings.TWILIO_AUTH_TOKEN = SID, TOKEN
    settings.TWILIO_API_KEY_SID = settings.TWILIO_API_KEY_SECRET = settings.TWILIO_FROM = ""
    settings.TWILIO_MESSAGING_SERVICE_SID = SERVICE
    return settings


@each_case(
    "changes, problems",
    [
        ({}, []),
        ({"TWILIO_MESSAGING_SERVICE_SID": "", "TWILIO_FROM": "Shop"}, []),
        ({"TWILIO_API_KEY_SID": "SK1", "TWILIO_API_KEY_SECRET": "secret"}, []),
        ({"TWILIO_MESSAGING_SERVICE_SID": ""}, ["E019"]),
        ({"TWILIO_AUTH_TOKEN": ""}, ["E020", "W006"]),
        ({"TWILIO_API_KEY_SID": "SK1"}, ["E020"]),
        ({"TWILIO_API_KEY_SECRET": "secret"}, ["E020"]),
        (
            {"TWILIO_API_KEY_SID": "S", "TWILIO_API_KEY_SECRET": "s", "TWILIO_AUTH_TOKEN": ""},
            ["W006"],
        ),
        ({"TWILIO_URL": "api.twilio.com"}, ["E018"]),
        ({"TWILIO_ACCOUNT_SID": "", "TWILIO_AUTH_TOKEN": ""}, []),
    ],
)
def test_incomplete_settings_are_reported(
    complete: Any, changes: dict[str, str], problems: list[str]
) -> None:
    before = {name: getattr(complete, name) for name in changes}
    for name, value in changes.items():
        setattr(complete, name, value)
    found = [*check_settings(account_of("twilio")), *check_server(account_of("twilio"))]
    for name, value in before.items():
        setattr(complete, name, value)
    assert [str(problem.id).removeprefix("notifications.") for problem in found] == problems
