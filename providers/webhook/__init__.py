"""Rooms by signed webhooks."""

from typing import TYPE_CHECKING

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now

from ..spec import Account, ProviderSpec, SandboxSpec

if TYPE_CHECKING:
    from .provider import Webhook

SANDBOX_KEY = "whsec_c2FuZGJveC1yb29tLXNlY3JldC0wMDAwMDAwMA=="
"""The sandbox's receivers verify signatures by this fixed value; it isn't secret."""


def build(account: Account) -> "Webhook":
    """Return what posts to all rooms of this kind."""
    from .provider import Webhook

    return Webhook(
        name=account.name,
        clock=utc_now,
        base_url=settings.ROOMS_URL,
        allow_loopback=settings.CALLBACK_LOOPBACK,
        secret=SANDBOX_KEY if settings.ROOMS_URL else "",
    )


def build_sandbox() -> "Webhook":
    """Return the sandbox's counterpart."""
    from .provider import Webhook

    return Webhook(
        name=PROVIDER.sandbox_name,
        base_url=settings.SANDBOX_URL,
        clock=utc_now,
        secret=SANDBOX_KEY,
    )


PROVIDER = ProviderSpec(
    name="webhook",
    label="Webhook",
    channel=Channel("room"),
    is_configured=lambda _account: True,
    build=build,
    sandbox=SandboxSpec(
        label="Sandbox (Webhook)",
        is_configured=lambda: bool(settings.SANDBOX_URL),
        build=build_sandbox,
    ),
)
