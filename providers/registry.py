"""The configured providers of each channel, and their sandbox counterparts for test mode.

A sandbox provider has a name and account of its own, so that it shares no circuit, rate limit, or
bulkhead with a real provider. Its webhooks arrive at the real provider's endpoints.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from domain.channels import Channel
from domain.time import utc_now
from providers.labels import channel_of

from .contract import Provider
from .in_app import InAppProvider
from .sendgrid.provider import SendGrid
from .smtp.provider import SMTP
from .whatsapp.provider import WhatsApp

# The sandbox accepts these fixed values; they're not secret.
SANDBOX_SENDGRID_KEY = "SG.sandbox"
SANDBOX_WHATSAPP_KEY = "EAAsandbox"
SANDBOX_WHATSAPP_NUMBER = "100000000000001"


@cache
def providers_for(channel: Channel, *, test: bool = False) -> tuple[Provider, ...]:
    """Return a channel's providers in order of preference. With ``test``, only the sandbox's."""
    return tuple(factory() for factory in _factories(channel, test=test))


def is_configured(channel: Channel, *, test: bool = False) -> bool:
    """Return whether a channel has a provider, without creating one."""
    return bool(_factories(channel, test=test))


@cache
def sendgrid(*, sandbox: bool = False) -> SendGrid:
    """Return the SendGrid provider, which may also be needed for webhooks while SMTP sends."""
    return SendGrid(
        name="sandbox-sendgrid" if sandbox else "sendgrid",
        api_key=SANDBOX_SENDGRID_KEY if sandbox else settings.SENDGRID_API_KEY,
        base_url=settings.SANDBOX_URL if sandbox else settings.SENDGRID_URL,
        webhook_public_key="" if sandbox else settings.SENDGRID_WEBHOOK_PUBLIC_KEY,
        sender=settings.EMAIL_FROM,
        reply_to=settings.EMAIL_REPLY_TO,
        attachment_hosts=settings.ATTACHMENT_HOSTS,
        clock=utc_now,
    )


@cache
def smtp() -> SMTP:
    """Return the provider for the configured SMTP server."""
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
            "ehlo_name": settings.SMTP_EHLO_NAME,
        },
        clock=utc_now,
    )


@cache
def fcm(*, sandbox: bool = False) -> Provider:
    """Return the provider for the configured Firebase project."""
    # Imported here, because Google's libraries take half a second that few processes need.
    from .fcm.provider import FCM

    return FCM(
        name="sandbox-fcm" if sandbox else "fcm",
        credentials=settings.SANDBOX_FCM_CREDENTIALS if sandbox else settings.FCM_CREDENTIALS,
        project_id="" if sandbox else settings.FCM_PROJECT_ID,
        base_url=settings.SANDBOX_URL if sandbox else settings.FCM_URL,
        clock=utc_now,
    )


@cache
def whatsapp(*, sandbox: bool = False) -> WhatsApp:
    """Return the WhatsApp provider. Without an access token, it can still verify webhooks."""
    return WhatsApp(
        name="sandbox-whatsapp" if sandbox else "whatsapp",
        token=SANDBOX_WHATSAPP_KEY if sandbox else settings.WHATSAPP_TOKEN,
        phone_number_id=SANDBOX_WHATSAPP_NUMBER if sandbox else settings.WHATSAPP_PHONE_NUMBER_ID,
        business_account_id="" if sandbox else settings.WHATSAPP_BUSINESS_ACCOUNT_ID,
        base_url=settings.SANDBOX_URL if sandbox else settings.WHATSAPP_URL,
        app_secret="" if sandbox else settings.WHATSAPP_APP_SECRET,
        verify_token="" if sandbox else settings.WHATSAPP_VERIFY_TOKEN,
        version=settings.WHATSAPP_API_VERSION,
        clock=utc_now,
    )


def _factories(channel: Channel, *, test: bool) -> list[Callable[[], Provider]]:
    if channel.is_inbox:
        return [InAppProvider]
    if test:
        sandboxes: dict[str, tuple[Callable[..., Provider], str]] = {
            "sendgrid": (sendgrid, settings.SANDBOX_URL),
            "fcm": (fcm, settings.SANDBOX_URL and settings.SANDBOX_FCM_CREDENTIALS),
            "whatsapp": (whatsapp, settings.SANDBOX_URL),
        }
        return [
            partial(factory, sandbox=True)
            for name, (factory, is_set_up) in sandboxes.items()
            if is_set_up and channel_of(name) is channel
        ]
    accounts: dict[str, tuple[Callable[[], Provider], str]] = {
        "sendgrid": (sendgrid, settings.SENDGRID_URL),
        "smtp": (smtp, "always"),
        "fcm": (fcm, settings.FCM_CREDENTIALS),
        "whatsapp": (whatsapp, settings.WHATSAPP_TOKEN),
    }
    # Email has an order of preference.
    names = (*settings.EMAIL_PROVIDERS, "fcm", "whatsapp")
    return [
        factory
        for factory, is_set_up in (accounts[name] for name in names if channel_of(name) is channel)
        if is_set_up
    ]


def clear(**_: Any) -> None:
    """Discard all providers, because a setting changed."""
    for factory in (providers_for, sendgrid, smtp, fcm, whatsapp):
        factory.cache_clear()


setting_changed.connect(clear)
