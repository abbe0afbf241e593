"""The parts of a WhatsApp message that the outbox and the log show."""

from collections.abc import Mapping
from typing import Any

from ..base import DisplayedMessage
from .templates import Templates, fill
from .validation import number

MAX_TITLE_LENGTH = 80


def recipient(body: Any) -> str:
    """Return the recipient of a message: a valid number in E.164, anything else as given."""
    to = body.get("to") if isinstance(body, dict) else None
    found = number(to)
    return f"+{found}" if found else str(to or "")


def _title(body: Any) -> str | None:
    """Return a title for lists: the template's name, or the beginning of the text."""
    if not isinstance(body, dict):
        return None
    kind = body.get("type", "text")
    content = body.get(kind) if isinstance(kind, str) else None
    if not isinstance(content, dict):
        return None
    if kind == "template":
        found = content.get("name")
    else:
        found = content.get("body") or content.get("caption")
    return " ".join(found.split())[:MAX_TITLE_LENGTH] if isinstance(found, str) else None


def references(body: Any) -> tuple[str, ...]:
    """Return the service's reference in ``biz_opaque_callback_data``, if any."""
    found = body.get("biz_opaque_callback_data") if isinstance(body, dict) else None
    return (found,) if isinstance(found, str) and found else ()


def log_fields(body: Any) -> dict[str, Any]:
    """Return the log fields of a message, which may be invalid."""
    to = recipient(body)
    return {
        "title": _title(body),
        "recipients": (to,) if to else (),
        "references": references(body),
    }


def display(body: Mapping[str, Any], *, templates: Templates, sender: str) -> DisplayedMessage:
    """Return an accepted message as its recipient sees it."""
    kind = body.get("type", "text")
    content = body[kind]
    parts: dict[str, Any]
    if kind == "template":
        parts = _from_template(content, templates)
    elif kind == "image":
        image = content.get("link") or f"id {content.get('id')}"
        parts = {"text": content.get("caption", ""), "image": image}
    else:
        parts = {"text": content["body"]}
    return DisplayedMessage(sender=f"+{sender}", recipients=(recipient(body),), **parts)


def _from_template(content: Mapping[str, Any], templates: Templates) -> dict[str, Any]:
    name, language = content["name"], content["language"]["code"]
    facts = (("Template", name), ("Language", language))
    template = templates.get(name, language)
    if template is None:
        return {"text": "(This template was deleted.)", "facts": facts}
    filled = fill(template, content)
    return {
        "title": filled.header,
        "text": filled.body,
        "small_print": filled.footer,
        "image": filled.image,
        "buttons": filled.buttons,
        "facts": (*facts, ("Category", template.category)),
    }
