"""Writes messages as Adaptive Cards 1.4, for a workflow of Teams. Pure.

Teams reads a subset of Markdown in a TextBlock: bold, italics, links, and lists. It has no code, so
that a block of code is a TextBlock in a monospaced font.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from domain.markdown import Line, LineKind, Run, in_pieces, parse

from ..contract import Message
from ..room_texts import ELLIPSIS, PIECE, link_target, shorten, trimmed

CARD_TYPE = "application/vnd.microsoft.card.adaptive"
SCHEMA = "http://adaptivecards.io/schemas/adaptive-card.json"
MAX_TITLE, MAX_LABEL, MAX_LINKS = 300, 100, 6
MAX_CHARACTERS = 13_500
"""Characters of the request. Teams counts 28 KB, two bytes for each."""
_MARKUP = re.compile(r"[\\`*_~\[\]()<>#|]|^[+-]|^\d{1,9}[.)]")
Block = Mapping[str, Any]


def build(message: Message) -> dict[str, Any]:
    """Return the body of a request: one message with one card."""
    title = _title(message.subject) if message.subject else []
    actions = [
        {"type": "Action.OpenUrl", "title": shorten(link.label, MAX_LABEL), "url": link.url}
        for link in message.links[:MAX_LINKS]
    ]
    left = MAX_CHARACTERS - _length(_body(title, actions))
    blocks = _fitting(list(_blocks(parse(message.text))), left)
    return _body([*title, *blocks], actions)


def escape(text: str) -> str:
    """Return a text in which Teams reads no markup."""
    return _MARKUP.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text)


def _title(text: str) -> list[Block]:
    shown = _block(escape(shorten(text, MAX_TITLE)))
    return [{**shown, "style": "heading", "weight": "Bolder", "size": "Large"}]


def _body(blocks: Sequence[Block], actions: Sequence[Block]) -> dict[str, Any]:
    content = {
        "$schema": SCHEMA,
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": blocks,
        **({"actions": actions} if actions else {}),
        "msteams": {"width": "Full"},
    }
    return {"type": "message", "attachments": [{"contentType": CARD_TYPE, "content": content}]}


def _fitting(blocks: Sequence[Block], most: int) -> Sequence[Block]:
    """Return blocks of at most ``most`` characters: all, or the first ones and an ellipsis."""
    # Each has a comma before it.
    ends = list(accumulate(1 + _length(block) for block in blocks))
    if not ends or ends[-1] <= most:
        return blocks
    ellipsis = _block(ELLIPSIS)
    return [*blocks[: bisect_right(ends, most - _length(ellipsis) - 1)], ellipsis]


def _length(value: Mapping[str, Any]) -> int:
    return len(msgspec.json.encode(value).decode())


def _block(text: str) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True}


def _blocks(lines: Sequence[Line]) -> Iterator[Block]:
    """Yield a block for each paragraph, for each list, and for each line of code."""
    paragraph: list[str] = []
    kind = LineKind.BLANK
    for line in lines:
        if paragraph and line.kind is not kind:
            yield _block(_joined(paragraph, kind))
            paragraph = []
        kind = line.kind
        if kind is LineKind.CODE:
            text = "".join(escape(run.text) for run in line.runs)
            if text.strip():
                yield {**_block(text), "fontType": "Monospace", "spacing": "None"}
        elif kind is not LineKind.BLANK:
            shown = f"{_mark(line)}{''.join(map(_run, in_pieces(line.runs, size=PIECE)))}"
            if len(shown) > MAX_CHARACTERS // 2:
                yield _block(shown[: MAX_CHARACTERS // 2].rstrip("\\") + ELLIPSIS)
            elif shown.strip():
                paragraph.append(shown)
    if paragraph:
        yield _block(_joined(paragraph, kind))


def _joined(paragraph: Sequence[str], kind: LineKind) -> str:
    # A single line break within a paragraph is none in Markdown; a list has one for each item.
    return ("\r" if kind is LineKind.ITEM else "\n\n").join(paragraph)


def _mark(line: Line) -> str:
    return "" if line.kind is not LineKind.ITEM else f"{'    ' * line.level}{line.mark.lstrip()}"


def _run(run: Run) -> str:
    before, text, after = trimmed(run.text)
    if not text:
        return run.text
    shown = escape(text)
    if run.link is not None:
        shown = f"[{shown}]({link_target(run.link)})"
    if run.is_italic:
        shown = f"_{shown}_"
    if run.is_bold:
        shown = f"**{shown}**"
    return f"{before}{shown}{after}"
