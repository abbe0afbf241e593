"""Checks of the settings."""

from collections.abc import Iterator

from django.core import checks

from .. import setting_checks
from ..spec import Account


def check_settings(account: Account) -> Iterator[checks.CheckMessage]:
    """Report invalid or incomplete settings of AWS SMS."""
    values = account.values
    yield from setting_checks.base_url(values, "AWS_SMS_URL", number=54, may_be_empty=True)
    yield from setting_checks.base_url(values, "AWS_SMS_SNS_URL", number=55, may_be_empty=True)
    if values.AWS_SMS_ACCESS_KEY_ID and not values.AWS_SMS_SECRET_ACCESS_KEY:
        message = "AWS_SMS_ACCESS_KEY_ID requires AWS_SMS_SECRET_ACCESS_KEY."
        hint = "A key of the account's own role isn't read: create one for an IAM user."
        yield setting_checks.error(message, hint, 56)


def check_server(account: Account) -> Iterator[checks.CheckMessage]:
    """Report what a server lacks."""
    values = account.values
    has_receipts = values.AWS_SMS_CONFIGURATION_SET and values.AWS_SMS_TOPICS
    if values.AWS_SMS_ACCESS_KEY_ID and not has_receipts:
        yield checks.Warning(
            "AWS SMS has no receipts: AWS_SMS_CONFIGURATION_SET or AWS_SMS_TOPICS is not set.",
            hint="Without them, SMS stay sent, and a lost response stays unknown.",
            id="notifications.W012",
        )
