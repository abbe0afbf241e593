"""Validation of the body of a send request."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from . import template_check
from .errors import Fault
from .templates import Templates

MAX_TEXT_LENGTH = 4096
MAX_CAPTION_LENGTH = 1024
MAX_CALLBACK_LENGTH = 512
OTHER_IMAGES = {"webp": "webp", "gif": "gif", "svg": "svg+xml", "avif": "avif", "heic": "heic"}
"""Formats of images that WhatsApp doesn't show, by the ending of a link."""
UNSUPPORTED = (
    *("audio", "contacts", "document", "interactive", "location", "reaction", "sticker", "video"),
)
"""WhatsApp's types that the service doesn't send, and the sandbox does not accept."""
KEYS = {"messaging_product", "recipient_type", "to", "type", "context", "biz_opaque_callback_data"}
_NUMBER = re.compile(r"\+?[1-9][0-9]{6,14}", re.ASCII)
_SEPARATORS = re.compile(r"[ ()-]")


def number(to: Any) -> str | None:
    """Return the digits of a phone number; None if it is invalid."""
    text = _SEPARATORS.sub("", to) if isinstance(to, str) else ""
    return text.removeprefix("+") if _NUMBER.fullmatch(text) else None


_OTHER_FORMS = (
    (re.compile(r"54(?!9)(\d{10})", re.ASCII), r"549\1"),
    (re.compile(r"52(?!1)(\d{10})", re.ASCII), r"521\1"),
    (re.compile(r"(55[3-9]\d)9(\d{8})", re.ASCII), r"\1\2"),
    (re.compile(r"225(?:01|05|07)(\d{8})", re.ASCII), r"225\1"),
)


def whatsapp_id(to: Any) -> str | None:
    """Return a number as WhatsApp reports it: of some countries, in another form than dialled."""
    digits = number(to)
    if digits is not None:
        for form, other in _OTHER_FORMS:
            digits = form.sub(other, digits) if form.fullmatch(digits) else digits
    return digits


def problem(body: Any, *, templates: Templates, own_number: str) -> Fault | None:
    """Return the first error of a message; None if it is valid."""
    if not isinstance(body, dict):
        return Fault(100, "The request body is not a JSON object.")
    return next(_problems(body, templates=templates, own_number=own_number), None)


def _problems(body: Mapping[str, Any], *, templates: Templates, own_number: str) -> Iterator[Fault]:
    kind = body.get("type", "text")
    if body.get("messaging_product") != "whatsapp":
        yield Fault(100, "The parameter messaging_product is required.")
    yield from _type(kind)
    for key in body.keys() - KEYS - {kind}:
        yield Fault(100, f'Unexpected key "{key}".')
    if body.get("recipient_type", "individual") != "individual":
        yield Fault(100, "Param recipient_type must be one of {individual}.")
    yield from _recipient(body.get("to"), own_number=own_number)
    yield from _callback(body.get("biz_opaque_callback_data"))
    context = body.get("context")
    if context is not None and not _is_text(context, "message_id"):
        yield Fault(131009, "Param context['message_id'] must be the id of a message.")
    if kind == "template":
        if found := template_check.problem(body.get("template"), templates):
            yield found
    else:
        yield from _CONTENTS[kind](kind, body.get(kind))


def _type(kind: Any) -> Iterator[Fault]:
    if kind in UNSUPPORTED:
        yield Fault(131051, f"The sandbox takes no messages of the type {kind}.")
    elif not isinstance(kind, str) or (kind != "template" and kind not in _CONTENTS):
        known = ", ".join(sorted({*_CONTENTS, "template", *UNSUPPORTED})).upper()
        yield Fault(100, f'Param type must be one of {{{known}}} - got "{kind}".')


def _recipient(to: Any, *, own_number: str) -> Iterator[Fault]:
    if to in (None, ""):
        yield Fault(100, "The parameter to is required.")
    found = number(to)
    if found is None:
        yield Fault(131009, "Param to must be a phone number with its country code.")
    if found == own_number:
        yield Fault(131021)


def _callback(data: Any) -> Iterator[Fault]:
    if data is None:
        return
    if not isinstance(data, str):
        yield Fault(100, "Param biz_opaque_callback_data must be a string.")
    elif len(data) > MAX_CALLBACK_LENGTH:
        yield Fault(100, "Param biz_opaque_callback_data must be at most 512 characters long.")


def _text(_kind: str, content: Any) -> Iterator[Fault]:
    if not _is_text(content, "body"):
        yield Fault(131008, "Parameter 'text.body' is mandatory for type 'text'")
        return
    for key in content.keys() - {"body", "preview_url"}:
        yield Fault(100, f'Unexpected key "{key}" on param "text".')
    if len(content["body"]) > MAX_TEXT_LENGTH:
        yield Fault(100, "Param text['body'] must be at most 4096 characters long.")
    if not isinstance(content.get("preview_url", False), bool):
        yield Fault(100, "Param text['preview_url'] must be a boolean.")


def _image(kind: str, content: Any) -> Iterator[Fault]:
    if not isinstance(content, dict) or ("link" in content) == ("id" in content):
        yield Fault(131008, f"Parameter '{kind}' must have either a link or an id")
        return
    for key in content.keys() - {"link", "id", "caption"}:
        yield Fault(100, f'Unexpected key "{key}" on param "{kind}".')
    link = content.get("link")
    if link is not None and not _is_link(link):
        yield Fault(131009, f"Param {kind}['link'] is not a valid URI.")
    caption = content.get("caption", "")
    if not isinstance(caption, str) or len(caption) > MAX_CAPTION_LENGTH:
        yield Fault(100, f"Param {kind}['caption'] must be at most 1024 characters long.")


_CONTENTS: Mapping[str, Callable[[str, Any], Iterator[Fault]]] = {
    "text": _text,
    "image": _image,
}


def media_fault(body: Mapping[str, Any]) -> Fault | None:
    """Return why an accepted image isn't delivered, by the ending of its link."""
    link = body["image"].get("link", "") if body.get("type") == "image" else ""
    kind = OTHER_IMAGES.get(urlsplit(link).path.lower().rpartition(".")[2])
    if kind is None:
        return None
    details = f"Unsupported Image mime type image/{kind}. Please use one of image/jpeg, image/png."
    return Fault(131053, details)


def _is_link(link: Any) -> bool:
    if not isinstance(link, str):
        return False
    try:
        parts = urlsplit(link)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


def _is_text(parent: Any, name: str) -> bool:
    found = parent.get(name) if isinstance(parent, dict) else None
    return isinstance(found, str) and bool(found)
