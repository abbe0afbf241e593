"""Rooms by incoming webhooks of Slack."""

from typing import TYPE_CHECKING

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now

from ..spec import Account, ProviderSpec, SandboxSpec

if TYPE_CHECKING:
    from .provider import SlackWebhook


def build(account: Account) -> "SlackWebhook":
    """Return what posts to all rooms of this kind."""
    from .provider import SlackWebhook

    return SlackWebhook(name=account.name, clock=utc_now, base_url=settings.ROOMS_URL)


def build_sandbox() -> "SlackWebhook":
    """Return the sandbox's counterpart."""
    from .provider import SlackWebhook

    return SlackWebhook(
        name=PROVIDER.sandbox_name,
        base_url=settings.SANDBOX_URL,
        clock=utc_now,
        is_sandbox=True,
    )


PROVIDER = ProviderSpec(
    name="slack_webhook",
    label="Slack webhook",
    channel=Channel("room"),
    is_configured=lambda _account: True,
    build=build,
    sandbox=SandboxSpec(
        label="Sandbox (Slack webhook)",
        is_configured=lambda: bool(settings.SANDBOX_URL),
        build=build_sandbox,
    ),
)
