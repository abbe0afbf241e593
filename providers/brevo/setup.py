"""A check of the account without a mail."""

from notifyproject.settings.variables import Environment

from .. import email_setup
from ..setup_check import TIMEOUT
from . import PROVIDER, options
from .variables import Settings

DROP = {"X-Sib-Sandbox": "drop"}
"""A header with which Brevo validates a mail and drops it."""


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Let Brevo validate a mail. Raises CheckError."""
    values = email_setup.values_of(Settings, environment)
    email_setup.try_sample(
        PROVIDER, environment, options(values), extra={"headers": DROP}, timeout=timeout
    )
