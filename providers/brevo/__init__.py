"""Email by Brevo."""

from ..email_spec import email_spec
from .variables import Settings


def options(values: Settings) -> dict[str, str]:
    """Return the arguments of anymail's backend."""
    return {"api_key": values.BREVO_API_KEY, "api_url": f"{values.BREVO_URL}/v3"}


PROVIDER = email_spec(
    label="Brevo",
    variables=Settings,
    credentials=("BREVO_API_KEY",),
    options=options,
    secrets={"password": "BREVO_WEBHOOK_SECRET"},
)
