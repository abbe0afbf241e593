"""A check of the account without a delivery."""

from domain.mailboxes import parse_mailbox
from notifyproject.settings.variables import Environment

from .. import email_setup
from ..setup_check import TIMEOUT
from . import PROVIDER, options
from .variables import Settings

SINK = "sink.sparkpostmail.com"
"""Below this domain, SparkPost takes mails and delivers them nowhere."""


def check(environment: Environment, *, timeout: float = TIMEOUT) -> None:
    """Send a mail to SparkPost's sink. Raises CheckError."""
    values = email_setup.values_of(Settings, environment)
    sender = parse_mailbox(environment.EMAIL_FROM).address
    email_setup.try_sample(
        PROVIDER, environment, options(values), recipient=f"{sender}.{SINK}", timeout=timeout
    )
