"""A check of the account without a mail."""

from http import HTTPStatus

from notifyproject.settings.variables import Environment

from .. import email_setup
from ..setup_check import TIMEOUT, fetch
from . import PROVIDER, options
from .kind import WRONG_PATH
from .variables import Settings

TEST_MODE = {"o:testmode": "yes"}
"""With it, Mailgun takes a mail and doesn't send it."""


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Let Mailgun take a mail in its mode of tests. Raises CheckError."""
    values = email_setup.values_of(Settings, environment)
    mail = email_setup.sample(
        PROVIDER, environment, options(values), extra=TEST_MODE, timeout=timeout
    )
    response = fetch(PROVIDER.label, mail)
    if response.status != HTTPStatus.OK or WRONG_PATH in response.text:
        raise email_setup.rejected(PROVIDER, response, "the key, the domain, and the region's URL")
