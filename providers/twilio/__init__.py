"""SMS by Twilio."""

from typing import TYPE_CHECKING, Any

from django.conf import settings

from domain.channels import Channel
from domain.hosts import public_name
from domain.time import utc_now

from ..spec import Account, ProviderSpec, SandboxSpec, WebhookSpec
from .variables import Settings

if TYPE_CHECKING:
    from .provider import Twilio

SANDBOX_ACCOUNT = "AC00000000000000000000000000000001"
SANDBOX_KEY = ("SK00000000000000000000000000000001", "sandbox")
SANDBOX_SERVICE = "MG00000000000000000000000000000001"
"""The sandbox accepts these fixed values; they're not secret."""


def build(account: Account) -> "Twilio":
    """Return the account. Without an account SID, it can still verify webhooks."""
    values = Settings.of(account.values)
    user, password = values.credentials
    tokens = (values.TWILIO_AUTH_TOKEN, values.TWILIO_SECONDARY_AUTH_TOKEN)
    return _build(
        name=account.name,
        account_sid=values.TWILIO_ACCOUNT_SID,
        user=user,
        password=password,
        sender=values.sender,
        base_url=values.TWILIO_URL,
        auth_tokens=tuple(filter(None, tokens)),
        webhook_path=account.webhook_path,
    )


def build_sandbox() -> "Twilio":
    """Return the sandbox's account."""
    return _build(
        name=PROVIDER.sandbox_name,
        account_sid=SANDBOX_ACCOUNT,
        user=SANDBOX_KEY[0],
        password=SANDBOX_KEY[1],
        sender=SANDBOX_SERVICE,
        base_url=settings.SANDBOX_URL,
        auth_tokens=(),
        webhook_path=f"/webhooks/{PROVIDER.name}",
    )


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


def _build(*, base_url: str, webhook_path: str, **account: Any) -> "Twilio":
    from .provider import Twilio

    # Twilio refuses a message whose callback it couldn't reach: then there are no receipts.
    is_reachable = base_url.startswith("http://") or public_name(settings.PUBLIC_URL)
    callback_url = f"{settings.PUBLIC_URL}{webhook_path}" if is_reachable else ""
    return Twilio(**account, base_url=base_url, callback_url=callback_url, clock=utc_now)


PROVIDER = ProviderSpec(
    name="twilio",
    label="Twilio",
    channel=Channel("sms"),
    enabled_by="TWILIO_ACCOUNT_SID",
    is_configured=lambda account: bool(account.values.TWILIO_ACCOUNT_SID),
    build=build,
    sandbox=SandboxSpec(
        label="Sandbox (SMS)",
        is_configured=lambda: bool(settings.SANDBOX_URL),
        build=build_sandbox,
    ),
    webhook=WebhookSpec(content="a Twilio webhook"),
    check=check,
    settings=Settings,
)
