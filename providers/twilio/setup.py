"""A check of the account without a message."""

from http import HTTPStatus
from urllib.parse import quote

from notifyproject.settings.variables import Environment

from ..setup_check import TIMEOUT, RejectedError, call
from .provider import VERSION, basic_credentials
from .variables import Settings


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Check that Twilio takes the key, by the newest message of the account. Raises CheckError."""
    values = Settings.of(environment)
    # An API key may read messages, and not the account.
    url = (
        f"{values.TWILIO_URL.rstrip('/')}/{VERSION}/Accounts/{quote(values.TWILIO_ACCOUNT_SID)}"
        "/Messages.json?PageSize=1"
    )
    if not values.sender:
        raise RejectedError("Twilio needs a messaging service or a sender.")
    authorization = basic_credentials(*values.credentials)
    status = call("Twilio", url, None, authorization=authorization, timeout=timeout)
    if status != HTTPStatus.OK:
        raise RejectedError(f"Twilio responded with {status}: check account SID and token.")
