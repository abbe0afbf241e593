"""Inlines CSS into email templates, after a dry run in a child process."""

# The library is native code: a crash in the child rejects the template and never ends a worker.

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path

import structlog

from . import inliner, markup
from .engine import MAX_OUTPUT, TemplateError, check_source, line_at
from .source import Kind, Piece

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
_CONDITION = re.compile(r"<!\[(?:if\b[^>]*|endif)\]>", re.IGNORECASE)
_MEDIA = re.compile(r"\smedia\s*=\s*[\"']?(?!\s*(?:all|screen)?\s*[\"'>])", re.IGNORECASE)
_NOT_LINE_END = re.compile(r"[^\n]")


# Private-use characters around the index of a piece of Liquid.
_PLACEHOLDER = "\ue000{}\ue001"
_PLACEHOLDER_PATTERN = re.compile(r"<!--\ue000(\d+)\ue001-->|\ue000(\d+)\ue001")
log = structlog.get_logger(__name__)
_CELLS = frozenset(["caption", "td", "th"])
_TABLE_PARTS = frozenset(["col", "colgroup", "tbody", "tfoot", "thead", "tr"]) | _CELLS
_BETWEEN_CELLS = _TABLE_PARTS | {"form", "input", "script", "style", "table"}
"""Elements that a parser leaves in a table outside of its cells."""
_DOCUMENT_PARTS = frozenset(["body", "frameset", "head", "html"])
_STYLE_SHEET_LINK = re.compile(r"\brel\s*=\s*[\"']?[^\"'>]*\bstylesheet\b", re.IGNORECASE)
_BETWEEN = "between the cells of a table moves in front of the table: put it into a cell."
_TEXT = re.compile(r"[^ \t\n\f\r]")
_PREFORMATTED = frozenset(["listing", "pre", "textarea"])
"""Elements of which a parser drops a line end at the start, which isn't written again."""
TIMEOUT_SECONDS = 20.0  # Time limit of the process on a busy machine; its CPU limit is far lower
_PROGRAM = Path(__file__).with_name("inliner.py")


def inline_layout(source: str) -> str:
    """Return an email layout with its first style sheet inlined."""
    # Rules that can't be inlined, such as dark mode, are in a second style sheet, which is kept.
    return _inline_around_liquid(source, inliner.INLINER.inline)


def inline_fragment(source: str, *, css: str) -> str:
    """Return an email part with a style sheet inlined."""
    return _inline_around_liquid(source, lambda html: inliner.inline_fragment(html, css))


def replace_liquid(
    source: str, pieces: Sequence[Piece], replacement: Callable[[Piece], str]
) -> str:
    """Return a source with other texts in place of its Liquid."""
    texts: list[str] = []
    at = 0
    for piece in pieces:
        texts += [source[at : piece.start], replacement(piece)]
        at = piece.end
    return "".join([*texts, source[at:]])


def extract_liquid(source: str) -> tuple[str, list[str]]:
    """Return a source's HTML with placeholders in place of its Liquid, and the Liquid."""
    # Raises TemplateError for what could exceed the library's stack or memory.
    plain = source.replace("\ue000", "").replace("\ue001", "")
    pieces = check_source(plain)
    # Replacing Liquid by spaces keeps the line numbers of the source.
    blanked = replace_liquid(
        plain, pieces, lambda piece: _NOT_LINE_END.sub(" ", plain[piece.start : piece.end])
    )
    if excess := markup.find_excess(blanked):
        raise TemplateError("too_complex", excess.reason, line=line_at(plain, excess.index))
    numbers = {piece: number for number, piece in enumerate(pieces)}
    hidden = replace_liquid(plain, pieces, lambda piece: _PLACEHOLDER.format(numbers[piece]))
    texts = [plain[piece.start : piece.end] for piece in pieces]
    html = _prepare_tokens(hidden, pieces, texts)
    if excess := markup.find_excess(html):
        raise TemplateError("too_complex", excess.reason)
    return html, texts


def restore_liquid(html: str, liquid: Sequence[str]) -> str:
    """Return HTML with its Liquid restored. Raises TemplateError if the result is too long."""
    # The parser may have made openings of entities; they are text.
    safe = html.replace("{{", "{&#123;").replace("{%", "{&#37;")
    text = _PLACEHOLDER_PATTERN.sub(lambda match: liquid[int(match[1] or match[2])], safe)
    if len(text) > MAX_OUTPUT:
        raise TemplateError("too_long", "The HTML is too long after CSS inlining.")
    return text


def find_misplaced_liquid(source: str) -> int | None:
    """Return the index of Liquid in a tag outside of a value, which HTML parsers lose, or None."""
    # ``<a href="{{ url }}">`` is valid; ``<a {% if url %}href=…{% endif %}>`` isn't.
    plain = source.replace("\ue000", " ").replace("\ue001", " ")
    pieces = check_source(plain)
    count = iter(range(len(pieces)))
    html = replace_liquid(plain, pieces, lambda _piece: _PLACEHOLDER.format(next(count)))
    for token in markup.tokenize(html):
        tag = html[token.start : token.tag_end] if token.name else ""
        if unquoted := _PLACEHOLDER_PATTERN.search(_QUOTED.sub("", tag)):
            return pieces[int(unquoted[2])].start
    return None


def find_lost(source: str) -> tuple[str, int] | None:
    """Return why a parser drops or moves a piece of HTML, and its index, or None.

    Parsers drop a part of a table outside of one, and parts of a document inside of another. They
    move what is between the cells of a table in front of the table.
    """
    pieces = check_source(source)
    blanked = replace_liquid(source, pieces, partial(_blank, source))
    cells: list[bool] = []  # For each open table, whether a cell of it is open
    end = 0
    for token in markup.tokenize(blanked):
        if moved := _find_text(blanked, end, token.start, cells):
            return moved
        end = token.end
        name, is_start = token.name, bool(token.name) and not token.is_end
        if name == "template":
            return None
        if reason := is_start and _reason_of_loss(name, blanked[token.start : token.tag_end]):
            return reason, token.start
        if is_start and name in _TABLE_PARTS and not cells:
            return f"<{name}> outside of a table is lost: put a <table> around it.", token.start
        if is_start and cells and not cells[-1] and name not in _BETWEEN_CELLS:
            return f"<{name}> {_BETWEEN}", token.start
        _follow_table(name, cells, is_end=token.is_end)
    return _find_text(blanked, end, len(blanked), cells)


def _blank(source: str, piece: Piece) -> str:
    """Return blanks in place of Liquid, and letters in place of an output, which is text."""
    text = source[piece.start : piece.end]
    return _NOT_LINE_END.sub("x" if piece.kind is Kind.OUTPUT else " ", text)


def _find_text(html: str, start: int, end: int, cells: list[bool]) -> tuple[str, int] | None:
    if not cells or cells[-1]:
        return None
    found = _TEXT.search(html, start, end)
    return (f"Text {_BETWEEN}", found.start()) if found else None


def _reason_of_loss(name: str, tag: str) -> str | None:
    if name in _DOCUMENT_PARTS:
        return (
            f"<{name}> is lost: this part is the content inside the layout, so keep only what is "
            "between <body> and </body>, and the <style>."
        )
    if name == "link" and _STYLE_SHEET_LINK.search(tag):
        return "A style sheet behind a <link> is lost: write its rules into a <style>."
    return None


def _follow_table(name: str, cells: list[bool], *, is_end: bool) -> None:
    if name == "table":
        if not is_end:
            cells.append(False)
        elif cells:
            cells.pop()
    elif name in _TABLE_PARTS and cells:
        cells[-1] = name in _CELLS and not is_end


def extract_style_sheet(layout: str) -> str:
    """Return the first style sheet of a layout, whose rules can be inlined."""
    match = _STYLE.search(layout)
    return match[1] if match else ""


@cache
def opening_tag(element: str, *, css: str) -> str:
    """Return an element's opening tag with its styles inlined."""
    return inliner.inline_fragment(f"<{element}></{element}>", css).partition("</")[0]


def _inline_around_liquid(source: str, inline: Callable[[str], str]) -> str:
    """Inline CSS into HTML. Its Liquid is hidden from the HTML parser meanwhile."""
    # The parser would move a condition between two rows out of the table, and escape its operators.
    html, liquid = extract_liquid(source)
    return restore_liquid(inline(html), liquid)


def _prepare_tokens(html: str, pieces: Sequence[Piece], hidden: list[str]) -> str:
    """Return HTML that the parser changes in its styles only. Adds what is hidden besides Liquid.

    Placeholders of Liquid tags become comments, which are valid between rows, as do Outlook's
    conditions without dashes, such as ``<![if !mso]>``, from which the parser makes comments. Style
    sheets for other media aren't inlined. A line end at the start of preformatted text is doubled.
    """

    def commented(text: str) -> str:
        return _PLACEHOLDER_PATTERN.sub(
            lambda match: (
                match[0] if pieces[int(match[2])].kind is Kind.OUTPUT else f"<!--{match[0]}-->"
            ),
            text,
        )

    texts: list[str] = []
    end = 0
    for token in markup.tokenize(html):
        text = html[token.start : token.end]
        if _CONDITION.fullmatch(text):
            hidden.append(_PLACEHOLDER_PATTERN.sub(lambda found: hidden[int(found[2])], text))
            text = f"<!--{_PLACEHOLDER.format(len(hidden) - 1)}-->"
        elif token.name in _PREFORMATTED and not token.is_end:
            text = _keep_first_line(html, token)
        elif token.name == "style" and _MEDIA.search(text[: token.tag_end - token.start]):
            text = f'<style data-css-inline="ignore"{text[len("<style") :]}'
        texts += [commented(html[end : token.start]), text]
        end = token.end
    return "".join([*texts, commented(html[end:])])


def _keep_first_line(html: str, token: markup.Token) -> str:
    tag, content = html[token.start : token.tag_end], html[token.tag_end : token.end]
    begins = html.startswith(("\n", "\r\n"), token.tag_end)
    return f"{tag}\n{content}" if begins else f"{tag}{content}"


def dry_run(
    fragments: Sequence[str], *, css: str, is_layout: bool = False
) -> tuple[Sequence[str], str | None]:
    """Inline fragments in a child process. Return those up to a failure, and its reason.

    A layout has its own style sheet.
    """
    request = json.dumps({"css": css, "fragments": [*fragments], "is_layout": is_layout})
    try:
        completed = subprocess.run(
            [sys.executable, "-P", str(_PROGRAM)],
            input=request.encode(),
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("inlining_not_started", error=type(error).__name__)
        return (), "CSS inlining couldn't start on this machine. Try again."
    inlined = [json.loads(line) for line in completed.stdout.splitlines() if line.endswith(b'"')]
    if len(inlined) == len(fragments):
        return inlined, None
    log.warning("inlining_failed", status=completed.returncode)
    return inlined, "CSS inlining exceeds the memory or time limit for this HTML."
