"""Email by SparkPost."""

from typing import Any

from ..email_spec import email_spec
from .variables import Settings


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


def options(values: Settings) -> dict[str, str]:
    """Return the arguments of anymail's backend."""
    return {"api_key": values.SPARKPOST_API_KEY, "api_url": f"{values.SPARKPOST_URL}/api/v1"}


PROVIDER = email_spec(
    label="SparkPost",
    variables=Settings,
    credential="SPARKPOST_API_KEY",
    options=options,
    secrets=lambda values: {"password": values.SPARKPOST_WEBHOOK_SECRET},
    check=check,
)
