"""Push to browsers, without a third party: each browser has chosen a push service."""

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now

from ..contract import Provider
from ..spec import Account, ProviderSpec, SandboxSpec
from .variables import Settings


def build(account: Account) -> Provider:
    """Return the provider that pushes to the browsers' own push services."""
    return _build(name=account.name, stand_in="")


def build_sandbox() -> Provider:
    """Return the provider whose pushes all go to the sandbox."""
    return _build(name=PROVIDER.sandbox_name, stand_in=settings.SANDBOX_URL)


def _build(**account: str) -> Provider:
    from .provider import WebPush

    return WebPush(
        **account,
        keys=settings.WEBPUSH_KEYS,
        subject=settings.WEBPUSH_SUBJECT,
        public_url=settings.PUBLIC_URL,
        home=settings.WEBPUSH_HOME_URL,
        clock=utc_now,
    )


PROVIDER = ProviderSpec(
    name="webpush",
    label="Web push",
    channel=Channel("push"),
    enabled_by="WEBPUSH_KEYS",
    is_configured=lambda account: bool(account.values.WEBPUSH_KEYS),
    build=build,
    sandbox=SandboxSpec(
        label="Sandbox (web push)",
        is_configured=lambda: bool(settings.SANDBOX_URL and settings.WEBPUSH_KEYS),
        build=build_sandbox,
    ),
    settings=Settings,
)
