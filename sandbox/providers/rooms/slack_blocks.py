"""Slack's rules for the blocks of a message, as its reference of Block Kit states them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MAX_BLOCKS = 50
MAX_TEXT = 40_000
MAX_SECTION, MAX_HEADER, MAX_FIELD, MAX_FIELDS = 3_000, 150, 2_000, 10
MAX_ELEMENTS, MAX_BUTTON_TEXT, MAX_BUTTON_URL, MAX_ID = 25, 75, 3_000, 255
MAX_CONTEXT, MAX_ALT_TEXT = 10, 2_000
MAX_ALL_BLOCKS = 13_200
"""Characters of all texts in blocks, beyond which Slack answers msg_blocks_too_long."""
_Found = Iterator[str]


def violations(blocks: Any) -> list[str]:
    """Return what is wrong with blocks, in the form of ``response_metadata.messages``."""
    if not isinstance(blocks, list):
        return ["[ERROR] must be an array [json-pointer:/blocks]"]
    if len(blocks) > MAX_BLOCKS:
        return [_error(f"no more than {MAX_BLOCKS} items allowed", "/blocks")]
    return [
        error for index, block in enumerate(blocks) for error in _block(block, f"/blocks/{index}")
    ]


def text_length(blocks: Sequence[Mapping[str, Any]]) -> int:
    """Return the characters of all texts in blocks."""

    def length(value: Any) -> int:
        if isinstance(value, dict):
            own = value.get("text")
            rest = (item for name, item in value.items() if not (name == "text" and own is item))
            known = len(own) if isinstance(own, str) else length(own)
            return known + sum(map(length, rest))
        return sum(map(length, value)) if isinstance(value, list) else 0

    return length(list(blocks))


def _error(problem: str, pointer: str) -> str:
    return f"[ERROR] {problem} [json-pointer:{pointer}]"


def _block(block: Any, at: str) -> _Found:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "header":
        yield from _text(block.get("text"), f"{at}/text", MAX_HEADER, {"plain_text"})
    elif kind == "section":
        yield from _section(block, at)
    elif kind == "actions":
        yield from _actions(block.get("elements"), f"{at}/elements")
    elif kind == "context":
        yield from _context(block.get("elements"), f"{at}/elements")
    elif kind == "image":
        yield from _image(block, at)
    elif kind != "divider":
        yield _error(f"unsupported type: {kind}", f"{at}/type")


def _section(block: Mapping[str, Any], at: str) -> _Found:
    fields = block.get("fields")
    if "text" in block or not fields:
        yield from _text(block.get("text"), f"{at}/text", MAX_SECTION)
    if fields is not None:
        if not isinstance(fields, list) or len(fields) > MAX_FIELDS:
            yield _error(f"no more than {MAX_FIELDS} items allowed", f"{at}/fields")
            return
        for index, field in enumerate(fields):
            yield from _text(field, f"{at}/fields/{index}", MAX_FIELD)


def _actions(elements: Any, at: str) -> _Found:
    if not isinstance(elements, list) or not 1 <= len(elements) <= MAX_ELEMENTS:
        yield _error(f"must have 1 to {MAX_ELEMENTS} items", at)
        return
    ids = [element.get("action_id") for element in elements if isinstance(element, dict)]
    named = [name for name in ids if name is not None]
    if len(set(named)) < len(named):
        yield _error("action_id must be unique", at)
    for index, element in enumerate(elements):
        if not isinstance(element, dict) or element.get("type") != "button":
            yield _error("unsupported element", f"{at}/{index}")
            continue
        yield from _text(element.get("text"), f"{at}/{index}/text", MAX_BUTTON_TEXT, {"plain_text"})
        url = element.get("url")
        if url is not None and (
            not str(url).startswith(("https://", "http://")) or len(url) > MAX_BUTTON_URL
        ):
            yield _error("invalid url", f"{at}/{index}/url")
        if len(element.get("action_id") or "") > MAX_ID:
            yield _error(f"must be less than {MAX_ID + 1} characters", f"{at}/{index}/action_id")


def _context(elements: Any, at: str) -> _Found:
    if not isinstance(elements, list) or not 1 <= len(elements) <= MAX_CONTEXT:
        yield _error(f"must have 1 to {MAX_CONTEXT} items", at)
        return
    for index, element in enumerate(elements):
        yield from _text(element, f"{at}/{index}", MAX_SECTION)


def _image(block: Mapping[str, Any], at: str) -> _Found:
    if not str(block.get("image_url", "")).startswith("https://"):
        yield _error("downloading image failed", f"{at}/image_url")
    if not 1 <= len(block.get("alt_text") or "") <= MAX_ALT_TEXT:
        yield _error("missing required field: alt_text", f"{at}/alt_text")


def _text(value: Any, at: str, most: int, kinds: frozenset[str] | set[str] | None = None) -> _Found:
    if not isinstance(value, dict) or value.get("type") not in (kinds or {"plain_text", "mrkdwn"}):
        yield _error("failed to match all allowed schemas", at)
        return
    text = value.get("text")
    if not isinstance(text, str) or not text:
        yield _error("must be more than 0 characters", f"{at}/text")
    elif len(text) > most:
        yield _error(f"must be less than {most + 1} characters", f"{at}/text")
    if value["type"] == "mrkdwn" and "emoji" in value:
        yield _error("emoji is not allowed in mrkdwn", f"{at}/emoji")
