"""Writes messages as an embed of Discord. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from domain.markdown import Line, LineKind, Run, in_pieces, parse

from ..contract import Message, MessageLink
from ..room_texts import PIECE, fit, link_target, shorten, trimmed

MAX_TITLE, MAX_DESCRIPTION, MAX_URL, MAX_LABEL = 256, 4_096, 2_048, 80
MAX_LINKS = 10
SEPARATOR = " \u00b7 "
_MARKUP = re.compile(r"[\\`*_~|\[\]()<>#]|^[+-]|^\d{1,9}\.")


def build(message: Message) -> dict[str, Any]:
    """Return the body of a request. It mentions nobody, whatever the text says."""
    links = [link for link in message.links if len(link.url) <= MAX_URL][:MAX_LINKS]
    footer = _footer(links)
    pieces = _pieces(parse(message.text))
    description = fit(pieces, MAX_DESCRIPTION - len(footer) - 2).strip("\n")
    shown = "\n\n".join(part for part in (description, footer) if part)
    embed: dict[str, Any] = {}
    if message.subject:
        embed["title"] = shorten(message.subject, MAX_TITLE)
    if shown:
        embed["description"] = shown
    if links and message.subject:
        embed["url"] = links[0].url
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def escape(text: str) -> str:
    """Return a text in which Discord reads no markup."""
    return _MARKUP.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text)


def _footer(links: Sequence[MessageLink]) -> str:
    """Return the links that fit into half of a description, so that the text has the other."""
    footer = ""
    for shown in map(_link, links):
        longer = f"{footer}{SEPARATOR}{shown}" if footer else shown
        if len(longer) <= MAX_DESCRIPTION // 2:
            footer = longer
    return footer


def _link(link: MessageLink) -> str:
    return f"[{escape(shorten(link.label, MAX_LABEL))}]({link_target(link.url)})"


def _pieces(lines: Sequence[Line]) -> Iterator[str]:
    code: list[str] = []
    for line in lines:
        if line.kind is LineKind.CODE:
            code += [run.text.replace("```", "`\u200b``") for run in line.runs]
            continue
        yield from _code(code)
        code = []
        if line.kind is LineKind.ITEM:
            yield f"{'  ' * line.level}{line.mark.lstrip()}"
        yield from map(_run, in_pieces(line.runs, size=PIECE))
        yield "\n"
    yield from _code(code)


def _code(lines: Sequence[str]) -> Iterator[str]:
    block = ""
    for line in lines:
        for start in range(0, max(len(line), 1), PIECE):
            piece = line[start : start + PIECE]
            if block and len(block) + len(piece) > MAX_DESCRIPTION // 3:
                yield f"```\n{block}```\n"
                block = ""
            block += f"{piece}\n"
    if block.strip():
        yield f"```\n{block}```\n"


def _run(run: Run) -> str:
    before, text, after = trimmed(run.text)
    if not text:
        return run.text
    if run.is_code and run.link is None and "`" not in text:
        return f"{before}`{text}`{after}"
    if run.link is None or len(run.link) > MAX_URL:
        shown = escape(text)
    elif run.link == run.text:
        shown = f"<{run.link}>" if ">" not in run.link else escape(text)
    else:
        shown = f"[{escape(text)}]({link_target(run.link)})"
    if run.is_italic:
        shown = f"*{shown}*"
    if run.is_bold:
        shown = f"**{shown}**"
    return f"{before}{shown}{after}"
