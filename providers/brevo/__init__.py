"""Email by Brevo."""

from typing import Any

from ..email_spec import email_spec
from .variables import Settings


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


def options(values: Settings) -> dict[str, str]:
    """Return the arguments of anymail's backend."""
    return {"api_key": values.BREVO_API_KEY, "api_url": f"{values.BREVO_URL}/v3"}


PROVIDER = email_spec(
    label="Brevo",
    variables=Settings,
    credential="BREVO_API_KEY",
    options=options,
    secrets=lambda values: {"password": values.BREVO_WEBHOOK_SECRET},
    check=check,
)
