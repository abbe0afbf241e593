"""The spec of a provider of email with an API. Light, as a package's ``__init__`` imports it."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now
from notifyproject.settings.declarations import ProviderGroup

from .spec import Account, ProviderSpec, WebhookSpec

if TYPE_CHECKING:
    from .email_api import EmailApi

LIBRARY = "anymail"
REQUIREMENTS = "requirements-providers.txt"


def email_spec(
    *,
    label: str,
    variables: type[ProviderGroup],
    options: Callable[[Any], Mapping[str, str]],
    secrets: Callable[[Any], Mapping[str, str]],
    check: Callable[..., None] | None = None,
    credential: str,
) -> ProviderSpec:
    """Return the spec of a provider, whose row is ``KIND`` in ``kind.py`` of its package.

    ``options`` and ``secrets`` return the arguments of anymail's backend, and those of
    :class:`.email_kinds.WebhookSecrets`. ``credential`` names the variable without which it can't
    send.
    """
    name = variables.provider

    def is_configured(found: Account) -> bool:
        return bool(getattr(found.values, credential)) and is_installed()

    def build(found: Account) -> "EmailApi":
        values = variables.of(found.values)
        if getattr(values, credential) and is_installed():
            # Takes a tenth of a second, which the first mail would wait for.
            import_module(f"{__package__}.email_payloads")
        return account(
            found.name,
            kind=name,
            options=options(values),
            secrets=secrets(values),
            mail={
                "sender": settings.EMAIL_FROM,
                "reply_to": settings.EMAIL_REPLY_TO,
                "attachment_hosts": settings.ATTACHMENT_HOSTS,
            },
        )

    return ProviderSpec(
        name=name,
        label=label,
        channel=Channel("email"),
        is_configured=is_configured,
        build=build,
        webhook=WebhookSpec(content=f"an event of {label}, or a list of events"),
        check=check,
        settings=variables,
    )


def account(
    name: str,
    *,
    kind: str,
    options: Mapping[str, str],
    secrets: Mapping[str, str],
    mail: Mapping[str, Any],
) -> "EmailApi":
    """Return an account of a kind."""
    from .email_api import EmailApi, IdempotentEmailApi
    from .email_kinds import WebhookSecrets

    row = import_module(f"{__package__}.{kind}.kind").KIND
    build = EmailApi if row.idempotency is None else IdempotentEmailApi
    return build(
        kind=row,
        name=name,
        options=options,
        secrets=WebhookSecrets(**secrets),
        clock=utc_now,
        **mail,
    )


def is_installed() -> bool:
    """Return whether the library is installed that these providers need, without importing it."""
    return find_spec(LIBRARY) is not None
