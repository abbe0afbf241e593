"""Writes messages as blocks of Slack, for webhooks and bots. Pure.

Slack's mrkdwn has three escapes, ``&amp;``, ``&lt;``, and ``&gt;``, and none for its own markers. A
marker in a text gets a zero-width space beside it, which keeps it from opening and closing.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from domain.markdown import Line, LineKind, Run, in_pieces, parse

from .contract import Message, MessageLink
from .room_texts import ELLIPSIS, PIECE, shorten, trimmed

MAX_HEADER, MAX_SECTION, MAX_LABEL, MAX_URL = 150, 3_000, 75, 3_000
MAX_LINKS = 25
MAX_INLINE_URL = 800
"""A longer link stays a text, so that a section has room for it."""
MAX_CHARACTERS = 12_000
"""Characters of all sections. Slack refuses a few more."""
MAX_FALLBACK = 400
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SPACE_MARK = "\u200b"
_OPENING = re.compile(r"(?<![^\W_])[*_~](?=\S)")
_CLOSING = re.compile(r"(?<=\S)[*_~](?![^\W_])")
"""A marker beside another one is at the edge of a word, too."""
_BULLET = "\u2022"
_BAR = "\u2758"
"""In place of the character that ends an address."""
_TICK = "\u02cb"
"""In place of the character that begins and ends code, wherever it stands."""


def build(message: Message) -> dict[str, Any]:
    """Return ``text``, which notifications show, and ``blocks``, which the channel shows."""
    lines = parse(message.text)
    blocks: list[Mapping[str, Any]] = []
    if message.subject:
        title = shorten(message.subject, MAX_HEADER)
        text = {"type": "plain_text", "text": title, "emoji": False}
        blocks.append({"type": "header", "text": text})
    blocks += [
        {"type": "section", "text": {"type": "mrkdwn", "text": text}} for text in _sections(lines)
    ]
    links = [link for link in message.links if len(link.url) <= MAX_URL][:MAX_LINKS]
    if links:
        blocks.append({"type": "actions", "elements": list(map(_button, links, range(MAX_LINKS)))})
    first = "".join(run.text for run in lines[0].runs) if lines else ""
    fallback = escape(shorten(message.subject or first or message.text, MAX_FALLBACK))
    return {"text": fallback, "blocks": blocks}


def escape(text: str) -> str:
    """Return a text in which Slack reads no link and no mention."""
    return "".join(_ESCAPES.get(character, character) for character in text)


def _button(link: MessageLink, index: int) -> Mapping[str, Any]:
    label = {"type": "plain_text", "text": shorten(link.label, MAX_LABEL), "emoji": False}
    return {"type": "button", "text": label, "url": link.url, "action_id": f"link_{index}"}


def _sections(lines: Sequence[Line]) -> Iterator[str]:
    """Yield the texts of sections. A paragraph is cut only if it is longer than a section."""
    section, left = "", MAX_CHARACTERS
    for piece in _pieces(lines):
        if len(piece) > left - len(ELLIPSIS):
            yield section.strip("\n") + ELLIPSIS if section.strip() else ELLIPSIS
            return
        left -= len(piece)
        if len(section) + len(piece) > MAX_SECTION - len(ELLIPSIS):
            if section.strip():
                yield section.strip("\n")
            section = ""
        section += piece
    if section.strip():
        yield section.strip("\n")


def _pieces(lines: Sequence[Line]) -> Iterator[str]:
    """Yield what may be cut apart: the runs of each line, and line breaks."""
    code: list[str] = []
    for line in lines:
        if line.kind is LineKind.CODE:
            code += [escape(run.text) for run in in_pieces(line.runs, size=PIECE)]
            continue
        yield from _code(code)
        code = []
        if line.kind is LineKind.ITEM:
            sign = _BULLET if line.number is None else f"{line.number}."
            yield f"{'    ' * line.level}{sign} "
        yield from _written(line)
        yield "\n"
    yield from _code(code)


def _code(lines: Sequence[str]) -> Iterator[str]:
    """Yield blocks of code that fit into a section."""
    block = ""
    for line in lines:
        if block and len(block) + len(line) > MAX_SECTION // 2:
            yield f"```{block.rstrip()}```\n"
            block = ""
        block += line.replace("```", "`\u200b``") + "\n"
    if block.strip():
        yield f"```{block.rstrip()}```\n"


def _written(line: Line) -> Iterator[str]:
    runs = list(in_pieces(line.runs, size=PIECE))
    for index, run in enumerate(runs):
        before = runs[index - 1].text[-1:] if index else ""
        after = runs[index + 1].text[:1] if index + 1 < len(runs) else ""
        yield _run(run, is_glued=before.isalnum(), is_followed=after.isalnum())


def _run(run: Run, *, is_glued: bool, is_followed: bool) -> str:
    if run.mention is not None:
        return f"<!{run.mention}>"
    before, text, after = trimmed(run.text)
    if not text:
        return run.text
    if run.link is not None and len(escape(run.link)) <= MAX_INLINE_URL:
        shown = _address(run.link) if run.link == run.text else _link(run.link, text)
    else:
        shown = escape(text).replace("`", _TICK)
        shown = shown if run.is_code else _inert(shown)
    styled = _styled(run, text, shown)
    if styled != shown:
        # Slack reads a marker only at the edge of a word.
        before = before or (_SPACE_MARK if is_glued else "")
        after = after or (_SPACE_MARK if is_followed else "")
    return f"{before}{styled}{after}"


def _inert(text: str) -> str:
    """Return a text whose markers open and close nothing: Slack's own advice is a space."""
    opened = _OPENING.sub(lambda found: f"{found[0]}{_SPACE_MARK}", text)
    return _CLOSING.sub(lambda found: f"{_SPACE_MARK}{found[0]}", opened)


def _styled(run: Run, text: str, shown: str) -> str:
    """Return a text in its markers. One that contains a marker goes without: there is no escape."""
    if run.is_code and run.link is None:
        return f"`{shown}`"
    if run.is_italic and "_" not in text:
        shown = f"_{shown}_"
    return f"*{shown}*" if run.is_bold and "*" not in text else shown


def _link(address: str, label: str) -> str:
    shown = escape(label).replace("|", _BAR).replace("`", _TICK)
    return f"<{escape(address).replace('|', '%7C')}|{shown}>"


def _address(address: str) -> str:
    return f"<{escape(address).replace('|', '%7C')}>"
