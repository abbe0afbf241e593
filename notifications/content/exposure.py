"""Finds sensitive variables in URLs and HTML attributes. Pure.

Mail scanners, proxies, and browser histories record URLs, and a request for one reveals its value
to a server. Text is only shown to the recipient.

A template is read twice. Its texts are put one after another, as loops and captures write them,
with placeholders for its outputs: no secret may stand in a URL, nor decide about one. And it is
rendered with other secrets, which may change no URL.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any
from urllib.parse import quote

from liquid import BoundTemplate
from liquid.ast import BlockNode, Node
from liquid.builtin.content import ContentNode
from liquid.builtin.expressions import FilteredExpression
from liquid.builtin.expressions.path import Path
from liquid.builtin.expressions.primitive import StringLiteral
from liquid.builtin.output import OutputNode
from liquid.builtin.tags.assign_tag import AssignNode
from liquid.builtin.tags.capture_tag import CaptureNode
from liquid.builtin.tags.cycle_tag import CycleNode
from liquid.builtin.tags.decrement_tag import DecrementNode
from liquid.builtin.tags.for_tag import ForNode
from liquid.builtin.tags.increment_tag import IncrementNode
from liquid.builtin.tags.tablerow_tag import TablerowNode
from liquid.expression import Expression

from ..catalog.types import MASK
from . import markup
from .engine import TemplateError
from .secrecy import LINK, Condition, Level, Secrets, Value

CODE = "sensitive_in_url"
REASON = (
    "{name} is sensitive, and URLs and HTML attributes are recorded in many places. "
    "Put it into the text."
)
MAX_CHARACTERS = 256 * 1024
"""Characters of a template with its captured texts in place."""
_WORD = re.compile(r"[^\s<>\"]+")
_CONDITION = re.compile(r"<!--\[if[^>]*>", re.IGNORECASE)
_SEPARATOR = re.compile(r"[\s<>\"]")
_REQUEST = re.compile(
    r"[\s/\"'](?:src|srcset|href|xlink:href|background|poster|action|formaction|data|ping|cite)"
    r"\s*=|url\(|@import",
    re.IGNORECASE,
)
"""An attribute or a rule that makes a mail client request a URL."""
_STYLED = re.compile(r"\s(?:class|id|style)\s*=", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that a template writes, with the secrets that it shows and that decide about it."""

    text: str
    index: int
    secret: str | None = None
    by: str | None = None
    is_output: bool = False
    is_link: bool = False
    """A secret in one value with what may be the beginning of a URL."""


def find_exposed(
    bound: BoundTemplate, *, sensitive: frozenset[str], example: Mapping[str, Any], is_html: bool
) -> Iterator[tuple[str, int]]:
    """Yield the name and index of each sensitive variable that a template puts into a URL.

    Raises TemplateError if the template is too complex to tell.
    """
    reader = _Reader(Secrets(bound, sensitive, example), is_html=is_html)
    found = {
        use
        for texts in reader.read(bound.nodes)
        if any(one.secret or one.by for one in texts)
        for use in _exposed(texts, is_html=is_html)
    }
    yield from sorted(found, key=lambda use: use[1])


def _exposed(texts: Sequence[_Text], *, is_html: bool) -> Iterator[tuple[str, int]]:
    plain = "".join(one.text for one in texts)
    places = _Places(plain, is_html=is_html)
    has_styles = is_html and "<style" in plain.lower() and _REQUEST.search(plain) is not None
    at = 0
    for one in texts:
        end = at + len(one.text)
        if one.secret and (one.is_link or places.is_exposed(at)):
            yield one.secret, one.index
        elif one.by and (
            places.is_exposed(at, is_start=not one.is_output)
            or (end < len(plain) and plain[end] != "<" and places.is_exposed(end))
            or LINK.search(one.text)
            or (is_html and _REQUEST.search(one.text))
            or (has_styles and _STYLED.search(one.text))
        ):
            yield one.by, one.index
        at = end


class _Reader:
    """Puts the texts of a template one after another."""

    def __init__(self, secrets: Secrets, *, is_html: bool) -> None:
        self._secrets = secrets
        self._is_html = is_html
        self._captured: dict[str, list[_Text]] = {}
        self._reading: set[str] = set()
        self._nodes: dict[str, list[tuple[Node, Condition | None]]] = {}
        self._left = MAX_CHARACTERS

    def read(self, nodes: Sequence[Node]) -> list[list[_Text]]:
        """Return the texts of a template, and those of each of its captures."""
        self._find_captures(nodes, None)
        return [
            self._write(nodes, None),
            *(self._write_captured(name) for name in self._nodes),
        ]

    def _find_captures(self, nodes: Iterable[Node], condition: Condition | None) -> None:
        for node in nodes:
            if isinstance(node, CaptureNode):
                self._nodes.setdefault(str(node.name), []).append((node.block, condition))
            elif isinstance(node, AssignNode) and (literal := _literal(node.expression)):
                content = ContentNode(node.token, literal)
                self._nodes.setdefault(str(node.name), []).append((content, condition))
            for child, inner in self._secrets.children(node, condition):
                self._find_captures([child], inner)

    def _write_captured(self, name: str) -> list[_Text]:
        if name not in self._captured:
            if name in self._reading:
                return []
            self._reading.add(name)
            self._captured[name] = [
                text
                for node, condition in self._nodes[name]
                for text in self._write([node], condition)
            ]
            self._reading.discard(name)
        return self._captured[name]

    def _write(self, nodes: Iterable[Node], condition: Condition | None) -> list[_Text]:
        texts: list[_Text] = []
        for node in nodes:
            texts += self._write_node(node, condition)
        return texts

    def _write_node(self, node: Node, condition: Condition | None) -> list[_Text]:
        by = self._secrets.deciding(condition)
        index = max(node.token.start_index, 0)
        match node:
            case ContentNode():
                return self._counted([_Text(node.text, index, by=by)])
            case OutputNode():
                return self._write_output(node.expression, index, by)
            case CycleNode():
                values = [self._secrets.value_of(one) for one in node.expressions()]
                value = Value().join(*values)
                literals = [_literal(one) or "" for one in node.args]
                return self._counted(
                    [
                        _output(value, index, by, is_html=self._is_html),
                        *(_Text(one, index, by=by) for one in literals),
                    ]
                )
            case IncrementNode() | DecrementNode():
                value = self._secrets.value_of(Path(node.token, [str(node.name)]))
                return self._counted([_output(value, index, by, is_html=self._is_html)])
            case CaptureNode() | AssignNode():
                return []
            case _:
                texts: list[_Text] = []
                for child, inner in self._secrets.children(node, condition):
                    written = self._write(
                        child.nodes if isinstance(child, BlockNode) else [child], inner
                    )
                    texts += written
                    if isinstance(node, ForNode | TablerowNode):
                        # The next turn begins where the last one ended.
                        texts += self._counted(_up_to_separator(written))
                return texts

    def _write_output(self, expression: Expression, index: int, by: str | None) -> list[_Text]:
        if literal := _literal(expression):
            return self._counted([_Text(literal, index, by=by)])
        value = self._secrets.value_of(expression)
        texts = [_output(value, index, by, is_html=self._is_html)]
        name = _variable(expression)
        if name in self._nodes:
            # Shown as written, also if it begins a tag or a URL.
            written = [replace(one, by=one.by or by) for one in self._write_captured(name)]
            is_told = any(one.secret for one in written) or value.level is Level.PUBLIC
            texts = written if is_told else [*written, *texts]
        return self._counted(texts)

    def _counted(self, texts: list[_Text]) -> list[_Text]:
        self._left -= sum(len(one.text) + 8 for one in texts)
        if self._left < 0:
            reason = "Too many captured texts to find sensitive variables in URLs."
            raise TemplateError("too_complex", reason)
        return texts


def _output(value: Value, index: int, by: str | None, *, is_html: bool) -> _Text:
    # A value that may be the beginning of a URL or a tag makes what follows a part of it.
    tag = "<x " if is_html and value.may_open_tag else ""
    text = f"{tag}://x" if value.may_be_link else f"{tag}x"
    secret = value.name if value.level is not Level.PUBLIC else None
    is_link = value.level is Level.SECRET and value.may_be_link
    return _Text(text, index, secret=secret, by=by, is_output=True, is_link=is_link)


def _up_to_separator(texts: Sequence[_Text]) -> list[_Text]:
    found: list[_Text] = []
    for one in texts:
        end = None if one.is_output else _SEPARATOR.search(one.text)
        if end:
            return [*found, replace(one, text=one.text[: end.end()])]
        found.append(one)
    return found


def _literal(expression: Expression) -> str | None:
    if isinstance(expression, FilteredExpression) and not expression.filters:
        expression = expression.left
    return expression.value if isinstance(expression, StringLiteral) else None


def _variable(expression: Expression) -> str:
    if isinstance(expression, FilteredExpression) and not expression.filters:
        expression = expression.left
    is_plain = isinstance(expression, Path) and len(expression.path) == 1
    return str(expression.path[0]) if is_plain and isinstance(expression, Path) else ""


def other_secrets(data: Mapping[str, Any], sensitive: frozenset[str]) -> list[dict[str, Any]]:
    """Return copies of data with other secrets, which are as long as these."""
    return [_changed(data, sensitive, by=shift, is_secret=False) for shift in (1, 4)]


def _changed(value: Any, sensitive: frozenset[str], *, by: int, is_secret: bool) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _changed(one, sensitive, by=by, is_secret=is_secret or name in sensitive)
            for name, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_changed(one, sensitive, by=by, is_secret=is_secret) for one in value]
    if not is_secret or isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    # Without an exponent, whose letter and sign are no part of the number's digits.
    written = format(Decimal(str(value)), "f") if isinstance(value, float) else str(value)
    changed = "".join(_changed_letter(letter, by) for letter in written)
    return changed if isinstance(value, str) else type(value)(changed)


def _changed_letter(letter: str, by: int) -> str:
    for first, count in (("0", 10), ("a", 26), ("A", 26)):
        if 0 <= (position := ord(letter) - ord(first)) < count:
            return chr(ord(first) + (position + by) % count)
    return letter


def requests_of(text: str, *, is_html: bool) -> frozenset[str]:
    """Return the URLs and HTML tags of a rendered text, which no secret may change."""
    words = {word[0] for word, _ in _words_with_links(text)}
    if is_html:
        words |= {
            text[t.start : t.end if t.name in _REQUESTING else t.tag_end]
            for t in markup.tokenize(text)
        }
    return frozenset(words)


_REQUESTING = ("style", "script")
"""Elements whose content counts as their tag."""


def is_mask_exposed(text: str, *, is_html: bool) -> bool:
    """Return whether a rendered text has a mask in a URL, also one composed of variables."""
    positions = [found.start() for found in _MASK.finditer(text)]
    places = _Places(text, is_html=is_html) if positions else None
    return places is not None and any(places.is_exposed(position) for position in positions)


_MASK = re.compile(f"{re.escape(MASK)}|{re.escape(quote(MASK))}")


class _Places:
    """The URLs and HTML tags of a text, found in one pass."""

    def __init__(self, text: str, *, is_html: bool) -> None:
        spans = [*_spans_of_tags(text)] if is_html else []
        spans += [(link.end(), word.end()) for word, link in _words_with_links(text)]
        self._starts, self._ends = _merge(spans)

    def is_exposed(self, index: int, *, is_start: bool = False) -> bool:
        """Return whether the character at ``index`` is part of a URL or in a tag.

        With ``is_start``, it must not be the first one of it.
        """
        search = bisect_left if is_start else bisect_right
        position = search(self._starts, index) - 1
        return position >= 0 and index < self._ends[position]


def _words_with_links(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield the words of a text that have the beginning of a URL, and the first of them."""
    link = LINK.search(text)
    if link is None:
        return
    for word in _WORD.finditer(text):
        if link.start() >= word.end():
            continue
        if link.end() <= word.end() and link.start() >= word.start():
            yield word, link
        link = LINK.search(text, word.end())
        if link is None:
            return


def _spans_of_tags(text: str) -> Iterator[tuple[int, int]]:
    """Yield where tags are, also in comments that Outlook reads."""
    for token in markup.tokenize(text):
        if token.name:
            yield token.start, _end_of(token)
        elif condition := _CONDITION.match(text, token.start, token.end):
            # What looks like another comment in it hides nothing: one pass finds all tags.
            inside = text[condition.end() : token.end].replace("<!--", "    ")
            for one in markup.tokenize(inside):
                if one.name:
                    yield condition.end() + one.start, condition.end() + _end_of(one)


def _end_of(token: markup.Token) -> int:
    return token.end if token.name in _REQUESTING else token.tag_end


def _merge(spans: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return the starts and the ends of the union of spans, in order."""
    starts: list[int] = []
    ends: list[int] = []
    for start, end in sorted(spans):
        if ends and start < ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends
