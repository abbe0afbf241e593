"""Email by Resend."""

from typing import Any

from ..email_spec import email_spec
from .variables import Settings


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


PROVIDER = email_spec(
    label="Resend",
    variables=Settings,
    credential="RESEND_API_KEY",
    options=lambda values: {"api_key": values.RESEND_API_KEY, "api_url": values.RESEND_URL},
    secrets=lambda values: {"signing_key": values.RESEND_WEBHOOK_SECRET},
    check=check,
)
