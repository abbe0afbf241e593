"""Checks of the settings of AWS SMS."""

from typing import Any

import pytest

from providers.accounts import account_of
from providers.aws_sms.checks import check_server, check_settings
from tests.support.providers.aws import TOPIC
from tests.support.tables import each_case


@pytest.fixture
def complete(settings: Any) -> Any:
    settings.AWS_SMS_ACCESS_KEY_ID, settings.AWS_SMS_SECRET_ACCESS_KEY = "AKIA1", "secret"
    settings.AWS_SMS_CONFIGURATION_SET, settings.AWS_SMS_TOPICS = "notify", (TOPIC,)
    settings.AWS_SMS_URL = settings.AWS_SMS_SNS_URL = ""
    return settings


@each_case(
    "changes, problems",
    [
        ({}, []),
        ({"AWS_SMS_SECRET_ACCESS_KEY": ""}, ["E056"]),
        ({"AWS_SMS_URL": "aws.example.com"}, ["E054"]),
        ({"AWS_SMS_SNS_URL": "aws.example.com"}, ["E055"]),
        ({"AWS_SMS_CONFIGURATION_SET": ""}, ["W012"]),
        ({"AWS_SMS_TOPICS": ()}, ["W012"]),
        ({"AWS_SMS_ACCESS_KEY_ID": "", "AWS_SMS_SECRET_ACCESS_KEY": ""}, []),
        ({"AWS_SMS_ACCESS_KEY_ID": "", "AWS_SMS_TOPICS": ()}, []),
    ],
)
def test_incomplete_settings_are_reported(
    complete: Any, changes: dict[str, Any], problems: list[str]
) -> None:
    before = {name: getattr(complete, name) for name in changes}
    for name, value in changes.items():
        setattr(complete, name, value)
    found = [*check_settings(account_of("aws_sms")), *check_server(account_of("aws_sms"))]
    for name, value in before.items():
        setattr(complete, name, value)
    assert [str(problem.id).removeprefix("notifications.") for problem in found] == problems
