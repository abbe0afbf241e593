"""Email by SparkPost."""

from ..email_spec import email_spec
from .variables import Settings


def options(values: Settings) -> dict[str, str]:
    """Return the arguments of anymail's backend."""
    return {"api_key": values.SPARKPOST_API_KEY, "api_url": f"{values.SPARKPOST_URL}/api/v1"}


PROVIDER = email_spec(
    label="SparkPost",
    variables=Settings,
    credentials=("SPARKPOST_API_KEY",),
    options=options,
    secrets={"password": "SPARKPOST_WEBHOOK_SECRET"},
)
