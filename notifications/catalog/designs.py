"""Brands, layouts, partials, and translations: what they are, and the designs that hold them.

A design has all of them as they were at one time. It never changes: each change makes the next one.
A notification that uses any has the number of the design that it was accepted with, so that what is
sent later is what was there then, as with the version of its template.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache, partial
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta
from pymongo.client_session import ClientSession

from domain.colours import DARK, LIGHT
from domain.content import Look
from domain.stored import struct_from_stored
from notifyproject.platform.cache import SharedCache

from ..documents.catalog import DESIGNS, DesignDocument
from ..models.catalog import NAME_LENGTH, SLUG_LENGTH

MAX_ATTEMPTS = 100
"""Of a write that others precede each time."""
MAX_CACHED_DESIGNS = 64
MAX_FOOTER = 500
MAX_LOGO_WIDTH = 480
MAX_MAILBOX = 320
MAX_ACCOUNTS = 10
MAX_ACCOUNT = 40
BRAND_VARIABLE = "brand"
"""The name under which templates access the brand of their message."""
_NEWEST = [("_id", -1)]
_TOUCH = {"$inc": {"touches": 1}}

Mailbox = Annotated[str, Meta(min_length=3, max_length=MAX_MAILBOX)]
AccountName = Annotated[str, Meta(min_length=1, max_length=MAX_ACCOUNT)]
Colour = Annotated[str, Meta(pattern=r"\A#[0-9a-f]{6}\Z", examples=["#4f46e5"])]
ImageUrl = Annotated[str, Meta(min_length=1, max_length=2048)]
T = TypeVar("T")
Texts = Mapping[str, Mapping[str, str]]
"""The texts of a partial by language and kind."""


class Kind(StrEnum):
    """What a design has."""

    PARTIAL = "partial"
    LAYOUT = "layout"
    BRAND = "brand"
    TRANSLATION = "translation"


class TextKind(StrEnum):
    """What a text of a partial is for."""

    TEXT = "text"
    """Every part that isn't HTML."""
    HTML = "html"


class Palette(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The colours of an email."""

    background: Colour = LIGHT["background"]
    """Around the card."""
    surface: Colour = LIGHT["surface"]
    """Of the card with the text."""
    text: Colour = LIGHT["text"]
    muted: Colour = LIGHT["muted"]
    """Of the name above the card, and of the footer below it."""
    accent: Colour = LIGHT["accent"]
    """Of links, and behind the label of a button."""
    on_accent: Colour = LIGHT["on_accent"]
    """Of the label of a button."""


class DarkPalette(Palette, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The colours of an email in dark mode, where the mail program lets the sender choose."""

    background: Colour = DARK["background"]
    surface: Colour = DARK["surface"]
    text: Colour = DARK["text"]
    muted: Colour = DARK["muted"]
    accent: Colour = DARK["accent"]
    on_accent: Colour = DARK["on_accent"]


class Colours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A palette for each mode."""

    light: Palette = Palette()
    dark: DarkPalette = DarkPalette()


class Logo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The picture above an email, in place of the sender's name."""

    url: Annotated[ImageUrl, Meta(examples=["https://cdn.example.com/acme.png"])]
    dark_url: Annotated[
        ImageUrl | None,
        Meta(description="For dark mode, where the mail program can choose; null: the same."),
    ] = None
    width: Annotated[int, Meta(ge=16, le=MAX_LOGO_WIDTH, description="In pixels.")] = 120


class BrandRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom a message is from: name, logo, colours, sender, and what sends it."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH, examples=["Acme"])]
    logo: Logo | None = None
    colours: Colours = Colours()
    footer: Annotated[
        str, Meta(max_length=MAX_FOOTER, description="Below each email, such as your address.")
    ] = ""
    layout: Annotated[
        Annotated[str, Meta(max_length=SLUG_LENGTH)] | None,
        Meta(description="The frame of emails whose type names none; null: the built-in one."),
    ] = None
    sender: Annotated[
        Annotated[Mailbox, Meta(examples=["Acme <hello@acme.example>"])] | None,
        Meta(description="The sender of emails; null: the installation's."),
    ] = msgspec.field(name="from", default=None)
    reply_to: Annotated[
        Annotated[Mailbox, Meta(examples=["help@acme.example"])] | None,
        Meta(
            description="The reply address of messages that have none; null: `from`, or the "
            "installation's."
        ),
    ] = None
    accounts: Annotated[
        dict[str, Annotated[list[AccountName], Meta(min_length=1, max_length=MAX_ACCOUNTS)]],
        Meta(
            description="By channel, the accounts of providers that send its messages, in the "
            "order of failover. Others send none of them.",
            examples=[{"email": ["acme_eu"]}],
        ),
    ] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """All brands, layouts, partials, and translations. Number 0 has none."""

    number: int = 0
    partials: Mapping[str, Texts] = field(default_factory=dict)
    layouts: Mapping[str, str] = field(default_factory=dict)
    brands: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    translations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Nested texts by language."""
    changed_in: Mapping[str, int] = field(default_factory=dict)
    """The design that made each item what it is, by the item's key."""
    touches: int | None = None
    """As they were when it was read."""

    def items(self, kind: Kind) -> Mapping[str, Any]:
        """Return what it has of a kind, by name."""
        by_kind: Mapping[Kind, Mapping[str, Any]] = {
            Kind.PARTIAL: self.partials,
            Kind.LAYOUT: self.layouts,
            Kind.BRAND: self.brands,
            Kind.TRANSLATION: self.translations,
        }
        return by_kind[kind]

    def translation(self, key: str, language: str) -> str | None:
        """Return the text with a key such as ``order.title`` in exactly this language, or None."""
        here: Any = self.translations.get(language)
        for name in key.split("."):
            here = here.get(name) if isinstance(here, Mapping) else None
        return here if isinstance(here, str) else None

    def brand(self, name: str) -> BrandRequest:
        """Return a brand, with defaults for what it leaves out."""
        return struct_from_stored(BrandRequest, self.brands[name])

    def given(self, kind: Kind, name: str) -> Any:
        """Return an item as a request gives it, None if there is none."""
        found = self.items(kind).get(name)
        return found if found is None or kind is not Kind.BRAND else fields_of(self.brand(name))


class UnknownDesignError(LookupError):
    """No such design is stored."""


class UnknownBrandError(LookupError):
    """There is no such brand."""


class MovedError(Exception):
    """What is to be stored was checked with something that has changed since. Nothing is stored."""


class DesignMovedError(MovedError):
    """There is a newer design than what was checked with it, or something else relies on it now."""


_tried: ContextVar[Design | None] = ContextVar("tried_design", default=None)


def current() -> Design:
    """Return the design that new notifications use."""
    return _newest.get()


def numbered(number: int) -> Design:
    """Return a design, cached. Raises UnknownDesignError."""
    tried = _tried.get()
    if tried is not None and tried.number == number:
        return tried
    return _read_numbered(number)


@contextmanager
def trying(design: Design) -> Iterator[Design]:
    """Let a design that isn't stored be rendered as stored ones are, within this context.

    It gets a number that no stored one has, and that is the same for the same content.
    """
    content = revision_of([design.items(kind) for kind in Kind])
    tried = replace(design, number=-int(content[:12], 16) - 1)
    token = _tried.set(tried)
    try:
        yield tried
    finally:
        _tried.reset(token)


@lru_cache(maxsize=MAX_CACHED_DESIGNS)
def _read_numbered(number: int) -> Design:
    if number == 0:
        return Design()
    document = DESIGNS().find_one({"_id": number})
    if document is None:
        raise UnknownDesignError
    return _design(document)


def read_newest() -> Design:
    """Return the newest design, uncached."""
    document = next(iter(DESIGNS().find().sort(_NEWEST).limit(1)), None)
    return _design(document) if document else Design()


def rely_on(design: Design, *, session: ClientSession) -> None:
    """Let what a transaction stores beside a design rely on it. Raises DesignMovedError.

    A transaction that only reads the design would not notice that another one replaces it.
    """
    newest = DESIGNS().find_one({}, {"_id": 1}, sort=_NEWEST, session=session)
    if newest is not None and newest["_id"] != design.number:
        raise DesignMovedError
    DESIGNS().update_one({"_id": design.number}, _TOUCH, session=session)


def repeat(attempt: Callable[[], T]) -> T:
    """Return what an attempt returns, which reads, checks, and stores.

    It begins anew if another write precedes it. Raises MovedError if one always does.
    """
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            return attempt()
        except MovedError:
            continue
    return attempt()


def store_with_brand(brand: str | None, write: Callable[[ClientSession | None], T]) -> T:
    """Return what a write returns, which stores what names a brand that isn't removed meanwhile.

    Without a brand, it isn't in a transaction. Raises UnknownBrandError, and MovedError if the
    design always changes first.
    """
    return write(None) if brand is None else repeat(partial(_store_with_brand, brand, write))


def _store_with_brand(brand: str, write: Callable[[ClientSession], T]) -> T:
    design = read_newest()
    if brand not in design.brands:
        raise UnknownBrandError

    def write_and_rely(session: ClientSession) -> T:
        rely_on(design, session=session)
        return write(session)

    with DESIGNS().database.client.start_session() as session:
        return session.with_transaction(write_and_rely)


def give_up(design: Design, *, session: ClientSession) -> None:
    """Let a transaction replace a design. Raises DesignMovedError if more relies on it since."""
    if design.number == 0:
        return  # It isn't stored, and nothing relies on it.
    unmoved = {"_id": design.number, "touches": design.touches}
    if not DESIGNS().update_one(unmoved, _TOUCH, session=session).matched_count:
        raise DesignMovedError


def key_of(kind: Kind, name: str) -> str:
    """Return what an item of a design is called in the audit log, such as ``brand/acme``."""
    return f"{kind}/{name}"


def fields_of(given: msgspec.Struct) -> dict[str, Any]:
    """Return what a request says, without fields that have their default, at any depth."""
    found: dict[str, Any] = {}
    for each in msgspec.structs.fields(given):
        value = getattr(given, each.name)
        has_factory = each.default_factory is not msgspec.NODEFAULT
        if each.required or value != (each.default_factory() if has_factory else each.default):
            is_struct = isinstance(value, msgspec.Struct)
            found[each.encode_name] = fields_of(value) if is_struct else value
    return found


def revision_of(content: Any) -> str:
    """Return a digest of an item of a design, by which a change names what it replaces."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def look_of(*, design: Design, brand: str | None = None, layout: str | None = None) -> Look:
    """Return the look of a message with a brand, and a layout of its type.

    Raises UnknownBrandError.
    """
    if brand is not None and brand not in design.brands:
        raise UnknownBrandError
    if layout is None and brand is not None:
        layout = design.brands[brand].get("layout")
    if layout not in design.layouts:
        layout = None
    return Look(design=design.number, brand=brand, layout=layout)


def brand_variable(brand: BrandRequest) -> dict[str, Any]:
    """Return what templates know of a brand, as the variable of this name."""
    logo = brand.logo
    return {
        "name": brand.name,
        "logo_url": logo.url if logo else "",
        "logo_dark_url": (logo.dark_url or "") if logo else "",
        "logo_width": logo.width if logo else 0,
        "footer": brand.footer,
        "colours": msgspec.to_builtins(brand.colours),
    }


def invalidate() -> None:
    """Make every process reload the newest design. Raises PyMongoError."""
    _newest.invalidate()


def clear() -> None:
    """Forget all designs of this process."""
    _read_numbered.cache_clear()
    _newest.clear()


def _design(document: DesignDocument) -> Design:
    return Design(
        number=document["_id"],
        partials=document["partials"],
        layouts=document["layouts"],
        brands=document["brands"],
        translations=document["translations"],
        changed_in=document["changed_in"],
        touches=document.get("touches"),
    )


_newest = SharedCache("designs", read_newest)
