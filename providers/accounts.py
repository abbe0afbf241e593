"""The accounts of providers by their names, which attempts, receipts, and circuits have.

A stored name may be of an account that another version or an earlier environment has.
"""

from collections.abc import Iterator

from django.conf import settings

from domain.channels import Channel

from .discovery import SPECS
from .spec import SANDBOX_PREFIX, Account, ProviderSpec, order_setting


def spec_of(name: str) -> ProviderSpec:
    """Return the spec of the kind of an account, or of a sandbox. Raises LookupError."""
    if (declared := settings.PROVIDER_ACCOUNTS.get(name)) is not None:
        name = declared.variables.kind
    return SPECS[name.removeprefix(SANDBOX_PREFIX)]


def channel_of(name: str) -> Channel | None:
    """Return the channel of an account or sandbox. None if there is none with this name."""
    try:
        return spec_of(name).channel
    except LookupError:
        return None


def reports_on(name: str) -> tuple[str, ...]:
    """Return by which names a message was sent on which an account reports.

    They are its own, and that of its kind's sandbox, whose webhooks arrive at its address.
    """
    try:
        return (name, spec_of(name).sandbox_name)
    except LookupError:
        return (name,)


def account_of(name: str) -> Account:
    """Return an account, whether messages are sent by it or not. Raises LookupError."""
    if (declared := settings.PROVIDER_ACCOUNTS.get(name)) is not None:
        return Account(name=name, kind=declared.variables.kind, values=declared.values)
    return Account(name=SPECS[name].name, kind=name, values=settings)


def has_order(channel: Channel) -> bool:
    """Return whether messages of a channel are sent by a list of accounts in order."""
    return hasattr(settings, order_setting(channel))


def every_account() -> Iterator[Account]:
    """Yield all accounts: that of each kind, and the declared ones."""
    for name in (*SPECS, *settings.PROVIDER_ACCOUNTS):
        yield account_of(name)
