"""What the rest of the service knows of a provider. Pure.

Each package beside this module exports a ``PROVIDER``, and :mod:`.discovery` finds it. Its import
is light: what it describes is imported when it is needed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from domain.channels import Channel

from .contract import Provider

SANDBOX_PREFIX = "sandbox-"


def order_setting(channel: Channel) -> str:
    """Return the setting with the providers of a channel in the order of failover.

    A channel has one if it has a variable ``<CHANNEL>_PROVIDER``. Without it, all that are
    configured send.
    """
    return f"{channel.value.upper()}_PROVIDERS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account of a provider, by which messages are sent and webhooks are verified.

    Each kind of provider has one with its own name, and the environment may declare more:
    :mod:`notifyproject.settings.accounts`.
    """

    name: str
    """As stored in attempts and receipts."""
    kind: str
    values: Any = field(repr=False)
    """Has the account's settings as attributes with the names that its kind gives them."""

    @property
    def webhook_path(self) -> str:
        """The path of its webhook."""
        own = "" if self.name == self.kind else f"/{self.name}"
        return f"/webhooks/{self.kind}{own}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """The counterpart of a provider for test mode.

    It has a name and account of its own, so that it shares no circuit, rate limit, or bulkhead with
    the real provider. Its webhooks arrive at the real provider's address.
    """

    label: str
    is_configured: Callable[[], bool]
    build: Callable[[], Provider]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSpec:
    """The webhook of a provider, which is a :class:`~providers.contract.WebhookProvider`."""

    content: str
    """What its body is, in the response to another body."""
    has_handshake: bool = False
    """Whether the provider verifies the webhook's address by a GET request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSpec:
    """A kind of provider, of one channel."""

    name: str
    """That of the kind, and of its account unless the environment declares others."""
    label: str
    """As staff read it."""
    channel: Channel
    enabled_by: str = ""
    """The variable that turns it on. Empty: it is on if its channel's list names it, or always."""
    is_configured: Callable[[Account], bool]
    """Whether messages can be sent by an account, if its channel's list names it."""
    build: Callable[[Account], Provider]
    """Create it from the values of an account. Without credentials, it can still verify webhooks.
    """
    sandbox: SandboxSpec | None = None
    webhook: WebhookSpec | None = None
    settings: type[Any] | None = None
    """Its environment variables: a :class:`~notifyproject.settings.declarations.ProviderGroup` in
    ``variables.py`` of the package, since they are read before Django starts."""
    check: Callable[..., None] | None = None
    """Tries the values of an :class:`~notifyproject.settings.variables.Environment` by a call that
    sends no message, for the set-up wizard. Raises :class:`providers.setup_check.CheckError`."""
    checks: Callable[[], Any] | None = None
    """Returns what has the functions of ``checks.py``, for a package without one; see
    :func:`.discovery.checks_of`."""
    complete: Callable[[dict[str, str]], None] | None = None
    """Completes the values that the wizard writes. Raises ValueError."""

    @property
    def sandbox_name(self) -> str:
        """The name of its sandbox, as stored."""
        return f"{SANDBOX_PREFIX}{self.name}"
