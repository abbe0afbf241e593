"""The spec of a provider of email with an API. Light, as a package's ``__init__`` imports it."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.conf import settings

from domain.channels import Channel
from domain.time import utc_now
from notifyproject.settings.declarations import ProviderGroup

from . import email_library
from .spec import Account, ProviderSpec, WebhookSpec

if TYPE_CHECKING:
    from .email_api import EmailApi
    from .email_checks import EmailChecks


def email_spec(
    *,
    label: str,
    variables: type[ProviderGroup],
    options: Callable[[Any], Mapping[str, str]],
    credentials: Sequence[str],
    secrets: Mapping[str, str],
) -> ProviderSpec:
    """Return the spec of a provider, whose row is ``KIND`` in ``kind.py`` of its package.

    ``options`` returns the arguments of anymail's backend. ``credentials`` are the variables
    without which it can't send, and ``secrets`` those of :class:`.email_kinds.WebhookSecrets`. The
    wizard's call is in ``setup.py`` of the package, if there is one without a mail.
    """
    name = variables.provider
    setup = f"{__package__}.{name}.setup"

    def is_configured(found: Account) -> bool:
        return email_library.is_installed() and all(
            getattr(found.values, one) for one in credentials
        )

    def check(environment: Any, **fields: Any) -> None:
        import_module(setup).check(environment, **fields)

    def checks() -> "EmailChecks":
        from .email_checks import EmailChecks

        return EmailChecks(
            label=label,
            url=f"{name.upper()}_URL",
            credentials=credentials,
            secrets=tuple(secrets.values()),
        )

    def build(found: Account) -> "EmailApi":
        values = variables.of(found.values)
        if is_configured(found):
            # Takes a tenth of a second, which the first mail would wait for.
            import_module(f"{__package__}.email_payloads")
        return provider_of(
            found.name,
            kind=name,
            options=options(values),
            secrets={field: getattr(values, one) for field, one in secrets.items()},
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
        check=check if find_spec(setup) else None,
        checks=checks,
        settings=variables,
    )


def provider_of(
    name: str,
    *,
    kind: str,
    options: Mapping[str, str],
    secrets: Mapping[str, str],
    mail: Mapping[str, Any],
) -> "EmailApi":
    """Return the provider for an account of a kind."""
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
