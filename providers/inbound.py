"""What recipients tell by a provider: messages, opt-outs, and the names by which it knows them."""

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage:
    """A message that a recipient sent to us."""

    phone: str | None = field(default=None, repr=False)
    """The sender's number in E.164; never logged. None if Meta gives the user ID alone."""
    user_id: str | None = field(default=None, repr=False)
    """Meta's ID of the sender, such as ``GB.13491208655302741918``."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketingPreference:
    """A recipient's opt-out from WhatsApp marketing, or opt-in to it."""

    phone: str | None = field(default=None, repr=False)
    """The recipient's number in E.164; never logged. None if Meta gives the user ID alone."""
    user_id: str | None = field(default=None, repr=False)
    is_wanted: bool
    at: datetime
    event_id: str = ""
    """What tells a repeated webhook from another wish. Empty: the time, if the provider tells it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedWindow:
    """A service window that WhatsApp says is closed: it refused a text."""

    phone: str | None = field(default=None, repr=False)
    """The recipient's number in E.164; never logged. None if Meta gives the user ID alone."""
    user_id: str | None = field(default=None, repr=False)
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A person's user ID at Meta with the number, the reference of a message to it, or both."""

    user_id: str = field(repr=False)
    phone: str | None = field(default=None, repr=False)
    reference: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentityChange:
    """A person's user ID or number that took the place of an earlier one."""

    previous: str = field(repr=False)
    """A user ID, or a number in E.164."""
    current: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """What a webhook contains besides receipts."""

    messages: tuple[InboundMessage, ...] = ()
    preferences: tuple[MarketingPreference, ...] = ()
    """Oldest first."""
    closed_windows: tuple[ClosedWindow, ...] = ()
    identities: tuple[Identity, ...] = ()
    changes: tuple[IdentityChange, ...] = ()
