"""A check of the account without a mail."""

from http import HTTPStatus

from notifyproject.settings.variables import Environment

from .. import email_setup, http
from ..http import Request
from ..setup_check import TIMEOUT, fetch
from . import PROVIDER
from .kind import read_refusal
from .variables import Settings

SENDING_ONLY = "restricted_api_key"
"""The error of a key that may only send, which is what the service needs."""


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Check the domains of the account. Raises CheckError. Resend has no mode of tests."""
    values = email_setup.values_of(Settings, environment)
    request = Request(
        url=f"{values.RESEND_URL}/domains",
        body=None,
        headers={"Accept": "application/json", "Authorization": f"Bearer {values.RESEND_API_KEY}"},
        timeout=timeout,
    )
    response = fetch(PROVIDER.label, request)
    refusal = read_refusal(http.decode_object(response.body))
    if response.status != HTTPStatus.OK and refusal.code != SENDING_ONLY:
        raise email_setup.rejected(PROVIDER, response, "the API key")
