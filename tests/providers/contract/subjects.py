"""What the contract has to know of a provider: how it is made, and what it would say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from providers.contract import Message, Provider, SendRequest
from tests.providers.contract.cases import Case
from tests.providers.contract.servers import Make
from tests.support.factories.notifications import outbound
from tests.support.providers.fcm import Project

NAME, SUBJECT, TEXT = "Ada Lovelace", "The 49 crowns", "Your 49 crowns from Babbage are here."
EMAIL, PHONE, TOKEN = "ada.lovelace@example.com", "+447700900999", "APA91b-adas-own-phone"
PRIVATE = (NAME, SUBJECT, TEXT, EMAIL, PHONE, PHONE[1:], TOKEN)
"""What is nobody's business but the recipient's."""
PAUSE = 7.0
ASKS_FOR_A_PAUSE = f"Retry-After: {PAUSE:.0f}"
THREAD = "5f" * 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a provider is."""

    host: str
    port: int
    project: Project
    """Who gives access tokens for pushes."""

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


Sign = Callable[[bytes, bool], Mapping[str, str]]
"""Returns the headers of a webhook, signed by the provider or by somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    """A provider's webhook."""

    body: Callable[[str], bytes]
    """Makes one about a reference."""
    sign: Sign


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One provider. ``never`` says which cases it cannot have, and why."""

    provider: type[Provider]
    make: Callable[[Place, str], Provider]
    """Makes it with an account of this name."""
    outbound: SendRequest
    desks: Mapping[Case, Make]
    never: Mapping[Case, str] = field(default_factory=dict)
    begun: Mapping[Case, int] = field(default_factory=dict)
    """How often it begins to hand over one message, where that is not once."""
    secrets: Callable[[Place], Sequence[str]]
    pause: float | None = PAUSE
    """What it asks for where it wants fewer messages."""
    gives_id: bool = True
    has_accounts: bool = True
    """It has credentials: another account's are other ones."""
    reports: Reports | None = None
    """None: it sends no webhooks."""

    @property
    def name(self) -> str:
        return self.provider.__name__


def message(channel: str, recipient: str, **fields: Any) -> SendRequest:
    """Return what is told to Ada."""
    return outbound(
        reference=f"{THREAD}.{channel}.1",
        notification_id=THREAD,
        recipient=recipient,
        recipient_name=NAME,
        message=Message(subject=SUBJECT, text=TEXT),
        **fields,
    )
