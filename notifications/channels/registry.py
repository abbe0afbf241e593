"""Which providers serve which channel, in their order, as the settings say."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from ..states import Channel
from ..timing import utc_now
from . import sandboxes
from .base import Channel as Provider
from .email_sendgrid import SendGrid
from .email_smtp import SMTP
from .in_app import Inbox
from .whatsapp_cloud import WhatsApp


@cache
def providers_for(channel: Channel, *, test: bool = False) -> tuple[Provider, ...]:
    """Return the providers of a channel, the first to be used first; none if none is set up.

    ``test``: those of what an API client in test mode sends. They are the sandbox, and none if
    there is no sandbox.
    """
    return tuple(make() for make in (_test_makers if test else _makers)(channel))


def is_set_up(channel: Channel, *, test: bool = False) -> bool:
    """Return whether a channel has a provider, without making one."""
    return bool((_test_makers if test else _makers)(channel))


@cache
def sendgrid() -> SendGrid:
    """Return the configured SendGrid account, also when mail goes by SMTP: its webhooks do not."""
    return SendGrid(
        api_key=settings.SENDGRID_API_KEY,
        base_url=settings.SENDGRID_URL,
        sender=settings.EMAIL_FROM,
        reply_to=settings.EMAIL_REPLY_TO,
        attachment_hosts=settings.ATTACHMENT_HOSTS,
        webhook_public_key=settings.SENDGRID_WEBHOOK_PUBLIC_KEY,
        clock=utc_now,
    )


@cache
def smtp() -> SMTP:
    """Return the configured mail server."""
    return SMTP(
        sender=settings.EMAIL_FROM,
        reply_to=settings.EMAIL_REPLY_TO,
        attachment_hosts=settings.ATTACHMENT_HOSTS,
        options={
            "host": settings.EMAIL_HOST,
            "port": settings.EMAIL_PORT,
            "username": settings.EMAIL_HOST_USER,
            "password": settings.EMAIL_HOST_PASSWORD,
            "use_tls": settings.EMAIL_USE_TLS,
            "use_ssl": settings.EMAIL_USE_SSL,
        },
        clock=utc_now,
    )


@cache
def fcm() -> Provider:
    """Return the configured Firebase project."""
    # Here, since importing Google's libraries takes half a second that few processes need.
    from .push_fcm import FCM

    return FCM(
        credentials=settings.FCM_CREDENTIALS,
        project_id=settings.FCM_PROJECT_ID,
        base_url=settings.FCM_URL,
        clock=utc_now,
    )


@cache
def whatsapp() -> WhatsApp:
    """Return the configured number at the WhatsApp Cloud API; its webhooks need no token."""
    return WhatsApp(
        token=settings.WHATSAPP_TOKEN,
        phone_number_id=settings.WHATSAPP_PHONE_NUMBER_ID,
        base_url=settings.WHATSAPP_URL,
        app_secret=settings.WHATSAPP_APP_SECRET,
        verify_token=settings.WHATSAPP_VERIFY_TOKEN,
        version=settings.WHATSAPP_API_VERSION,
        clock=utc_now,
    )


def _makers(channel: Channel) -> list[Callable[[], Provider]]:
    mail: dict[str, Callable[[], Provider]] = {"sendgrid": sendgrid, "smtp": smtp}
    if channel is Channel.EMAIL:
        names = settings.EMAIL_PROVIDERS
        return [mail[name] for name in names if name != "sendgrid" or settings.SENDGRID_URL]
    if channel is Channel.PUSH:
        return [fcm] if settings.FCM_CREDENTIALS else []
    if channel is Channel.WHATSAPP:
        return [whatsapp] if settings.WHATSAPP_TOKEN else []
    return [Inbox] if channel is Channel.IN_APP else []


def _test_makers(channel: Channel) -> list[Callable[[], Provider]]:
    if channel is Channel.IN_APP:
        return [Inbox]
    if not settings.SANDBOX_URL:
        return []
    if channel is Channel.EMAIL:
        return [sandboxes.sendgrid]
    if channel is Channel.PUSH:
        return [sandboxes.fcm] if settings.SANDBOX_FCM_CREDENTIALS else []
    return [sandboxes.whatsapp] if channel is Channel.WHATSAPP else []


def forget(**_: Any) -> None:
    """Make the providers anew at the next use: the settings are others."""
    for made in (providers_for, sendgrid, smtp, fcm, whatsapp):
        made.cache_clear()
    sandboxes.forget()


setting_changed.connect(forget)
