"""A check of the server without a mail."""

from http import HTTPStatus

from notifyproject.settings.variables import Environment

from .. import email_setup
from ..http import Request
from ..setup_check import TIMEOUT, fetch
from . import PROVIDER, options
from .variables import Settings

TEST_SERVER = "POSTMARK_API_TEST"
"""The token with which Postmark validates mails and sends none."""


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Read the server, and let Postmark validate a mail. Raises CheckError."""
    values = email_setup.values_of(Settings, environment)
    if values.POSTMARK_SERVER_TOKEN != TEST_SERVER:
        server = Request(
            url=f"{values.POSTMARK_URL}/server",
            body=None,
            headers={
                "Accept": "application/json",
                "X-Postmark-Server-Token": values.POSTMARK_SERVER_TOKEN,
            },
            timeout=timeout,
        )
        response = fetch(PROVIDER.label, server)
        if response.status != HTTPStatus.OK:
            raise email_setup.rejected(PROVIDER, response, "the server token")
    test = options(values) | {"server_token": TEST_SERVER}
    mail = email_setup.sample(PROVIDER, environment, test, timeout=timeout)
    response = fetch(PROVIDER.label, mail)
    if response.status != HTTPStatus.OK:
        raise email_setup.rejected(PROVIDER, response, "the sender")
