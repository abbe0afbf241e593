"""A check of the account without a mail."""

from notifyproject.settings.variables import Environment

from .. import email_setup
from ..setup_check import TIMEOUT
from . import PROVIDER, options
from .variables import Settings

TEST_MODE = {"SandboxMode": True}
"""With it, Mailjet validates a mail and doesn't send it."""


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Let Mailjet validate a mail. Raises CheckError."""
    values = email_setup.values_of(Settings, environment)
    email_setup.try_sample(PROVIDER, environment, options(values), extra=TEST_MODE, timeout=timeout)
