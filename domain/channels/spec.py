"""The traits by which a channel describes itself.

A trait names a strategy. The strategy is code in the layer that owns it: ``delivery/targets.py``
resolves :class:`Targets`, and ``notifications/content/rendering.py`` builds a :class:`Shape`.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from ..addresses import AddressKind


class Targets(StrEnum):
    """What a delivery is sent to."""

    ADDRESS = "address"
    """One address of the recipient, of the channel's kind."""
    DEVICES = "devices"
    """Each device of the recipient, whose receipts decide the state together."""
    INBOX = "inbox"
    """The recipient's inbox: the message is delivered by being stored. One channel has it."""
    ROOM = "room"
    """A room of a team, which is no person: it has no preferences, and no limits of a person. One
    channel has it."""
    NOTHING = "nothing"
    """Nobody: this version doesn't know the channel."""


class Shape(StrEnum):
    """How a message is made of a notification's subject and body, and the channel's own parts."""

    MAIL = "mail"
    """HTML in the layout beside the text, with attachments, a reply address, an unsubscribe link.
    """
    ALERT = "alert"
    """A title and a text that a lock screen shows, both shortened."""
    TEXT = "text"
    """The text alone."""
    PARTS = "parts"
    """The text alone, encoded and divided into the parts that are paid for."""
    ITEM = "item"
    """Subject and body as they are."""
    CARD = "card"
    """A title and a text in Markdown, with links as buttons."""


class Role(StrEnum):
    """What a channel's own part of a template replaces."""

    TITLE = "title"
    """The subject. It has one line."""
    TEXT = "text"
    """The body."""
    HTML = "html"
    """The HTML that is made of the body otherwise."""
    MARKDOWN = "markdown"
    """The body, in the subset of Markdown of :mod:`domain.markdown`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSpec:
    """A part that a template may have for one channel."""

    name: str
    role: Role
    label: str
    help_text: str
    rows: int = 5
    """The height of its input in the console."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What the channel needs in order to reach a recipient, and what is said without it."""

    pointer: str
    """JSON Pointer to the field of a request that lacks it."""
    fields: tuple[str, ...]
    """Fields of a request of which one is needed."""
    refusal: str
    """The problem of a request that names the channel, as a sentence."""
    obstacle: str
    """Why a suppressed delivery can't be sent, as a sentence."""
    resend_obstacle: str
    """Why a resend would fail again, as a sentence."""
    test_label: str
    """The label of the input for the recipient of a test."""
    test_input: str
    """The type of that HTML input."""

    @classmethod
    def by_address(cls, kind: AddressKind, *, test_label: str | None = None) -> "Reach":
        """Return what a channel needs that sends to addresses."""
        return cls(
            pointer=f"/recipient/{kind.field}",
            fields=(f"recipient.{kind.field}",),
            refusal=f"No {kind.name}.",
            obstacle=f"No {kind.name}.",
            resend_obstacle=f"No usable {kind.name}.",
            test_label=test_label or kind.title,
            test_input=kind.input_type,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSpec:
    """Everything that is special about a channel. A module of this package exports one as SPEC."""

    name: str
    order: int
    """Its place in lists."""
    label: str
    icon: str
    """The name of a symbol of the console's icon font."""
    targets: Targets
    reach: Reach
    shape: Shape
    preview: str
    """The template that shows a preview of a message: ``console/types/previews/<preview>.html``."""
    address: AddressKind | None = None
    """The kind of address, if it sends to addresses. Addresses can be suppressed and corrected."""
    parts: tuple[PartSpec, ...] = ()
    is_optional: bool = False
    """``all`` names it only with a provider, so that a release that adds it changes nothing."""
    opt_out_is_total: bool = False
    """A recipient who opts out by the provider gets no message at all; if False, no marketing."""
    has_service_window: bool = False
    """Free text is allowed for a time after the recipient's last message, and a template that the
    provider has approved at any time."""
    has_identities: bool = False
    """The provider knows a person by other names than the address, such as a user ID."""
    reports_other_spellings: bool = False
    """Receipts may name another spelling of the address than the one that was sent to."""


@lru_cache(maxsize=64)
def unknown_spec(name: str) -> ChannelSpec:
    """Return the spec of a channel that another version has: its plain name, and no traits."""
    unknown = f"This version has no channel `{name}`."
    return ChannelSpec(
        name=name,
        order=1_000,
        label=name,
        icon="help",
        targets=Targets.NOTHING,
        reach=Reach(
            pointer="/channels",
            fields=(),
            refusal=unknown,
            obstacle=unknown,
            resend_obstacle=unknown,
            test_label=name,
            test_input="text",
        ),
        shape=Shape.ITEM,
        preview="item",
    )
