"""Email by SMTP."""

from typing import Any

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now

from ..contract import Provider
from ..spec import Account, ProviderSpec
from .variables import Settings


def build(account: Account) -> Provider:
    """Return the provider for the configured mail server."""
    from .provider import SMTP

    values = account.values
    return SMTP(
        name=account.name,
        sender=settings.EMAIL_FROM,
        reply_to=settings.EMAIL_REPLY_TO,
        attachment_hosts=settings.ATTACHMENT_HOSTS,
        options={
            "host": values.EMAIL_HOST,
            "port": values.EMAIL_PORT,
            "username": values.EMAIL_HOST_USER,
            "password": values.EMAIL_HOST_PASSWORD,
            "use_tls": values.EMAIL_USE_TLS,
            "use_ssl": values.EMAIL_USE_SSL,
            "ehlo_name": values.SMTP_EHLO_NAME,
        },
        clock=utc_now,
    )


def check(environment: Any, **options: Any) -> None:
    """See :func:`.setup.check`."""
    from . import setup

    setup.check(environment, **options)


PROVIDER = ProviderSpec(
    name="smtp",
    label="Mail server",
    channel=Channel("email"),
    is_configured=lambda _account: True,
    build=build,
    check=check,
    settings=Settings,
)
