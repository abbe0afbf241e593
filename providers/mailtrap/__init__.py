"""Email by Mailtrap."""

from ..email_spec import email_spec
from .variables import Settings


def options(values: Settings) -> dict[str, str]:
    """Return the arguments of anymail's backend."""
    return {"api_token": values.MAILTRAP_API_TOKEN, "api_url": f"{values.MAILTRAP_URL}/api"}


PROVIDER = email_spec(
    label="Mailtrap",
    variables=Settings,
    credentials=("MAILTRAP_API_TOKEN",),
    options=options,
    secrets={"password": "MAILTRAP_WEBHOOK_SECRET"},
)
