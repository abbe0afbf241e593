"""Preview of a template version on every channel, with the type's example data."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import get_language_info

from domain.channels import Channel
from domain.channels.spec import Shape
from domain.content import Content, Look, Recipient
from domain.countries import country_name
from domain.states import Category
from notifications.catalog import designs, types
from notifications.catalog.digests import DIGEST_VARIABLE
from notifications.catalog.texts import encode_text, total_price
from notifications.content import design_uses, looks, rendering, templates
from notifications.content.engine import TemplateError
from notifications.content.linting import example_digest
from notifications.content.templates import DEFAULT_LANGUAGE, Version
from notifications.documents.catalog import NotificationTypeDocument
from providers import senders
from providers.contract import Message

from ..widgets.prices import price_text
from .cards import Card, cards_of

EXAMPLE_NAME = "Ada Lovelace"
UNSUBSCRIBE = "https://example.com/unsubscribe"
CLIENT_CONTENT = Content(
    subject="Subject from the request",
    body="This type has no template; content comes with the request.\n\nIt looks like this.",
)
MAX_FORCING = 5
"""Characters that the note on a Unicode text names."""
_EMPHASIS = re.compile(r"\*(\S[^*\n]*)\*|\b_(\S[^_\n]*)_\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPreview:
    """The message of one channel."""

    kind: str
    name: str
    icon: str
    is_default: bool
    sender: str = ""
    """Of an email: the brand's, or the installation's."""
    subject: str | None = None
    text: str | SafeString = ""
    html: str | None = None
    parts: Sequence[str] = ()
    """Of a text that is paid for by part: its parts."""
    note: str = ""
    """How many parts there are, and why."""
    cards: Sequence[Card] = ()
    """Of a room: the message as each service shows it."""

    @property
    def template(self) -> str:
        """The template that shows it."""
        return f"console/types/previews/{self.kind}.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The messages of a version in one language."""

    channels: Sequence[ChannelPreview]
    sender: str
    site: str
    """The site that a browser names below a push."""
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A language of the preview."""

    code: str
    name: str
    is_chosen: bool


def preview(
    document: NotificationTypeDocument, *, version: int, language: str, is_digest: bool = False
) -> Preview:
    """Return the preview of a version in a language, of one message or of a digest of three."""
    try:
        messages = example_messages(document, version, language, is_digest=is_digest)
    except TemplateError as problem:
        return preview_of((), problem=str(problem))
    return preview_of(
        [channel_preview(channel, message, document) for channel, message in messages.items()]
    )


def preview_of(channels: Sequence[ChannelPreview], *, problem: str | None = None) -> Preview:
    """Return messages with the names of the sender and of the site that recipients see."""
    sender = senders.own_sender().label
    site = urlsplit(settings.WEBPUSH_HOME_URL).netloc
    return Preview(channels=channels, sender=sender, site=site, problem=problem)


def languages(
    document: NotificationTypeDocument, version: Version | None, *, requested: str
) -> list[Language]:
    """Return the languages of a version, its translations, and the built-in template.

    The default one is the first.
    """
    shipped = templates.get_version(type_slug=document["_id"], number=templates.SHIPPED_VERSION)
    found = [known.parts for known in (version, shipped) if known is not None]
    texts = [text for parts in found for part in parts.values() for text in part.values()]
    is_designed = any(looks.needs_design(text) for text in texts)
    translated = design_uses.all_languages(texts, designs.current()) if is_designed else ()
    own = (code for parts in found for code in parts)
    codes = dict.fromkeys([DEFAULT_LANGUAGE, *own, *translated])
    chosen = requested if requested in codes else DEFAULT_LANGUAGE
    return [
        Language(code=code, name=language_name(code), is_chosen=code == chosen) for code in codes
    ]


def language_name(code: str) -> str:
    """Return the name of a language."""
    if code == DEFAULT_LANGUAGE:
        return "Default"
    try:
        return str(get_language_info(code.lower())["name"])
    except KeyError:
        return code


def example_messages(
    document: NotificationTypeDocument,
    version: int,
    language: str,
    *,
    is_digest: bool = False,
    look: Look | None = None,
) -> Mapping[Channel, Message]:
    """Return the messages of a version with the type's example data, as they would be sent.

    ``look`` None: that of the type. Raises TemplateError.
    """
    slug, data, channels = document["_id"], document["example_data"], list(Channel)
    if is_digest and (digest := document.get("digest")) is not None:
        channels = [Channel(channel) for channel in digest["channels"]]
        data = {**data, DIGEST_VARIABLE: example_digest(data)}
    locale = None if language == DEFAULT_LANGUAGE else language
    person = Recipient(name=EXAMPLE_NAME, locale=locale)
    content = CLIENT_CONTENT
    has_template = rendering.exists(slug, version=version)
    look = look or looks.find_look(
        name=slug if has_template else None,
        version=version,
        brand=document.get("brand"),
        layout=document.get("layout"),
    )
    if has_template:
        subject, body = rendering.render_text(
            name=slug, version=version, data=data, recipient=person, look=look
        )
        content = Content(subject=subject, body=body, template_id=slug, template_version=version)
    content = replace(content, look=look)
    unsubscribe = UNSUBSCRIBE if document["category"] == Category.MARKETING else None
    return {
        channel: rendering.render_message(
            channel=channel,
            content=content,
            data=data,
            recipient=person,
            unsubscribe_url=unsubscribe,
            actions=types.stored_actions(document),
        )
        for channel in channels
    }


def channel_preview(
    channel: Channel, message: Message, document: NotificationTypeDocument
) -> ChannelPreview:
    """Return a channel's message as its template shows it."""
    spec = channel.spec
    return ChannelPreview(
        kind=spec.preview,
        name=spec.label,
        icon=spec.icon,
        is_default=channel.value in document["channels"],
        sender=str(message.sender or senders.own_sender()) if spec.shape is Shape.MAIL else "",
        subject=message.subject,
        text=_with_emphasis(message.text) if spec.has_service_window else message.text,
        html=message.html,
        cards=cards_of(message) if spec.shape is Shape.CARD else (),
        **_parts_of(message.text) if channel.pays_by_part else {},
    )


def _parts_of(text: str) -> dict[str, Any]:
    encoded = encode_text(text)
    count = "1 part" if encoded.units == 1 else f"{encoded.units} parts"
    note = f"{count} as {encoded.encoding.label}."
    if encoded.forcing:
        shown = " ".join(encoded.forcing[:MAX_FORCING])
        length = encoded.encoding.single if encoded.units == 1 else encoded.encoding.joined
        note = f"{count}. Unicode because of {shown}: {length} characters a part."
    for home in settings.SMS_COUNTRIES[:1]:
        total = total_price({home: encoded.units})
        where = f" to {country_name(home)}" if total.price else ""
        note += f" {capfirst(price_text(total))}{where}."
    return {"parts": encoded.parts, "note": note}


def _with_emphasis(text: str) -> SafeString:
    """Return a text as WhatsApp shows it: bold between asterisks, italic between underscores."""
    pieces: list[tuple[str]] = []
    end = 0
    for match in _EMPHASIS.finditer(text):
        element = "<strong>{}</strong>" if match[1] else "<em>{}</em>"
        pieces += [(text[end : match.start()],), (format_html(element, match[1] or match[2]),)]
        end = match.end()
    return format_html_join("", "{}", [*pieces, (text[end:],)])


def variables(data: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return the available variables and their example values."""
    found: list[tuple[str, str]] = []
    for name, value in data.items():
        if isinstance(value, Mapping):
            found += variables(value, f"{prefix}{name}.")
        else:
            found.append((f"{prefix}{name}", str(value)))
    return found
