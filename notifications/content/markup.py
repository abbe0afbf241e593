"""Limits the tags and their nesting in the HTML of an email. Pure.

The CSS inlining library recurses in C at each nesting level. At about 10,000 levels its stack (8
MB) overflows, which ends the process. The nesting computed here is never less than an HTML
parser's: an end tag counts only where every parser closes the element.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_NESTING = 200  # Levels of elements
MAX_TAGS = 5_000
MAX_REOPENED = 50_000
"""Elements that a parser may add, since unclosed formatting continues in each next paragraph."""
MAX_STYLE_COST = 1_000_000
"""Maximum of style sheet characters times tags, since each rule is matched with each element."""
_VOID = frozenset(
    {"area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "image", "img"}
    | {"input", "keygen", "link", "meta", "param", "source", "track", "wbr"}
)
_FORMATTING = frozenset(
    {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong"}
    | {"tt", "u"}
)
"""Elements that a parser continues after their parent's end if they aren't closed."""
_IMPLIED_END_TAGS = frozenset(
    ["li", "p", "dd", "dt", "option", "optgroup", "rb", "rp", "rt", "rtc"]
)
_TABLE_PARTS = frozenset(["td", "th", "tr", "tbody", "thead", "tfoot", "caption", "colgroup"])
_IMPLICITLY_CLOSED: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(_FORMATTING, frozenset[str]()),
    **dict.fromkeys(["table", "tbody", "thead", "tfoot", "tr"], _IMPLIED_END_TAGS | _TABLE_PARTS),
}
"""Elements that an end tag closes implicitly, if other than _IMPLIED_END_TAGS."""
_RAW_TEXT_ELEMENTS = {
    name: re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE | re.ASCII)
    for name in ("title", "style", "textarea", "script")
}
"""Elements that contain text only, with their end tags."""
_SPECIAL_PARSING = frozenset(
    {"svg", "math", "script", "plaintext", "xmp", "iframe", "noembed", "noframes", "noscript"}
    | {"select", "frameset", "template"}
)
"""Elements after which other tokenization rules apply: no later end tag counts."""
_TOKEN = re.compile(
    r"(?P<comment><!--(?:-?>|[\s\S]*?(?:--!?>|\Z))|<(?:[!?]|/[^A-Za-z])[^>]*+>?)"
    r"|<(?P<end>/?)(?P<name>[A-Za-z][^\t\n\f\r />]*+)"
    r"(?:[\t\n\f\r /]++"
    r"|(?:=[^\t\n\f\r />=]*+|[^\t\n\f\r />=]++)"
    r"(?:[\t\n\f\r ]*+=[\t\n\f\r ]*+"
    r"(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^\t\n\f\r >\"'][^\t\n\f\r >]*+)?)?"
    r")*+(?P<closed>>)?"
)
"""A comment or tag as the HTML standard defines them. If unclosed, it may extend to the end."""
_START = re.compile(r"<[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Token:
    """A comment, a tag, or an element with its content if that can only be text."""

    start: int
    end: int
    name: str = ""  # Element name in lower case; empty for a comment
    is_end: bool = False
    tag_end: int = 0  # End of the tag itself


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that HTML exceeds, and where."""

    reason: str
    index: int


def tokenize(html: str) -> Iterator[Token]:
    """Yield comments, tags, and text-only elements in one pass. Unclosed ones extend to the end."""
    at = 0
    while match := _TOKEN.search(html, at):
        at = match.end()
        if match["comment"] is not None:
            yield Token(match.start(), at)
            continue
        name = match["name"].lower() if match["name"].isascii() else match["name"]
        is_end, tag_end = bool(match["end"]), at
        if not match["closed"]:
            at = tag_end = len(html)
        elif not is_end and name in _RAW_TEXT_ELEMENTS:
            closing = _RAW_TEXT_ELEMENTS[name].search(html, at)
            at = closing.start() if closing else len(html)
        yield Token(match.start(), at, name, is_end, tag_end)


def extract_styles(html: str) -> tuple[str, str]:
    """Return the style sheets of HTML, and the HTML without them.

    Gmail ignores a style sheet outside of the head.
    """
    if "<style" not in html:
        return "", html
    styles: list[str] = []
    rest: list[str] = []
    at = 0
    for token in tokenize(html):
        if token.name == "style" and not token.is_end:
            end = html.find(">", token.end) + 1 or len(html)
            styles.append(html[token.start : end])
            rest.append(html[at : token.start])
            at = end
    return "\n".join(styles), "".join([*rest, html[at:]])


def find_excess(html: str) -> Excess | None:
    """Return the first limit that HTML exceeds, or None if it is safe to parse."""
    if html.count("<") <= MAX_NESTING and "<style" not in html.lower():
        return None
    return _TagCounter().run(html)


class _TagCounter:
    """Counts HTML's tags in one pass, and tracks the elements that may still be open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.formatting = 0
        self.reopened = 0
        self.tags = 0
        self.style = 0
        self.counts_end_tags = True

    def run(self, html: str) -> Excess | None:
        for token in tokenize(html):
            self.tags += 1
            if token.is_end:
                self._close(token.name)
            elif token.name:
                self._open(token.name)
            if token.name == "style":
                self.style += token.end - token.tag_end
            if not self.counts_end_tags:
                # A parser in another state may find tags inside a token.
                hidden_count = len(_START.findall(html, token.start + 1, token.end))
                self.open += ["?"] * hidden_count
                self.tags += hidden_count
            self.reopened += self.formatting
            if reason := self._exceeded_limit():
                return Excess(reason, token.start)
        return None

    def _open(self, name: str) -> None:
        if name in _SPECIAL_PARSING:
            self.counts_end_tags = False
        if name in _VOID:
            return
        self.open.append(name)
        self.formatting += name in _FORMATTING

    def _close(self, name: str) -> None:
        if not self.counts_end_tags:
            return
        index = len(self.open) - 1
        closable = _IMPLICITLY_CLOSED.get(name, _IMPLIED_END_TAGS)
        while index >= 0 and self.open[index] != name and self.open[index] in closable:
            index -= 1
        if index >= 0 and self.open[index] == name:
            del self.open[index:]
            self.formatting -= name in _FORMATTING

    def _exceeded_limit(self) -> str | None:
        if len(self.open) > MAX_NESTING:
            return f"HTML nesting exceeds {MAX_NESTING} levels; every element needs its end tag."
        if self.tags > MAX_TAGS:
            return f"More than {MAX_TAGS:,} HTML tags in a part."
        if self.reopened > MAX_REOPENED:
            return "Formatting such as bold or links stays open over too many elements."
        if self.style * self.tags > MAX_STYLE_COST:
            return "The style sheet is too long for this many elements."
        return None
