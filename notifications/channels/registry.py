"""Which provider serves which channel, as the settings say."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from ..states import Channel
from ..timing import utc_now
from .base import Channel as Provider
from .email_sendgrid import SendGrid
from .email_smtp import SMTP
from .in_app import Inbox


@cache
def provider_for(channel: Channel) -> Provider | None:
    """Return the provider of a channel; None if none is set up."""
    make = _MAKERS.get(channel)
    return make() if make else None


@cache
def sendgrid() -> SendGrid:
    """Return the configured SendGrid account, also when mail goes by SMTP: its webhooks do not."""
    return SendGrid(
        api_key=settings.SENDGRID_API_KEY,
        base_url=settings.SENDGRID_URL,
        sender=settings.EMAIL_FROM,
        webhook_public_key=settings.SENDGRID_WEBHOOK_PUBLIC_KEY,
        clock=utc_now,
    )


def _email() -> Provider:
    if settings.EMAIL_PROVIDER == "sendgrid":
        return sendgrid()
    return SMTP(
        sender=settings.EMAIL_FROM,
        options={
            "host": settings.EMAIL_HOST,
            "port": settings.EMAIL_PORT,
            "username": settings.EMAIL_HOST_USER,
            "password": settings.EMAIL_HOST_PASSWORD,
            "use_tls": settings.EMAIL_USE_TLS,
            "use_ssl": settings.EMAIL_USE_SSL,
        },
    )


_MAKERS: dict[Channel, Callable[[], Provider]] = {Channel.EMAIL: _email, Channel.IN_APP: Inbox}


def _forget_providers(**_: Any) -> None:
    provider_for.cache_clear()
    sendgrid.cache_clear()


setting_changed.connect(_forget_providers)
