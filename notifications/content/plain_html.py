"""Reads the HTML of a template that shows a secret: only what can't request anything by it. Pure.

Elements, attributes, and CSS are allowed by name. Elements must be closed where they were opened,
and cells stand in rows, so that no HTML parser moves a text to another place.
"""

import re
from dataclasses import dataclass
from html import unescape

from .markup import MAX_NESTING

_INLINE = frozenset(
    [
        *("a", "abbr", "b", "big", "cite", "code", "del", "em", "font", "i", "img", "ins", "kbd"),
        *("mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "tt", "u"),
        *("var", "wbr"),
    ]
)
"""Elements within a line, which separate no words."""
_TABLES = frozenset(["table", "tbody", "thead", "tfoot", "tr", "colgroup"])
"""Elements whose text a parser moves out of the table."""
_PARENTS = {
    "caption": frozenset(["table"]),
    "col": frozenset(["colgroup"]),
    **dict.fromkeys(["colgroup", "tbody", "tfoot", "thead"], frozenset(["table"])),
    "tr": frozenset(["table", "tbody", "thead", "tfoot"]),
    **dict.fromkeys(["td", "th"], frozenset(["tr"])),
}
_BLOCKS = frozenset(
    [
        *("address", "article", "blockquote", "br", "center", "dd", "div", "dl", "dt", "footer"),
        *("header", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "main", "ol", "p", "pre"),
        *("section", "ul"),
    ]
)
ELEMENTS = _INLINE | _BLOCKS | _TABLES | _PARENTS.keys() | {"style"}
_VOID = frozenset(["br", "col", "hr", "img", "wbr"])
_FETCHING = frozenset(["a", "img", "style"])
"""Elements that a secret must not decide about."""
_LINKS = {"href": "a", "src": "img"}
ATTRIBUTES = frozenset(
    [
        *(
            "align",
            "alt",
            "bgcolor",
            "border",
            "cellpadding",
            "cellspacing",
            "class",
            "clear",
            "color",
        ),
        *("colspan", "dir", "face", "height", "href", "hspace", "id", "lang", "name", "nowrap"),
        *("rel", "role", "rowspan", "scope", "size", "src", "start", "style", "summary", "target"),
        *("title", "type", "valign", "value", "vspace", "width", "xml:lang"),
    ]
)
_OTHER_ATTRIBUTES = re.compile(r"(?:aria|data)-[a-z-]+")
_OFFICE = re.compile(r"[ovwx]:[a-z]+|xml", re.IGNORECASE)
"""Elements that only Outlook reads, in its conditional comments."""

_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)")
_ATTRIBUTE = re.compile(
    r"[ \t\r\n/]++(?:([^\s=>/\"'<\x00]++)"
    r"(?:[ \t\r\n]*+=[ \t\r\n]*+(?:\"([^\"]*+)(\"?)|'([^']*+)('?)|([^\s\"'<>`=]++)))?+)?"
)
_END = re.compile(r"[ \t\r\n/]*+>")
_COMMENT = re.compile(r"<!--(?:-?>|[\s\S]*?--!?>)")
_CONDITION = re.compile(r"<!\[(?:if\b[^<>\]]*+|endif)\]>", re.IGNORECASE)
_STYLE_END = re.compile(r"</style\s*+>", re.IGNORECASE)
_CSS_FUNCTION = re.compile(r"(?<![\w-])([\w-]*+)\(")
_CSS_FUNCTIONS = frozenset(
    [
        *("rgb", "rgba", "hsl", "hsla", "calc", "min", "max", "clamp", "var", "cubic-bezier"),
        *("linear-gradient", "radial-gradient", "rotate", "scale", "translate", "not", "format"),
    ]
)
_AT_RULE = re.compile(r"@([\w-]*+)")
_AT_RULES = frozenset(["media", "supports", "keyframes", "-webkit-keyframes", "charset"])
_RULE = re.compile(r"[\"'{};]")
_SEPARATOR = re.compile(r"[};]")
_SELECTOR = re.compile(
    r"(?:=(?:\"[^\"]*+\"|'[^']*+')\]|[\w\s.,#>*%\[\]=^$|-]"
    r"|:{1,2}(?:active|after|before|first-letter|focus|hover|link|root|visited)\b)*+"
)


class NotPlainError(ValueError):
    """HTML that a template that shows a secret can't have. The text says what, for people."""


Pieces = list[str | None]
"""Texts without entities, and None for a tag that separates what stands before and after it."""


@dataclass(slots=True)
class HtmlReader:
    """Reads the texts of a template one after another, and knows where in the HTML it is."""

    open: tuple[str, ...] = ()
    quote: str = ""
    """The quotation mark of the attribute's value that it is in."""
    at: int = 0
    """Where it is in the text that it reads."""
    _element: str = ""

    @property
    def place(self) -> tuple[tuple[str, ...], str]:
        """The open elements, and the open quotation mark. A block must end where it began."""
        return self.open, self.quote

    def check_text(self) -> None:
        """Raise NotPlainError if a text may not stand here."""
        if self.quote:
            raise NotPlainError("it may stand in the text only, not in an HTML attribute")
        if self.open and self.open[-1] in _TABLES:
            raise NotPlainError(f"a text in <{self.open[-1]}> belongs into a cell")

    def read(self, html: str, *, is_decided: bool) -> Pieces:
        """Return the texts and separators of HTML. Raises NotPlainError.

        With ``is_decided``, a secret decides whether the HTML is written.
        """
        if "\ue000" in html or "\ue001" in html:
            raise NotPlainError("private-use characters aren't allowed")
        pieces: Pieces = []
        self.at = 0
        at = self._continue_value(html, is_decided=is_decided) if self.quote else 0
        while at < len(html):
            start = html.find("<", at)
            text = unescape(html[at:start] if start >= 0 else html[at:])
            if text.strip(" \t\r\n"):
                self.check_text()
            pieces.append(text)
            if start < 0:
                break
            at = self._read_markup(html, start, pieces, is_decided=is_decided)
        return pieces

    def _read_markup(self, html: str, at: int, pieces: Pieces, *, is_decided: bool) -> int:
        self.at = at
        if html.startswith("<!", at):
            found = _COMMENT.match(html, at) or _CONDITION.match(html, at)
            if found is None or is_decided:
                raise NotPlainError("a comment must be whole, without Liquid, and always written")
            _check_comment(found[0])
            return found.end()
        name = _NAME.match(html, at)
        if name is None:
            if not re.match(r"<[\s\d]", html[at : at + 2]):
                raise NotPlainError("a tag must be whole, not written by Liquid")
            pieces.append(html[at : at + 2])
            return at + 2
        element = name[2].lower()
        if element not in ELEMENTS:
            raise NotPlainError(f"<{element[:40]}> isn't allowed in its HTML")
        if is_decided and element in _FETCHING:
            raise NotPlainError(f"no condition or loop on it may have <{element}>")
        if element not in _INLINE:
            pieces.append(None)
        if name[1]:
            return self._close(html, name.end(), element)
        self._open(element)
        return self._read_attributes(html, name.end(), is_decided=is_decided)

    def _open(self, element: str) -> None:
        parent = self.open[-1] if self.open else ""
        expected = _PARENTS.get(element)
        if parent not in expected if expected else parent in _TABLES:
            raise NotPlainError(f"<{element}> can't stand in {f'<{parent}>' if parent else 'text'}")
        if len(self.open) >= MAX_NESTING:
            raise NotPlainError(f"HTML nesting exceeds {MAX_NESTING} levels")
        if element not in _VOID:
            self.open = (*self.open, element)
        self._element = element

    def _close(self, html: str, at: int, element: str) -> int:
        end = _END.match(html, at)
        if end is None or not self.open or self.open[-1] != element:
            raise NotPlainError(f"</{element}> must close the element that was opened last")
        self.open = self.open[:-1]
        return end.end()

    def _continue_value(self, html: str, *, is_decided: bool) -> int:
        end = html.find(self.quote)
        check_css(html if end < 0 else html[:end], is_value=True)
        if is_decided:
            raise NotPlainError("no condition or loop on it may stand in an HTML attribute")
        if end < 0:
            return len(html)
        self.quote = ""
        return self._read_attributes(html, end + 1, is_decided=is_decided)

    def _read_attributes(self, html: str, at: int, *, is_decided: bool) -> int:
        """Read the rest of a tag. Return where it ends."""
        while found := _ATTRIBUTE.match(html, at):
            at = found.end()
            if found[1]:
                self._check_attribute(found, is_decided=is_decided)
            for value, quote in ((2, '"'), (4, "'")):
                if found[value] is not None and not found[value + 1]:
                    self.quote = quote
                    return at
        end = _END.match(html, at)
        if end is None:
            raise NotPlainError(f"the tag <{self._element}> must be whole, with quoted values")
        return self._read_sheet(html, end.end()) if self._element == "style" else end.end()

    def _check_attribute(self, found: re.Match[str], *, is_decided: bool) -> None:
        name = found[1].lower()
        is_link = name in _LINKS
        if is_link and (self._element != _LINKS[name] or is_decided):
            raise NotPlainError(f"<{self._element} {name}> isn't allowed in its HTML")
        if name not in ATTRIBUTES and not _OTHER_ATTRIBUTES.fullmatch(name):
            raise NotPlainError(f"the attribute {name[:40]!r} isn't allowed in its HTML")
        if name == "style":
            check_css(unescape(found[2] or found[4] or found[6] or ""), is_value=True)

    def _read_sheet(self, html: str, at: int) -> int:
        end = _STYLE_END.search(html, at)
        if end is None:
            raise NotPlainError("a style sheet must be whole, without Liquid")
        check_css(html[at : end.start()], is_value=False)
        self.open = self.open[:-1]
        return end.end()


def _check_comment(comment: str) -> None:
    """Raise NotPlainError if Outlook would find something else than whole tags in a comment."""
    if "[if" not in comment.lower():
        return
    inside = comment[4:-3]
    for start in re.finditer("<", inside):
        name = _NAME.match(inside, start.start())
        if name is None:
            if inside.startswith("<!", start.start()):
                continue
            raise NotPlainError("a tag in a comment must be whole")
        element, at = name[2].lower(), name.end()
        if element not in ELEMENTS and not _OFFICE.fullmatch(element):
            raise NotPlainError(f"<{element[:40]}> isn't allowed in its HTML")
        while found := _ATTRIBUTE.match(inside, at):
            at = found.end()
            if "" in (found[3], found[5]):
                break
        end = _END.match(inside, at)
        if end is None:
            raise NotPlainError("a tag in a comment must be whole")
        if element == "style" and not name[1]:
            sheet_end = _STYLE_END.search(inside, end.end())
            check_css(inside[end.end() : sheet_end.start() if sheet_end else None], is_value=False)


def check_css(css: str, *, is_value: bool) -> None:
    """Raise NotPlainError if CSS may request something, or depends on what is in an element.

    ``is_value``: a style attribute, or a part of one.
    """
    if "\\" in css:
        raise NotPlainError("CSS must have no backslash")
    for function in _CSS_FUNCTION.finditer(css):
        name = function[1].lower()
        if name not in _CSS_FUNCTIONS if name else is_value and not function.start():
            raise NotPlainError(f"{name}() isn't allowed in its CSS")
    if is_value:
        return
    for rule in _AT_RULE.finditer(css):
        if rule[1].lower() not in _AT_RULES:
            raise NotPlainError(f"@{rule[1][:40]} isn't allowed in its CSS")
    for before in _without_comments(css).split("{")[:-1]:
        selector = _SEPARATOR.split(before)[-1].strip()
        if not selector.startswith("@") and not _SELECTOR.fullmatch(selector):
            raise NotPlainError(f"the selector {selector[:40]!r} isn't allowed in its CSS")


def _without_comments(css: str) -> str:
    """Return CSS without comments, but for those with a character that may begin or end a rule."""
    texts: list[str] = []
    at = 0
    while (start := css.find("/*", at)) >= 0 and (end := css.find("*/", start + 2)) >= 0:
        is_plain = not _RULE.search(css, start, end)
        texts.append(css[at : start if is_plain else end + 2])
        at = end + 2
    return "".join([*texts, css[at:]])
