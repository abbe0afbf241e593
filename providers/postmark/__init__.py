"""Email by Postmark."""

from ..email_spec import email_spec
from .variables import Settings


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
    credentials=("POSTMARK_SERVER_TOKEN",),
    options=options,
    secrets={"password": "POSTMARK_WEBHOOK_SECRET"},
)
