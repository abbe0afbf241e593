"""Push by Firebase Cloud Messaging."""

from typing import Any

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now

from ..contract import Provider
from ..spec import Account, ProviderSpec, SandboxSpec
from .variables import Settings


def build(account: Account) -> Provider:
    """Return the provider for the configured Firebase project."""
    return _build(
        name=account.name,
        credentials=account.values.FCM_CREDENTIALS,
        project_id=account.values.FCM_PROJECT_ID,
        base_url=account.values.FCM_URL,
    )


def build_sandbox() -> Provider:
    """Return the sandbox's project."""
    return _build(
        name=PROVIDER.sandbox_name,
        credentials=settings.SANDBOX_FCM_CREDENTIALS,
        project_id="",
        base_url=settings.SANDBOX_URL,
    )


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


def complete(values: dict[str, str]) -> None:
    """See :func:`.setup.complete`."""
    from . import setup

    setup.complete(values)


def _build(**account: str) -> Provider:
    # Google's libraries take half a second, which few processes need.
    from .provider import FCM

    return FCM(**account, clock=utc_now)


PROVIDER = ProviderSpec(
    name="fcm",
    label="FCM",
    channel=Channel("push"),
    enabled_by="FCM_CREDENTIALS",
    is_configured=lambda account: bool(account.values.FCM_CREDENTIALS),
    build=build,
    sandbox=SandboxSpec(
        label="Sandbox (push)",
        is_configured=lambda: bool(settings.SANDBOX_URL and settings.SANDBOX_FCM_CREDENTIALS),
        build=build_sandbox,
    ),
    check=check,
    settings=Settings,
    complete=complete,
)
