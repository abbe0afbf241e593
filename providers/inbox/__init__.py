"""The in-app inbox."""

from domain.channels import INBOX

from ..contract import Provider
from ..spec import Account, ProviderSpec


def build(account: Account) -> Provider:
    """Return the inbox."""
    from .provider import InAppProvider

    return InAppProvider(name=account.name)


PROVIDER = ProviderSpec(
    name="inbox", label="Inbox", channel=INBOX, is_configured=lambda _account: True, build=build
)
