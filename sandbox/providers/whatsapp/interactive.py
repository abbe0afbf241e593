"""Validation of interactive messages: buttons, a list, or a link."""

from collections.abc import Iterator, Mapping
from typing import Any

from .errors import Fault

MAX_BUTTONS, MAX_SECTIONS, MAX_ROWS = 3, 10, 10
MEDIA = ("image", "video", "document")
BODY, SMALL = 1024, 60
TITLE, ROW_TITLE, ROW_TEXT = 20, 24, 72
BUTTON_ID, ROW_ID, URL = 256, 200, 2000


def interactive(content: Any) -> Iterator[Fault]:
    """Yield all errors of the object ``interactive`` of a message."""
    if not isinstance(content, dict):
        yield Fault(131008, "Parameter 'interactive' is mandatory for type 'interactive'")
        return
    kind = content.get("type")
    if not isinstance(kind, str) or kind not in _ACTIONS:
        yield Fault(131009, f"Param interactive['type'] must be one of {', '.join(_ACTIONS)}.")
        return
    for key in content.keys() - {"type", "header", "body", "footer", "action"}:
        yield Fault(100, f'Unexpected key "{key}" on param "interactive".')
    yield from _text(content.get("body"), "text", "interactive['body']['text']", BODY)
    for part in ("header", "footer"):
        found = content.get(part)
        if found is not None and not _is_media_header(part, found):
            yield from _text(found, "text", f"interactive['{part}']['text']", SMALL)
    action = content.get("action")
    if not isinstance(action, dict):
        yield Fault(131008, "Parameter 'interactive.action' is mandatory")
        return
    yield from _ACTIONS[kind](action)


def _buttons(action: Mapping[str, Any]) -> Iterator[Fault]:
    buttons = action.get("buttons")
    if not isinstance(buttons, list) or not 1 <= len(buttons) <= MAX_BUTTONS:
        yield Fault(131009, "Invalid buttons count. Min allowed buttons: 1, Max allowed buttons: 3")
        return
    replies = [button.get("reply") if isinstance(button, dict) else None for button in buttons]
    for number, reply in enumerate(replies):
        place = f"interactive['action']['buttons'][{number}]['reply']"
        yield from _text(reply, "id", f"{place}['id']", BUTTON_ID)
        yield from _text(reply, "title", f"{place}['title']", TITLE)
    yield from _duplicate_ids(replies)


def _list(action: Mapping[str, Any]) -> Iterator[Fault]:
    yield from _text(action, "button", "interactive['action']['button']", TITLE)
    sections = action.get("sections")
    if not isinstance(sections, list) or not 1 <= len(sections) <= MAX_SECTIONS:
        yield Fault(131009, "Total section count must be between 1 and 10")
        return
    rows = [
        row
        for section in sections
        for row in (section.get("rows") if isinstance(section, dict) else None) or [None]
    ]
    if len(rows) > MAX_ROWS:
        yield Fault(131009, f"Total row count exceed max allowed count: {MAX_ROWS}")
    for number, row in enumerate(rows):
        place = f"interactive['action']['sections'] row {number}"
        yield from _text(row, "id", f"{place}['id']", ROW_ID)
        yield from _text(row, "title", f"{place}['title']", ROW_TITLE)
        if isinstance(row, dict) and "description" in row:
            yield from _text(row, "description", f"{place}['description']", ROW_TEXT)
    yield from _duplicate_ids(rows)


def _link(action: Mapping[str, Any]) -> Iterator[Fault]:
    if action.get("name") != "cta_url":
        yield Fault(131009, "Param interactive['action']['name'] must be cta_url.")
    place = "interactive['action']['parameters']"
    yield from _text(action.get("parameters"), "display_text", f"{place}['display_text']", TITLE)
    yield from _text(action.get("parameters"), "url", f"{place}['url']", URL)


def _is_media_header(part: str, found: Any) -> bool:
    return (
        part == "header"
        and isinstance(found, dict)
        and found.get("type") in MEDIA
        and isinstance(found.get(found["type"]), dict)
    )


_ACTIONS = {"button": _buttons, "list": _list, "cta_url": _link}


def _duplicate_ids(replies: list[Any]) -> Iterator[Fault]:
    ids = [reply.get("id") for reply in replies if isinstance(reply, dict)]
    if len(set(map(str, ids))) < len(ids):
        yield Fault(131009, "Duplicated ids in the reply buttons or rows")


def _text(parent: Any, name: str, place: str, max_length: int) -> Iterator[Fault]:
    found = parent.get(name) if isinstance(parent, dict) else None
    if not isinstance(found, str) or not found:
        yield Fault(131008, f"Param {place} is required.")
    elif len(found) > max_length:
        yield Fault(131009, f"Param {place} must be at most {max_length} characters long.")
