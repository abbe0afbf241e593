"""Email by Mailgun."""

from ..email_spec import email_spec
from .variables import Settings


def options(values: Settings) -> dict[str, str]:
    """Return the arguments of anymail's backend. Without a domain, it takes the sender's."""
    found = {"api_key": values.MAILGUN_API_KEY, "api_url": f"{values.MAILGUN_URL}/v3"}
    return found | ({"sender_domain": values.MAILGUN_DOMAIN} if values.MAILGUN_DOMAIN else {})


PROVIDER = email_spec(
    label="Mailgun",
    variables=Settings,
    credentials=("MAILGUN_API_KEY",),
    options=options,
    secrets={
        "password": "MAILGUN_WEBHOOK_SECRET",
        "signing_key": "MAILGUN_SIGNING_KEY",
    },
)
