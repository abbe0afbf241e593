"""Rooms by a bot of Slack."""

from typing import TYPE_CHECKING

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now

from ..spec import Account, ProviderSpec, SandboxSpec
from .variables import Settings

if TYPE_CHECKING:
    from .provider import SlackBot

SANDBOX_KEY = "xoxb-sandbox"
"""The sandbox accepts this fixed value; it isn't secret."""


def build(account: Account) -> "SlackBot":
    """Return the bot."""
    from .provider import SlackBot

    return SlackBot(
        name=account.name,
        clock=utc_now,
        token=account.values.SLACK_BOT_TOKEN,
        base_url=account.values.SLACK_BOT_URL,
    )


def build_sandbox() -> "SlackBot":
    """Return the sandbox's counterpart."""
    from .provider import SlackBot

    return SlackBot(
        name=PROVIDER.sandbox_name,
        base_url=settings.SANDBOX_URL,
        clock=utc_now,
        token=SANDBOX_KEY,
        is_sandbox=True,
    )


PROVIDER = ProviderSpec(
    name="slack_bot",
    label="Slack bot",
    channel=Channel("room"),
    enabled_by="SLACK_BOT_TOKEN",
    is_configured=lambda account: bool(account.values.SLACK_BOT_TOKEN),
    build=build,
    sandbox=SandboxSpec(
        label="Sandbox (Slack bot)",
        is_configured=lambda: bool(settings.SANDBOX_URL),
        build=build_sandbox,
    ),
    settings=Settings,
)
