"""Renders messages for each channel, and chooses the WhatsApp template."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from markupsafe import escape

from domain import markdown
from domain.channels import Channel
from domain.channels.spec import Role, Shape
from domain.content import Content, Look, Recipient
from domain.languages import find_nearest, find_tag, is_right_to_left
from domain.links import has_link
from domain.zones import first_known_zone
from providers import senders
from providers.contract import Message, MessageLink, WhatsAppTemplateMessage

from ..catalog.texts import encode_text
from ..catalog.types import MASK, Action, WhatsAppTemplate
from . import looks, templates, whatsapp
from .direction import is_text_right_to_left
from .engine import RenderCache, TemplateError
from .markup import extract_styles
from .reminders import data_at
from .templates import Part
from .text import (
    clean_line,
    paragraphs,
    show_blanks,
    truncate_words,
    without_blank_lines,
)

log = structlog.get_logger(__name__)
PUSH_TITLE_LENGTH = 100
PUSH_BODY_LENGTH = 500
"""What phones show at most of an expanded notification, far below the 4 KB push limit."""
PREHEADER_LENGTH = 120
CARD_TITLE_LENGTH = 150
CHANNEL_PARTS: Mapping[Channel, Mapping[Role, Part]] = {
    channel: {part.role: Part(part.name) for part in channel.spec.parts} for channel in Channel
}
"""Parts that a channel may have besides subject and body."""


def choose_whatsapp_template(
    candidates: Sequence[WhatsAppTemplate],
    *,
    locale: str | None,
    data: Mapping[str, Any],
    content: Content | None = None,
) -> WhatsAppTemplateMessage | None:
    """Return the nearest template, filled. None without one, or if the data can't fill it.

    A request's own ``content`` is available as the variables ``subject`` and ``body``.
    """
    # A language without a template falls back to the first template.
    template = _find_nearest(candidates, locale)
    with suppress(whatsapp.UnfilledTemplateError):
        return whatsapp.fill(template, _with_own_texts(data, content)) if template else None
    return None


def find_template_problem(
    candidates: Sequence[WhatsAppTemplate],
    *,
    locale: str | None,
    data: Mapping[str, Any],
    content: Content | None = None,
) -> str | None:
    """Return why the data can't fill the template in the nearest language, as a sentence."""
    template = _find_nearest(candidates, locale)
    try:
        if template is not None:
            whatsapp.fill(template, _with_own_texts(data, content))
    except whatsapp.UnfilledTemplateError as problem:
        return str(problem)
    return None


def _with_own_texts(data: Mapping[str, Any], content: Content | None) -> Mapping[str, Any]:
    if content is None or content.template_id is not None:
        return data
    return {"subject": content.subject, "body": content.body, **data}


def _find_nearest(
    candidates: Sequence[WhatsAppTemplate], locale: str | None
) -> WhatsAppTemplate | None:
    by_locale = {candidate.locale: candidate for candidate in candidates}
    nearest = find_nearest(locale, by_locale)
    return by_locale[nearest[0]] if nearest else next(iter(candidates), None)


def exists(name: str, *, version: int = templates.SHIPPED_VERSION) -> bool:
    """Return whether a template of this name exists."""
    return templates.locate(name, version, Part.BODY, None) is not None


def render_text(
    *,
    name: str,
    version: int = templates.SHIPPED_VERSION,
    data: Mapping[str, Any],
    recipient: Recipient,
    channels: Sequence[Channel] = (),
    look: Look | None = None,
    render_cache: RenderCache | None = None,
) -> tuple[str, str]:
    """Return subject and body in the recipient's language.

    Raises TemplateError, also if a part that one of the channels has of its own can't be rendered.
    """
    variables = _template_variables(data, recipient, look)

    def render(part: Part) -> str | None:
        return _render_part(
            name, version, part, recipient, variables, look=look, cache=render_cache
        )

    subject, body = render(Part.SUBJECT), render(Part.BODY)
    if subject is None or body is None:
        raise TemplateError("unknown_template", "Unknown template.")
    for channel in channels:
        for part in CHANNEL_PARTS.get(channel, {}).values():
            render(part)
    return clean_line(subject), body.strip()


def hide_registry(content: Content, *, data: Mapping[str, Any], recipient: Recipient) -> Content:
    """Render content again for a client that may not read the registry: from its request alone.

    Replacing the name in the text would let a client guess it by writing guesses into the text.
    """
    if content.template_id is None or content.body is None:
        return content
    known = without_registry(recipient)
    if known is recipient:
        return content
    try:
        subject, body = render_text(
            name=content.template_id,
            version=content.template_version or templates.SHIPPED_VERSION,
            data=data,
            recipient=known,
            look=content.look,
        )
    except TemplateError:
        subject, body = MASK, MASK
    return replace(
        content, subject=content.subject if content.has_own_subject else subject, body=body
    )


def without_registry(recipient: Recipient) -> Recipient:
    """Return the recipient as the request gave it, with a mask for a registered name."""
    known = recipient.as_given()
    return replace(known, name=MASK) if recipient.name is not None and known.name is None else known


def render_message(
    *,
    channel: Channel,
    content: Content,
    data: Mapping[str, Any],
    recipient: Recipient,
    accepted_recipient: Recipient | None = None,
    unsubscribe_url: str | None = None,
    actions: Sequence[Action] = (),
    now: datetime | None = None,
) -> Message:
    """Return a stored notification's message for a channel. Raises TemplateError.

    With ``now``, the time until the event of a reminder is computed again. If the recipient isn't
    the ``accepted_recipient`` any more, subject and body are rendered again.
    """
    # Email gets HTML in the layout, with an unsubscribe link if given. Push gets a short title and
    # text. Subject and body were rendered at acceptance. If they contain sensitive values, they are
    # rendered again with the same template version.
    current = data if now is None else data_at(content, data, now=now)
    accepted = (data, accepted_recipient or recipient)
    context = _RenderContext(
        content, current, recipient, accepted=accepted, parts=CHANNEL_PARTS.get(channel, {})
    )
    subject, text = context.render_subject_and_body()
    message = Message(
        subject=subject,
        text=text,
        image_url=content.image_url,
        deep_link=content.deep_link,
        payload=content.payload,
    )
    match channel.spec.shape:
        case Shape.MAIL:
            return replace(
                message,
                html=_render_html(context, subject, text, unsubscribe_url),
                text=_append_links(context, text, unsubscribe_url),
                unsubscribe_url=unsubscribe_url,
                **_addresses(content),
                attachments=content.attachments,
            )
        case Shape.ALERT:
            shown = context.render_own(Role.TEXT) or without_blank_lines(text)
            return replace(
                message,
                subject=_render_title(context, subject),
                text=truncate_words(shown, limit=PUSH_BODY_LENGTH),
                push=content.push,
            )
        case Shape.TEXT:
            return replace(message, text=context.render_own(Role.TEXT) or text)
        case Shape.PARTS:
            shown = context.render_own(Role.TEXT) or text
            encoded = encode_text(shown)
            return replace(message, text=encoded.text, units=encoded.units)
        case Shape.ITEM:
            return message
        case Shape.CARD:
            return replace(
                message,
                subject=_render_title(context, subject, limit=CARD_TITLE_LENGTH),
                text=context.render_own(Role.MARKDOWN) or markdown.escape(text),
                links=_links(context, actions),
            )


@dataclass(frozen=True, slots=True)
class _RenderContext:
    content: Content
    data: Mapping[str, Any]
    recipient: Recipient
    accepted: tuple[Mapping[str, Any], Recipient]
    """The data and the recipient for which subject and body were rendered at acceptance."""
    parts: Mapping[Role, Part]
    """The channel's own parts."""

    @property
    def version(self) -> int:
        """The template version that the notification was accepted with."""
        return self.content.template_version or templates.SHIPPED_VERSION

    def render_subject_and_body(self) -> tuple[str | None, str]:
        """Return subject and body. Masked texts are rendered again with the original values."""
        # An unmasked subject is kept: it has no sensitive value, or is the client's own.
        subject, text = self.content.subject, self.content.body or ""
        if self.content.template_id is None:
            return subject, text
        if self.content.is_masked:
            rendered_subject, text = self._render_text(self.data, self.recipient)
            subject = rendered_subject if subject is None or MASK in subject else subject
        elif self.data is not self.accepted[0] or self.recipient is not self.accepted[1]:
            with suppress(TemplateError):
                accepted_subject, _ = self._render_text(*self.accepted)
                rendered_subject, text = self._render_text(self.data, self.recipient)
                subject = rendered_subject if subject == accepted_subject else subject
        return subject, text

    def _render_text(self, data: Mapping[str, Any], recipient: Recipient) -> tuple[str, str]:
        return render_text(
            name=self.content.template_id or "",
            version=self.version,
            data=data,
            recipient=recipient,
            look=self.content.look,
        )

    def render_own(self, role: Role) -> str | None:
        """Return the channel's own part for a role, as render_part does. None without one."""
        part = self.parts.get(role)
        return None if part is None else self.render_part(part)

    def render_part(self, part: Part) -> str | None:
        """Return a rendered part, or None if it is missing or can't be rendered."""
        # The part could be rendered at acceptance, but a release may have changed its files. Then
        # the accepted text is sent, which needs no variables.
        if self.content.template_id is None:
            return None
        name, version = self.content.template_id, self.version
        look = self.content.look
        try:
            variables = _template_variables(self.data, self.recipient, look)
            text = _render_part(name, version, part, self.recipient, variables, look=look)
        except TemplateError as problem:
            log.warning(
                "template_part_skipped",
                template=name,
                version=version,
                part=part.value,
                code=problem.code,
            )
            return None
        return None if text is None else text.strip()

    @property
    def language(self) -> str:
        """The language of the content. With a template, the language in which it was found."""
        name, locale = self.content.template_id, self.recipient.locale
        if name is None:
            return (find_tag(locale) if locale else None) or settings.LANGUAGE_CODE
        look = self.content.look
        own = looks.language_of(name, self.version, locale, look=look)
        return own or settings.LANGUAGE_CODE


def _links(context: _RenderContext, actions: Sequence[Action]) -> tuple[MessageLink, ...]:
    """Return the buttons of a card: the type's actions with a link, and the deep link."""
    links = [
        MessageLink(label=action.label, url=link)
        for action in actions
        if (link := _web_link(action.link))
    ]
    own = _web_link(context.content.deep_link)
    if own is None or any(link.url == own for link in links):
        return tuple(links)
    words = templates.layout_words(context.language)
    return (*links, MessageLink(label=words["open"], url=own))


def _render_title(
    context: _RenderContext, subject: str | None, *, limit: int = PUSH_TITLE_LENGTH
) -> str | None:
    title = context.render_own(Role.TITLE)
    by_template = context.render_part(Part.SUBJECT) if title else None
    if title and by_template is not None and clean_line(by_template) == subject:
        subject = title
    return truncate_words(clean_line(subject), limit=limit) if subject else None


def _render_html(
    context: _RenderContext, subject: str | None, text: str, unsubscribe_url: str | None
) -> str:
    look = context.content.look
    body = context.render_own(Role.HTML) or _to_html(text, look)
    language = context.language
    styles, body = extract_styles(body)
    # The recipient's language says little about texts that the client wrote.
    is_turned = (
        is_text_right_to_left(text, language=language)
        if context.content.template_id is None
        else is_right_to_left(language)
    )
    variables = {
        **looks.layout_variables(look, senders.own_sender().label),
        "subject": subject or "",
        # Already escaped, by its template or here; the layout inserts it unchanged.
        "content": body,
        "styles": styles,
        "heading": None if "<h1" in body else subject,
        "image_url": context.content.image_url,
        "deep_link": _web_link(context.content.deep_link),
        "unsubscribe_url": unsubscribe_url,
        "language": language,
        "preheader": clean_line(text[:1_000])[:PREHEADER_LENGTH],
        "words": templates.layout_words(language),
    }
    if look is not None:
        try:
            return looks.find_layout(look, language, is_turned=is_turned).render(variables)
        except TemplateError as problem:
            # The message is accepted, and its design fixed: the built-in layout has all of it.
            log.warning("layout_failed", design=look.design, layout=look.layout, code=problem.code)
    return templates.get_layout(language, is_turned=is_turned).render(variables)


def _addresses(content: Content) -> dict[str, Any]:
    """Return the sender and the reply address of an email. Raises TemplateError."""
    brand = looks.brand_of(content.look)
    if brand is None:
        return {"reply_to": content.reply_to}
    reply_to = content.reply_to or brand.reply_to
    return {"sender": looks.sender_of(content.look), "reply_to": reply_to}


def _append_links(context: _RenderContext, text: str, unsubscribe_url: str | None) -> str:
    words = templates.layout_words(context.language)
    link = _web_link(context.content.deep_link)
    if link is not None and not has_link(text, link):
        text = f"{text}\n\n{words['open']}: {link}"
    if unsubscribe_url is not None:
        text = f"{text}\n\n-- \n{words['unsubscribe']}: {unsubscribe_url}"
    return text


def _web_link(link: str | None) -> str | None:
    """Return a link if email clients can open it, else None. Devices open ``app://`` links."""
    return link if link and link.startswith("https://") else None


def _to_html(text: str, look: Look | None) -> str:
    opening = looks.opening_tag("p", look)
    return "\n".join(
        f"{opening}{'<br>'.join(escape(show_blanks(line)) for line in lines)}</p>"
        for lines in paragraphs(text)
    )


def _template_variables(
    data: Mapping[str, Any], recipient: Recipient, look: Look | None
) -> dict[str, Any]:
    known = {"name": recipient.name, "locale": recipient.locale}
    known_fields = {name: value for name, value in known.items() if value is not None}
    shown = data if look is None else {**data, **looks.variables_of(look)}
    return {
        **shown,
        "recipient": {**known_fields, "timezone": first_known_zone(recipient.timezone)},
    }


def _render_part(
    name: str,
    version: int,
    part: Part,
    recipient: Recipient,
    variables: Mapping[str, Any],
    *,
    look: Look | None,
    cache: RenderCache | None = None,
) -> str | None:
    template = looks.find_template(name, version, part, recipient.locale, look=look)
    if template is None:
        return None
    try:
        return cache.render(template, variables) if cache else template.render(variables)
    except TemplateError as problem:
        problem.part = part.value
        raise
