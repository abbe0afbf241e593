"""Refuses templates in which a sensitive variable may be in a request, or decide about one. Pure.

Mail clients load images and style sheets, and make links of words that look like one; servers,
proxies, and scanners record what is requested. What is allowed is listed, and all else refused, in
each part that shows a secret or decides by one:

- A secret stands in text, and what touches it can't be a part of a link.
- A condition or a loop on a secret writes only such text, and elements that request nothing.
- Tags, filters, and HTML are those of FILTERS, TAGS, and `plain_html`.

Whatever the data is: conditions that hold for no example are read, too.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import category

from liquid import BoundTemplate
from liquid.ast import BlockNode, Node
from liquid.builtin.content import ContentNode
from liquid.builtin.expressions import FilteredExpression
from liquid.builtin.expressions.loop import LoopExpression
from liquid.builtin.expressions.path import Path
from liquid.builtin.expressions.primitive import Continue, RangeLiteral, StringLiteral
from liquid.builtin.output import OutputNode
from liquid.builtin.tags.assign_tag import AssignNode
from liquid.builtin.tags.capture_tag import CaptureNode
from liquid.builtin.tags.case_tag import CaseNode
from liquid.builtin.tags.comment_tag import CommentNode
from liquid.builtin.tags.doc_tag import DocNode
from liquid.builtin.tags.for_tag import ForNode
from liquid.builtin.tags.if_tag import IfNode
from liquid.builtin.tags.inline_comment_tag import InlineCommentNode
from liquid.builtin.tags.liquid_tag import LiquidNode
from liquid.builtin.tags.unless_tag import UnlessNode
from liquid.expression import Expression

from .engine import TemplateError
from .plain_html import Break, HtmlReader, NotPlainError
from .secrecy import Condition, Level, Secrets, Value, as_text

CODE = "sensitive_in_url"
_LINKED = "write no '<' before a word, since mail clients make links of what is between '<' and '>'"
_TOUCHED = (
    "only letters, digits, quotation marks, brackets, and closing punctuation may touch it: put a "
    "blank, or in HTML a block such as <p>, between it and the rest"
)
TAGS = "assign, capture, case, comment, echo, for, if, liquid, raw, unless"
MAX_CHARACTERS = 512 * 1024
MAX_STEPS = 20_000
"""Characters and nodes of a template, each time that it is read."""
_SHORT = 24
_BLANK = re.compile(r"[ \t\r\n]+")
_SECRET, _NUMBER, _VALUE, _OTHER = "\x00", "\x01", "\x02", "\x03"
"""What stands in a run for a secret, a secret with a dot, another value that is a word, and what
may be a part of a link.
"""
_CONTROL = dict.fromkeys(range(0x20), _OTHER)
_CJK = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]"
_OPENING = r"\"'(\[*_~\u00ab\u201c\u2018"
_CLOSING = (
    r"\"'`)\]}*_~\u00bb\u00ab\u2019\u201d\u203a\uff09\u300d\u300f\u3011\u300b\u3009"
    r"\u00a0\u2007\u202f"
)
_BESIDE = (
    rf"(?:(?![\u2488-\u249b\U0001f100])[\w\x00-\x02{_OPENING}{_CLOSING}{{"
    r"#$\u00a2-\u00a5\u20ac\u00a1\u00bf\u201e\u2039"
    r"\u2022\u00b7\u2013\u2014,;\u060c\u061b\u061f\u0964\uff0c\uff1a\u3001\uff1b\uff01\uff1f\uff08"
    r"\u300c\u300e\u3010\u300a\u3008\u2190-\u21ff\u2600-\u27bf\U0001f300-\U0001faff-]"
    rf"|\u3002(?={_CJK}{{7}}))*+"
)
"""What may stand beside a secret: letters, digits, quotation marks, brackets, and other signs that
no link has. An ideographic full stop counts as a dot, unless what follows is too long to be a
top-level domain.
"""
_LABELS = "code codes codice codigo kennwort kod kode otp passcode passwort password pin tan token"
_LABEL = rf"(?:{'|'.join(_LABELS.split())}|(?=\w*[^\W\x00-\x7f])[^\W\d_]+):"
"""A word and a colon that are no scheme of a URL."""
_BODY = re.compile(rf"\A[{_OPENING}]*+(?:{_LABEL})?{_BESIDE}", re.IGNORECASE)
_END = re.compile(rf"[.,;:!?%\u2026\u3002\uff0e\uff61{_CLOSING}]*+")
_BEGUN = re.compile(rf"[{_OPENING}]{{0,4}}([^\W\d_]{{0,20}})")
_STOP = "\u3002"
_LAST_SENTENCE = re.compile(rf"\u3002{_CJK}{{0,6}}")
_OPENED = re.compile(r"<(?![\s\d=-]|#>)")


@dataclass(frozen=True, slots=True)
class Exposure:
    """Where a template may expose a sensitive variable, and why; for people."""

    name: str
    index: int
    why: str

    @property
    def reason(self) -> str:
        """The reason as a sentence."""
        return (
            f"{self.name!r} is sensitive and must not be in a URL or any other request, nor decide "
            f"about one: {self.why}."
        )


def find_exposed(
    bound: BoundTemplate, *, sensitive: frozenset[str], example: Mapping[str, Any], is_html: bool
) -> list[Exposure]:
    """Return where a template may put a sensitive variable into a request, in order.

    Raises TemplateError if the template is too complex to tell.
    """
    secrets = Secrets(bound, sensitive, example)
    name = secrets.touched()
    if name is None:
        return []
    source = bound.nodes[0].token.source
    reader = _Reader(secrets, name, source, HtmlReader() if is_html else None)
    reader.read(bound.nodes)
    found = {(exposure.name, exposure.index): exposure for exposure in reversed(reader.found)}
    return sorted(found.values(), key=lambda exposure: exposure.index)


@dataclass(frozen=True, slots=True)
class _Use:
    name: str
    index: int


_Runs = Mapping[str, _Use | None]
"""What may stand directly before a place, back to a blank, with the first secret in it."""
_NOTHING: _Runs = {"": None}


@dataclass(slots=True)
class _Reader:
    """Reads a template with each way through its conditions and loops."""

    secrets: Secrets
    name: str
    source: str
    html: HtmlReader | None
    found: list[Exposure] = field(default_factory=list)
    _captures: dict[str, list[tuple[Node, Condition | None]]] = field(default_factory=dict)
    _reading: set[str] = field(default_factory=set)
    _steps: int = 0
    _characters: int = 0

    def read(self, nodes: Sequence[Node]) -> None:
        """Find every exposure, in HTML up to the first fault of its structure."""
        self._find_captures(nodes, None)
        try:
            self._end(self._read_all(nodes, None, _NOTHING, ""))
        except NotPlainError:
            return
        if self.html is not None and self.html.place != HtmlReader().place:
            self._add(self.name, len(self.source), "close each HTML element")

    def _add(self, name: str, index: int, why: str) -> None:
        self.found.append(Exposure(name or self.name, index, why))

    def _find_captures(self, nodes: Iterable[Node], condition: Condition | None) -> None:
        for node in nodes:
            if isinstance(node, CaptureNode):
                self._captures.setdefault(str(node.name), []).append((node.block, condition))
            for child, inner in self.secrets.children(node, condition):
                self._find_captures([child], inner)

    def _read_all(
        self, nodes: Iterable[Node], condition: Condition | None, runs: _Runs, by: str
    ) -> _Runs:
        """Read nodes. ``by`` is the secret that decides whether they are written, if one does."""
        for node in nodes:
            runs = self._read_node(node, condition, runs, by)
        return runs

    def _read_node(self, node: Node, condition: Condition | None, runs: _Runs, by: str) -> _Runs:
        self._count(1)
        index = max(node.token.start_index, 0)
        match node:
            case ContentNode():
                runs = self._write(node.text, index, runs, by)
            case OutputNode():
                runs = self._output(node.expression, index, runs, by)
            case AssignNode() | CaptureNode() | CommentNode() | InlineCommentNode() | DocNode():
                pass
            case BlockNode():
                runs = self._read_all(node.nodes, condition, runs, by)
            case LiquidNode():
                runs = self._read_all([node.block], condition, runs, by)
            case ForNode():
                self._check_loop(node.expression, index)
                before: _Runs = {}
                while before != runs:
                    # The next turn begins where the last one ended.
                    before, runs = runs, self._read_choices(node, condition, runs, by)
            case IfNode() | UnlessNode():
                runs = self._join(
                    *(
                        self._optional(child, inner, runs, by)
                        for child, inner in self.secrets.children(node, condition)
                    )
                )
            case CaseNode():
                # Liquid writes every block whose value is equal.
                runs = self._read_choices(node, condition, runs, by)
            case _:
                why = f"remove the tag {node.token.value[:20]!r}, only {TAGS} are allowed beside it"
                self._add(by, index, why)
        return runs

    def _read_choices(self, node: Node, condition: Condition | None, runs: _Runs, by: str) -> _Runs:
        for child, inner in self.secrets.children(node, condition):
            runs = self._optional(child, inner, runs, by)
        return runs

    def _optional(self, block: Node, condition: Condition | None, runs: _Runs, by: str) -> _Runs:
        """Read a block that may be left out, as Liquid does with one that has only blanks."""
        by = by or self.secrets.deciding(condition) or ""
        index = max(block.token.start_index, 0)
        before = self.html.place if self.html else None
        runs = self._mark(runs, by, index)
        after = self._mark(self._read_all([block], condition, runs, by), by, index)
        if self.html is not None and self.html.place != before:
            self._add(by, index, "close HTML elements in the condition or loop that opens them")
            raise NotPlainError
        return self._join(runs, after)

    def _join(self, *choices: _Runs) -> _Runs:
        joined: dict[str, _Use | None] = {}
        for runs in choices:
            for run, use in runs.items():
                joined[run] = joined.get(run) or use
        self._count(len(joined))
        return joined

    def _mark(self, runs: _Runs, by: str, index: int) -> _Runs:
        return self._extend(runs, "", _Use(by, index)) if by else runs

    def _check_loop(self, loop: LoopExpression, index: int) -> None:
        if isinstance(loop.offset, Continue | StringLiteral):
            self._add(self.name, index, "remove 'offset: continue'")
        given = [loop.limit, loop.offset]
        if isinstance(loop.iterable, RangeLiteral):
            given.append(loop.iterable)
        for expression in given:
            value = Value() if expression is None else self.secrets.value_of(expression)
            if value.level is not Level.PUBLIC:
                self._add(value.name, index, "take it out of the limits of the loop")

    def _output(self, expression: Expression, index: int, runs: _Runs, by: str) -> _Runs:
        plain = expression
        if isinstance(plain, FilteredExpression) and not plain.filters:
            plain = plain.left
        if isinstance(plain, StringLiteral):
            return self._write(plain.value, index, runs, by)
        value = self.secrets.value_of(expression)
        if self.html is not None and self.html.quote and self.html.attribute == "style":
            is_data = isinstance(plain, Path) and self.secrets.is_variable(plain)
            if not is_data:
                why = "write CSS in the template, not by a filter or a variable of the template"
                self._add(by, index, why)
        name = plain.path[0] if isinstance(plain, Path) and len(plain.path) == 1 else None
        if not isinstance(name, str) or name not in self._captures:
            return self._show(value, index, runs, by)
        if name in self._reading:
            self._add(value.name, index, "capture the text that it is in under another name")
            return runs
        self._reading.add(name)
        deciding = (self.secrets.deciding(capture) for _, capture in self._captures[name])
        decided = by or next(filter(None, deciding), "")
        for block, condition in self._captures[name]:
            runs = self._optional(block, condition, runs, decided)
        self._reading.discard(name)
        return self._show(value, index, runs, by) if name in self.secrets.assigned else runs

    def _show(self, value: Value, index: int, runs: _Runs, by: str) -> _Runs:
        is_secret = value.level is not Level.PUBLIC
        name = value.name if is_secret else by
        if value.level is Level.CONTAINER:
            value = as_text(value)
        if self.html is not None and name:
            self._check_text(self.html, name, index)
        if is_secret and value.fault:
            self._add(name, index, f"remove {value.fault} from what is shown of it")
            return runs
        if self.html is None:
            if "<" in value.markup:
                self._add(name, index, _LINKED)
        elif value.markup & {*"<>", self.html.quote}:
            why = "write HTML in the template, not by a filter or a variable"
            self._add(name, index, why)
        elif self.html.quote:
            return runs
        if is_secret:
            mark = _NUMBER if value.is_number else _SECRET
            return self._extend(runs, mark, _Use(name, index))
        return self._extend(runs, _OTHER if value.fault or value.is_number else _VALUE, None)

    def _check_text(self, html: HtmlReader, name: str, index: int) -> None:
        try:
            html.check_text()
        except NotPlainError as problem:
            self._add(name, index, str(problem))
            raise

    def _write(self, text: str, index: int, runs: _Runs, by: str) -> _Runs:
        self._count(0, len(text) * len(runs))
        if self.html is None:
            return self._add_text(text, index, runs, by)
        try:
            pieces = self.html.read(text, is_decided=bool(by))
        except NotPlainError as problem:
            self._add(by, index + self.html.at, str(problem))
            raise
        self._count(len(pieces))
        for piece in pieces:
            if isinstance(piece, str):
                runs = self._add_text(piece, index, runs, by)
            elif piece is Break.ELEMENT:
                self._end(runs)
                runs = self._mark(_NOTHING, by, index)
            elif any(runs):
                # Where it isn't shown, what follows stands beside what is before.
                self._add(by, index, "put what is conditional for Outlook into a <div> of its own")
        return runs

    def _add_text(self, text: str, index: int, runs: _Runs, by: str) -> _Runs:
        if opened := _OPENED.search(text):
            self._add(by, index + opened.start(), _LINKED)
        if not text.isascii():
            text = "".join(
                character for character in text if not category(character).startswith("M")
            )
        first, *others = _BLANK.split(text)
        runs = self._extend(runs, first.translate(_CONTROL), None)
        if others:
            self._end(runs)
            # Within a text, only what a secret decides about is checked.
            words = others[:-1] if by else ()
            self._count(len(words))
            for word in words:
                self._end(self._extend({"": _Use(by, index)}, word.translate(_CONTROL), None))
            runs = self._mark(_NOTHING, by, index)
            runs = self._extend(runs, others[-1].translate(_CONTROL), None)
        return runs

    def _extend(self, runs: _Runs, text: str, use: _Use | None) -> _Runs:
        extended: dict[str, _Use | None] = {}
        for run, known in runs.items():
            short = _shortened(run + text)
            extended[short] = extended.get(short) or known or use
        return extended

    def _end(self, runs: _Runs) -> None:
        """Check what stands before a blank."""
        for run, use in runs.items():
            if use is not None and run:
                values = sum(map(run.count, (_SECRET, _NUMBER, _VALUE)))
                if _OTHER in run or _STOP in run[:-1]:
                    self._add(use.name, use.index, _TOUCHED)
                elif _NUMBER in run and values > 1:
                    self._add(
                        use.name,
                        use.index,
                        "put a blank between a number or a date and another value",
                    )

    def _count(self, steps: int, characters: int = 0) -> None:
        self._steps += steps
        self._characters += characters
        if self._steps > MAX_STEPS or self._characters > MAX_CHARACTERS:
            reason = "Too many conditions, loops, and captured texts beside a sensitive variable."
            raise TemplateError(CODE, reason)


def _shortened(run: str) -> str:
    """Return what matters of a run for what follows, so that few differ."""
    if len(run) < _SHORT and _BEGUN.fullmatch(run):
        return run
    rest = _BODY.sub("", run, count=1)
    marks = "".join(mark * min(run.count(mark), 2) for mark in (_SECRET, _NUMBER, _VALUE))
    if _LAST_SENTENCE.fullmatch(rest):
        return f"{marks}a{rest}"
    if _END.fullmatch(rest):
        return f"{marks}a{'.' if rest else ''}"
    return _OTHER
