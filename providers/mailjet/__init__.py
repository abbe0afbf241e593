"""Email by Mailjet."""

from typing import Any

from ..email_spec import email_spec
from .variables import Settings


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


def options(values: Settings) -> dict[str, str]:
    """Return the arguments of anymail's backend."""
    return {
        "api_key": values.MAILJET_API_KEY,
        "secret_key": values.MAILJET_SECRET_KEY,
        "api_url": f"{values.MAILJET_URL}/v3.1",
    }


PROVIDER = email_spec(
    label="Mailjet",
    variables=Settings,
    credential="MAILJET_API_KEY",
    options=options,
    secrets=lambda values: {"password": values.MAILJET_WEBHOOK_SECRET},
    check=check,
)
