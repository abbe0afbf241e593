"""Email by Postmark."""

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
        "server_token": values.POSTMARK_SERVER_TOKEN,
        "message_stream": values.POSTMARK_MESSAGE_STREAM,
        "api_url": values.POSTMARK_URL,
    }


PROVIDER = email_spec(
    label="Postmark",
    variables=Settings,
    credential="POSTMARK_SERVER_TOKEN",
    options=options,
    secrets=lambda values: {"password": values.POSTMARK_WEBHOOK_SECRET},
    check=check,
)
