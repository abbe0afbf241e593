"""Configured providers of each channel, and the sandbox in their place.

The sandbox takes what API clients in test mode send. Each of its providers has a name, and so an
account, of its own: it shares no circuit, rate or bulkhead with a real provider. Its webhooks come
as those of the provider that it stands in for.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from domain.states import Channel
from domain.time import utc_now

from .contract import Provider
from .in_app import InAppProvider
from .sendgrid.provider import SendGrid
from .smtp.provider import SMTP
from .whatsapp.provider import WhatsApp


@cache
def providers_for(channel: Channel, *, test: bool = False) -> tuple[Provider, ...]:
    """Return the providers of a channel, the first to be used first; none if none is set up.

    ``test``: those of what an API client in test mode sends. They are the sandbox, and none if
    there is no sandbox.
    """
    return tuple(factory() for factory in (_test_factories if test else _factories)(channel))


def is_configured(channel: Channel, *, test: bool = False) -> bool:
    """Return whether a channel has a provider, without making one."""
    return bool((_test_factories if test else _factories)(channel))


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
    from .fcm.provider import FCM

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


def _factories(channel: Channel) -> list[Callable[[], Provider]]:
    mail_factories: dict[str, Callable[[], Provider]] = {"sendgrid": sendgrid, "smtp": smtp}
    if channel is Channel.EMAIL:
        names = settings.EMAIL_PROVIDERS
        return [
            mail_factories[name] for name in names if name != "sendgrid" or settings.SENDGRID_URL
        ]
    if channel is Channel.PUSH:
        return [fcm] if settings.FCM_CREDENTIALS else []
    if channel is Channel.WHATSAPP:
        return [whatsapp] if settings.WHATSAPP_TOKEN else []
    return [InAppProvider] if channel is Channel.IN_APP else []


def _test_factories(channel: Channel) -> list[Callable[[], Provider]]:
    if channel is Channel.IN_APP:
        return [InAppProvider]
    if not settings.SANDBOX_URL:
        return []
    if channel is Channel.EMAIL:
        return [sandbox_sendgrid]
    if channel is Channel.PUSH:
        return [sandbox_fcm] if settings.SANDBOX_FCM_CREDENTIALS else []
    return [sandbox_whatsapp] if channel is Channel.WHATSAPP else []


def clear(**_: Any) -> None:
    """Make the providers anew at the next use: the settings are others."""
    for factory in (providers_for, sendgrid, smtp, fcm, whatsapp):
        factory.cache_clear()
    clear_sandboxes()


setting_changed.connect(clear)


SANDBOX_SENDGRID_KEY = "SG.sandbox"


SANDBOX_WHATSAPP_KEY = "EAAsandbox"


SANDBOX_WHATSAPP_NUMBER = "100000000000001"
"""What the sandbox takes from everybody: there is nothing to keep secret."""


@cache
def sandbox_sendgrid() -> SendGrid:
    """Return the sandbox as SendGrid: test mail goes there, whoever carries mail otherwise."""
    return SendGrid(
        name="sandbox-sendgrid",
        api_key=SANDBOX_SENDGRID_KEY,
        base_url=settings.SANDBOX_URL,
        sender=settings.EMAIL_FROM,
        reply_to=settings.EMAIL_REPLY_TO,
        attachment_hosts=settings.ATTACHMENT_HOSTS,
        webhook_public_key="",
        clock=utc_now,
    )


@cache
def sandbox_fcm() -> Provider:
    """Return the sandbox as Firebase."""
    # Here, since importing Google's libraries takes half a second that few processes need.
    from .fcm.provider import FCM

    return FCM(
        name="sandbox-fcm",
        credentials=settings.SANDBOX_FCM_CREDENTIALS,
        base_url=settings.SANDBOX_URL,
        clock=utc_now,
    )


@cache
def sandbox_whatsapp() -> WhatsApp:
    """Return the sandbox as WhatsApp's Cloud API."""
    return WhatsApp(
        name="sandbox-whatsapp",
        token=SANDBOX_WHATSAPP_KEY,
        phone_number_id=SANDBOX_WHATSAPP_NUMBER,
        base_url=settings.SANDBOX_URL,
        app_secret="",
        verify_token="",
        version=settings.WHATSAPP_API_VERSION,
        clock=utc_now,
    )


def clear_sandboxes() -> None:
    """Make them anew at the next use: the settings are others."""
    for factory in (sandbox_sendgrid, sandbox_fcm, sandbox_whatsapp):
        factory.cache_clear()
