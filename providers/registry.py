"""The configured providers of each channel, and their sandbox counterparts for test mode."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from domain.channels import Channel

from .accounts import account_of, channel_of, spec_of
from .contract import Provider, WebhookProvider
from .discovery import SPECS
from .spec import SANDBOX_PREFIX, order_setting


@cache
def providers_for(channel: Channel, *, test: bool = False) -> tuple[Provider, ...]:
    """Return a channel's providers in order of preference. With ``test``, only the sandbox's."""
    return tuple(map(get_provider, _names(channel, test=test)))


def all_providers_for(channel: Channel) -> tuple[Provider, ...]:
    """Return the providers of a channel, then those of its test notifications."""
    return (*providers_for(channel), *providers_for(channel, test=True))


def is_configured(channel: Channel, *, test: bool = False) -> bool:
    """Return whether a channel has a provider, without creating one."""
    return bool(_names(channel, test=test))


def can_send(name: str, channel: Channel) -> bool:
    """Return whether messages of a channel can be sent by an account, listed or not."""
    is_account = name in SPECS or name in settings.PROVIDER_ACCOUNTS
    return is_account and channel_of(name) is channel and _is_configured(name)


def every_channel(*, test: bool = False) -> list[Channel]:
    """Return the channels that ``all`` names: an optional one only with a provider."""
    return [
        channel
        for channel in Channel
        if not channel.spec.is_optional or is_configured(channel, test=test)
    ]


@cache
def get_provider(name: str) -> Provider:
    """Return the provider of an account or a sandbox, whether messages are sent by it or not.

    Raises LookupError.
    """
    spec = spec_of(name)
    if not name.startswith(SANDBOX_PREFIX):
        return spec.build(account_of(name))
    if spec.sandbox is None:
        raise LookupError(f"{spec.name} has no sandbox")
    return spec.sandbox.build()


def webhook_provider(name: str) -> WebhookProvider:
    """Return the provider that reads the webhooks of an account or sandbox. Raises LookupError."""
    spec = spec_of(name)
    found = get_provider(name.removeprefix(SANDBOX_PREFIX)) if spec.webhook else None
    if isinstance(found, WebhookProvider):
        return found
    raise LookupError(f"{spec.name} has no webhooks")


@cache
def _names(channel: Channel, *, test: bool) -> Sequence[str]:
    specs = [spec for spec in SPECS.values() if spec.channel is channel]
    if test and not channel.is_inbox:
        return [
            spec.sandbox_name for spec in specs if spec.sandbox and spec.sandbox.is_configured()
        ]
    order = getattr(settings, order_setting(channel), None)
    if order is None:
        order = [spec.name for spec in specs]
    return [name for name in order if channel_of(name) is channel and _is_configured(name)]


def _is_configured(name: str) -> bool:
    return spec_of(name).is_configured(account_of(name))


def clear(**_: Any) -> None:
    """Discard all providers, because a setting changed."""
    _names.cache_clear()
    providers_for.cache_clear()
    get_provider.cache_clear()


setting_changed.connect(clear)
