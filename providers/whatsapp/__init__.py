"""WhatsApp by Meta's Cloud API."""

from typing import TYPE_CHECKING, Any

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now

from ..spec import Account, ProviderSpec, SandboxSpec, WebhookSpec
from .variables import Settings

if TYPE_CHECKING:
    from .provider import WhatsApp

SANDBOX_KEY = "EAAsandbox"
SANDBOX_NUMBER = "100000000000001"
"""The sandbox accepts these fixed values; they're not secret."""


def build(account: Account) -> "WhatsApp":
    """Return the account. Without an access token, it can still verify webhooks."""
    return _build(
        name=account.name,
        token=account.values.WHATSAPP_TOKEN,
        phone_number_id=account.values.WHATSAPP_PHONE_NUMBER_ID,
        business_account_id=account.values.WHATSAPP_BUSINESS_ACCOUNT_ID,
        base_url=account.values.WHATSAPP_URL,
        app_secret=account.values.WHATSAPP_APP_SECRET,
        verify_token=account.values.WHATSAPP_VERIFY_TOKEN,
    )


def build_sandbox() -> "WhatsApp":
    """Return the sandbox's account."""
    return _build(
        name=PROVIDER.sandbox_name,
        token=SANDBOX_KEY,
        phone_number_id=SANDBOX_NUMBER,
        base_url=settings.SANDBOX_URL,
        app_secret="",
        verify_token="",
    )


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


def complete(values: dict[str, str]) -> None:
    """See :func:`.setup.complete`."""
    from . import setup

    setup.complete(values)


def _build(**account: str) -> "WhatsApp":
    from .provider import WhatsApp

    return WhatsApp(**account, version=settings.WHATSAPP_API_VERSION, clock=utc_now)


PROVIDER = ProviderSpec(
    name="whatsapp",
    label="WhatsApp",
    channel=Channel("whatsapp"),
    enabled_by="WHATSAPP_TOKEN",
    is_configured=lambda account: bool(account.values.WHATSAPP_TOKEN),
    build=build,
    sandbox=SandboxSpec(
        label="Sandbox (WhatsApp)",
        is_configured=lambda: bool(settings.SANDBOX_URL),
        build=build_sandbox,
    ),
    webhook=WebhookSpec(content="a WhatsApp webhook", has_handshake=True),
    check=check,
    settings=Settings,
    complete=complete,
)
