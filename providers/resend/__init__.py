"""Email by Resend."""

from ..email_spec import email_spec
from .variables import Settings

PROVIDER = email_spec(
    label="Resend",
    variables=Settings,
    credentials=("RESEND_API_KEY",),
    options=lambda values: {"api_key": values.RESEND_API_KEY, "api_url": values.RESEND_URL},
    secrets={"signing_key": "RESEND_WEBHOOK_SECRET"},
)
