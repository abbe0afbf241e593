"""Rooms by workflows of Microsoft Teams."""

from typing import TYPE_CHECKING

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now

from ..spec import Account, ProviderSpec, SandboxSpec

if TYPE_CHECKING:
    from .provider import Teams


def build(account: Account) -> "Teams":
    """Return what posts to all rooms of this kind."""
    from .provider import Teams

    return Teams(name=account.name, clock=utc_now, base_url=settings.ROOMS_URL)


def build_sandbox() -> "Teams":
    """Return the sandbox's counterpart."""
    from .provider import Teams

    return Teams(
        name=PROVIDER.sandbox_name,
        base_url=settings.SANDBOX_URL,
        clock=utc_now,
        is_sandbox=True,
    )


PROVIDER = ProviderSpec(
    name="teams",
    label="Microsoft Teams",
    channel=Channel("room"),
    is_configured=lambda _account: True,
    build=build,
    sandbox=SandboxSpec(
        label="Sandbox (Microsoft Teams)",
        is_configured=lambda: bool(settings.SANDBOX_URL),
        build=build_sandbox,
    ),
)
