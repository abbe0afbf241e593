"""The description of a provider that the contract tests need."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from providers.contract import Message, Provider, SendRequest
from tests.providers.contract.cases import Case
from tests.providers.contract.servers import Make
from tests.support.factories.notifications import outbound
from tests.support.providers.fcm import Project
from tests.support.providers.webhook_requests import URL

NAME, SUBJECT, TEXT = "Ada Lovelace", "The 49 crowns", "Your 49 crowns from Babbage are here."
EMAIL, PHONE, TOKEN = "ada.lovelace@example.com", "+447700900999", "APA91b-adas-own-phone"
ROOM = "https://hooks.example.com/services/T0ADA/B0ADA/adas-own-room"
PRIVATE = (NAME, SUBJECT, TEXT, EMAIL, PHONE, PHONE[1:], TOKEN, ROOM)
"""The recipient's private data."""
PAUSE = 7.0
ASKS_FOR_A_PAUSE = f"Retry-After: {PAUSE:.0f}"
THREAD = "5f" * 12
REFERENCE = f"{THREAD}.email.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The address of a provider."""

    host: str
    port: int
    project: Project
    """The Firebase project, which issues access tokens for pushes."""

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"


Sign = Callable[[bytes, bool], Mapping[str, str]]
"""Returns the headers of a webhook with a genuine or a forged signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reports:
    body: Callable[[str], bytes]
    """Returns a webhook about a reference."""
    sign: Sign
    is_envelope: bool = False
    """The signature is in the body, and covers its fields."""
    url: Callable[[str], str] = lambda _reference: URL
    """Returns the called URL, which has the reference at some providers."""
    signs_body: bool = True
    """Whether the signature covers the body: others prove only who calls."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A provider under contract. ``never`` has its impossible cases, with reasons."""

    provider: type[Provider]
    make: Callable[[Place, str], Provider]
    """Makes the provider with an account of this name."""
    outbound: SendRequest
    servers: Mapping[Case, Make]
    never: Mapping[Case, str] = field(default_factory=dict)
    begun: Mapping[Case, int] = field(default_factory=dict)
    """Number of transfers of one message, if not 1."""
    secrets: Callable[[Place], Sequence[str]]
    pause: float | None = PAUSE
    """Expected pause after a rate limit."""
    gives_id: bool = True
    is_encrypted: bool = False
    """What a request says is encrypted for its recipient."""
    spelled: Callable[[str], str] = str
    """Returns the reference as a request has it."""
    has_accounts: bool = True
    """Accounts differ by credentials."""
    reports: Reports | None = None
    """None if the provider has no webhooks."""
    label: str = ""
    """The name, if a class serves several providers."""

    @property
    def name(self) -> str:
        return self.label or self.provider.__name__


def message(channel: str, recipient: str, **fields: Any) -> SendRequest:
    return outbound(
        reference=f"{THREAD}.{channel}.1",
        notification_id=THREAD,
        recipient=recipient,
        recipient_name=NAME,
        message=Message(subject=SUBJECT, text=TEXT),
        **fields,
    )
