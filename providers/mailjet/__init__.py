"""Email by Mailjet."""

from ..email_spec import email_spec
from .variables import Settings


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
    credentials=("MAILJET_API_KEY", "MAILJET_SECRET_KEY"),
    options=options,
    secrets={"password": "MAILJET_WEBHOOK_SECRET"},
)
