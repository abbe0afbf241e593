"""Email by SendGrid."""

from typing import TYPE_CHECKING, Any

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now

from ..spec import Account, ProviderSpec, SandboxSpec, WebhookSpec
from .variables import SANDBOX_KEY, Settings

if TYPE_CHECKING:
    from .provider import SendGrid


def build(account: Account) -> "SendGrid":
    """Return the account, which may also be needed for webhooks while another provider sends."""
    return _build(
        name=account.name,
        api_key=account.values.SENDGRID_API_KEY,
        base_url=account.values.SENDGRID_URL,
        webhook_public_key=account.values.SENDGRID_WEBHOOK_PUBLIC_KEY,
    )


def build_sandbox() -> "SendGrid":
    """Return the sandbox's account."""
    return _build(
        name=PROVIDER.sandbox_name,
        api_key=SANDBOX_KEY,
        base_url=settings.SANDBOX_URL,
        webhook_public_key="",
    )


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


def _build(**account: str) -> "SendGrid":
    from .provider import SendGrid

    return SendGrid(
        **account,
        sender=settings.EMAIL_FROM,
        reply_to=settings.EMAIL_REPLY_TO,
        attachment_hosts=settings.ATTACHMENT_HOSTS,
        clock=utc_now,
    )


PROVIDER = ProviderSpec(
    name="sendgrid",
    label="SendGrid",
    channel=Channel("email"),
    is_configured=lambda account: bool(account.values.SENDGRID_URL),
    build=build,
    sandbox=SandboxSpec(
        label="Sandbox (mail)",
        is_configured=lambda: bool(settings.SANDBOX_URL),
        build=build_sandbox,
    ),
    webhook=WebhookSpec(content="a list of events"),
    check=check,
    settings=Settings,
)
