"""Checks of the settings."""

from collections.abc import Iterator

from django.core import checks

from .. import setting_checks
from ..spec import Account


def check_settings(account: Account) -> Iterator[checks.CheckMessage]:
    """Report invalid or incomplete settings of Amazon SES."""
    yield from setting_checks.base_url(account.values, "SES_URL", number=51, may_be_empty=True)
    yield from setting_checks.base_url(account.values, "SES_SNS_URL", number=52, may_be_empty=True)
    if account.values.SES_ACCESS_KEY_ID and not account.values.SES_SECRET_ACCESS_KEY:
        message = "SES_ACCESS_KEY_ID requires SES_SECRET_ACCESS_KEY."
        hint = "A key of the account's own role isn't read: create one for an IAM user."
        yield setting_checks.error(message, hint, 53)


def check_server(account: Account) -> Iterator[checks.CheckMessage]:
    """Report what a server lacks."""
    if account.values.SES_ACCESS_KEY_ID and not account.values.SES_TOPICS:
        yield checks.Warning(
            "The notifications of SES are refused: SES_TOPICS is not set.",
            hint="Without them, bounces are not noticed. Set it to the ARN of the SNS topic.",
            id="notifications.W011",
        )
