"""Reads the HTML of a template that shows a secret: only what can't request anything by it. Pure.

Elements, attributes, and CSS are allowed by name. Elements must be closed where they were opened,
and cells stand in rows, so that no HTML parser moves a text to another place.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from html import unescape

from .markup import MAX_NESTING

_OTHER_ATTRIBUTES = re.compile(r"(?:aria|data)-[a-z-]+|mc:[a-z]+")
_OFFICE = re.compile(r"[ovwx]:[a-z]+|xml", re.IGNORECASE)
"""Elements that only Outlook reads, in its conditional comments."""
_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]*+)")
_ATTRIBUTE = re.compile(
    r"[ \t\r\n/]++(?:([^\s=>/\"'<\x00]++)"
    r"(?:[ \t\r\n]*+=[ \t\r\n]*+(?:\"([^\"]*+)(\"?)|'([^']*+)('?)|([^\s\"'<>`=]++)))?+)?"
)
_END = re.compile(r"[ \t\r\n/]*+>")
_COMMENT = re.compile(r"<!--(?:-?>|[\s\S]*?--!?>)")
_REFERENCE = re.compile(r"&#?\w++;", re.ASCII)
"""A character written by its number or name, as a whole."""
_CONDITION = re.compile(r"<!\[(?:if\b[^<>\]]*+|endif)\]>", re.IGNORECASE)
_CONDITIONS = re.compile(r"(?:<!)?\[(?:if\b[^<>\]]*+|endif)\]>?+(?:<!(?:--)?\s*\Z)?", re.IGNORECASE)
"""What begins or ends a condition, without its text, also as HTML's own comments contain it."""
_ENDS_CONDITION = re.compile(r"endif\](?:--)?>\Z", re.IGNORECASE)
"""A comment without it begins what other mail clients show, too."""
_STYLE_END = re.compile(r"</style\s*+>", re.IGNORECASE)
_CSS_TOKEN = re.compile(r"/\*(?:[^*]|\*(?!/))*+(?:\*/)?+|\"[^\"\\\n]*+\"?+|'[^'\\\n]*+'?+")
_CSS_OPEN = re.compile(r"/\*|[\"'\\]")
_CSS_FUNCTION = re.compile(r"(?<![\w-])([\w-]*+)\(")
_AT_RULE = re.compile(r"@([\w-]*+)")
_UNREADABLE = "remove backslashes and open quotation marks and comments from the CSS"
_SEPARATOR = re.compile(r"[};]")
_SELECTOR = re.compile(
    r"(?:[\w\s.,#>*+~%\[\]=^$|\"-]|:not\([\w.#\[\]=^$*~\"-]*+\)|:nth-(?:child|of-type)\([\w+ -]*+\)"
    r"|:(?:first|last|only)-(?:child|of-type)\b"
    r"|:{1,2}(?:active|after|before|first-letter|focus|hover|link|root|visited)\b)*+"
)
_BY_SIBLINGS = re.compile(r"\+|~(?!=)|-(?:child|of-type)\b")
"""What in a selector depends on which other elements there are."""


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


_INLINE = _names(
    "a abbr b big button cite code del em font i img ins kbd label mark picture q s samp small "
    "source span strike strong sub sup time tt u var wbr"
)
"""Elements within a line, which separate no words."""
_TABLES = _names("table tbody thead tfoot tr colgroup")
"""Elements whose text a parser moves out of the table."""
_PARENTS = {
    "caption": _names("table"),
    "col": _names("colgroup"),
    **dict.fromkeys(["colgroup", "tbody", "tfoot", "thead"], _names("table")),
    "tr": _names("table tbody thead tfoot"),
    **dict.fromkeys(["td", "th"], _names("tr")),
}
_BLOCKS = _names(
    "address article aside blockquote br center dd div dl dt figcaption figure footer header h1 h2 "
    "h3 h4 h5 h6 hr li main nav ol p pre section ul"
)
_ELEMENTS = _INLINE | _BLOCKS | _TABLES | _PARENTS.keys() | {"style"}
_VOID = _names("br col hr img source wbr")
_FETCHING = _names("a img picture source style")
"""Elements that a secret must not decide about."""
_LINKS = {
    "href": _names("a"),
    "src": _names("img"),
    "srcset": _names("img source"),
}
_ATTRIBUTES = _names(
    "align alt bgcolor border bordercolor cellpadding cellspacing class clear color "
    "colspan datetime dir face height href hspace id lang media name noshade nowrap rel role "
    "rowspan scope size span src srcset start style summary target title type valign value vspace "
    "width xml:lang"
)

_CSS_FUNCTIONS = _names(
    "rgb rgba hsl hsla calc min max clamp var env cubic-bezier linear-gradient radial-gradient "
    "rotate scale translate translatex translatey repeat minmax not format and or alpha"
)
_AT_RULES = _names(
    "charset keyframes media supports viewport -moz-keyframes -ms-viewport -webkit-keyframes"
)


class NotPlainError(ValueError):
    """HTML that a template that shows a secret can't have. The text says what, for people."""


class Break(Enum):
    """What stands between texts."""

    ELEMENT = auto()
    """A tag that separates what stands before and after it."""
    CONDITION = auto()
    """The start of what only Outlook shows, or what Outlook leaves out."""


Pieces = list[str | Break]
"""Texts without entities, and what stands between them."""


@dataclass(slots=True)
class HtmlReader:
    """Reads the texts of a template one after another, and knows where in the HTML it is."""

    open: tuple[str, ...] = ()
    quote: str = ""
    """The quotation mark of the attribute's value that it is in."""
    attribute: str = ""
    """The attribute whose value was read last."""
    at: int = 0
    """Where it is in the text that it reads."""
    _element: str = ""
    _by_siblings: str = ""
    """A selector that depends on which elements there are."""
    _has_decided: bool = False
    """A secret decides whether an element is written."""

    @property
    def place(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The open elements, and the attribute that it is in. A block must end where it began."""
        return self.open, (self._element, self.attribute, self.quote) if self.quote else ()

    def check_text(self) -> None:
        """Raise NotPlainError if a text may not stand here."""
        if self.quote:
            raise NotPlainError("show it in the text, not in an HTML attribute")
        if self.open and self.open[-1] in _TABLES:
            raise NotPlainError(f"put the text in <{self.open[-1]}> into a cell")

    def read(self, html: str, *, is_decided: bool) -> Pieces:
        """Return the texts and separators of HTML. Raises NotPlainError.

        With ``is_decided``, a secret decides whether the HTML is written.
        """
        if "\ue000" in html or "\ue001" in html:
            raise NotPlainError("remove the private-use characters")
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
                raise NotPlainError("write a comment whole, without Liquid or a condition on it")
            pieces += _read_comment(found[0])
            return found.end()
        name = _NAME.match(html, at)
        if name is None:
            if not re.match(r"<[\s\d]", html[at : at + 2]):
                raise NotPlainError("write each tag whole, not by Liquid")
            pieces.append(html[at : at + 2])
            return at + 2
        element = name[2].lower()
        if element not in _ELEMENTS:
            raise NotPlainError(f"remove <{element[:40]}> from the HTML of this part")
        if is_decided and element in _FETCHING:
            raise NotPlainError(f"take <{element}> out of the condition or loop on it")
        self._has_decided = self._has_decided or is_decided
        self._check_siblings()
        if element not in _INLINE:
            pieces.append(Break.ELEMENT)
        if name[1]:
            return self._close(html, name.end(), element)
        self._open(element)
        return self._read_attributes(html, name.end(), is_decided=is_decided)

    def _open(self, element: str) -> None:
        parent = self.open[-1] if self.open else ""
        expected = _PARENTS.get(element)
        if parent not in expected if expected else parent in _TABLES:
            raise NotPlainError(
                f"move <{element}> out of {f'<{parent}>' if parent else 'the text'}"
            )
        if len(self.open) >= MAX_NESTING:
            raise NotPlainError(f"HTML nesting exceeds {MAX_NESTING} levels")
        if element not in _VOID:
            self.open = (*self.open, element)
        self._element = element

    def _close(self, html: str, at: int, element: str) -> int:
        end = _END.match(html, at)
        if end is None or not self.open or self.open[-1] != element:
            raise NotPlainError(f"close by </{element}> the element that was opened last")
        self.open = self.open[:-1]
        return end.end()

    def _continue_value(self, html: str, *, is_decided: bool) -> int:
        end = html.find(self.quote)
        if self.attribute == "style":
            _check_style(html if end < 0 else html[:end])
        if is_decided:
            raise NotPlainError("take the condition or loop on it out of the HTML attribute")
        if end < 0:
            return len(html)
        self.quote = ""
        return self._read_attributes(html, end + 1, is_decided=is_decided)

    def _read_attributes(self, html: str, at: int, *, is_decided: bool) -> int:
        """Check the attributes of a tag from here on. Raises NotPlainError.

        Return where the tag ends, with its style sheet if it is one, or where the text stops within
        a quoted value.
        """
        while found := _ATTRIBUTE.match(html, at):
            at = found.end()
            if found[1]:
                self.attribute = found[1].lower()
                value = found[2] or found[4] or found[6] or ""
                self._check_attribute(value, is_decided=is_decided)
            for value, quote in ((2, '"'), (4, "'")):
                if found[value] is not None and not found[value + 1]:
                    self.quote = quote
                    return at
        end = _END.match(html, at)
        if end is None:
            raise NotPlainError(f"write the tag <{self._element}> whole, with quoted values")
        return self._read_sheet(html, end.end()) if self._element == "style" else end.end()

    def _check_attribute(self, value: str, *, is_decided: bool) -> None:
        name = self.attribute
        is_link = name in _LINKS
        if is_link and (self._element not in _LINKS[name] or is_decided):
            raise NotPlainError(f"remove <{self._element} {name}> from the HTML of this part")
        if name not in _ATTRIBUTES and not _OTHER_ATTRIBUTES.fullmatch(name):
            raise NotPlainError(f"remove the attribute {name[:40]!r} from the HTML of this part")
        if name == "style":
            _check_style(value)

    def _read_sheet(self, html: str, at: int) -> int:
        end = _STYLE_END.search(html, at)
        if end is None:
            raise NotPlainError("write the style sheet whole, without Liquid")
        self._by_siblings += _check_sheet(html[at : end.start()])
        self._check_siblings()
        self.open = self.open[:-1]
        return end.end()

    def _check_siblings(self) -> None:
        if self._has_decided and self._by_siblings:
            selector = f"the selector {self._by_siblings[:40]!r}"
            raise NotPlainError(
                f"remove {selector}, or the elements in the condition or loop on it"
            )


def _read_comment(comment: str) -> Pieces:
    """Return what only Outlook shows of a comment, or nothing if it shows tags alone.

    Raises NotPlainError if Outlook would find something else than whole tags and texts.
    """
    if "[if" not in comment.lower():
        return []
    pieces: Pieces = [Break.CONDITION]
    inside = _CONDITIONS.sub("", comment.removeprefix("<!--").removesuffix("-->"))
    at = 0
    for start in re.finditer("<(?!!)", inside):
        if start.start() < at:
            # In an attribute's value or a style sheet.
            continue
        name = _NAME.match(inside, start.start())
        if name is None:
            raise NotPlainError("write each tag in a comment whole")
        pieces.append(unescape(inside[at : start.start()]))
        element, at = name[2].lower(), name.end()
        if element not in _ELEMENTS and not _OFFICE.fullmatch(element):
            raise NotPlainError(f"remove <{element[:40]}> from the HTML of this part")
        if element in _ELEMENTS - _INLINE:
            pieces.append(Break.ELEMENT)
        while (found := _ATTRIBUTE.match(inside, at)) and "" not in (found[3], found[5]):
            at = found.end()
        end = _END.match(inside, at)
        if end is None:
            raise NotPlainError("write each tag in a comment whole")
        at = end.end()
        if element == "style" and not name[1]:
            sheet = _STYLE_END.split(inside[at:], maxsplit=1)[0]
            _check_sheet(sheet)
            at += len(sheet)
    pieces.append(unescape(inside[at:]))
    has_text = any(isinstance(piece, str) and piece.strip(" \t\r\n") for piece in pieces)
    return pieces if has_text or not _ENDS_CONDITION.search(comment) else []


def _check_style(value: str) -> None:
    """Raise NotPlainError if a style attribute, or a part of one, may request something."""
    if "&" in _REFERENCE.sub("", value):
        raise NotPlainError("write '&' as '&amp;' in the CSS of this part")
    css = unescape(value)
    if "\\" in css:
        raise NotPlainError(_UNREADABLE)
    if css.startswith("("):
        # The function's name may be in the part before.
        raise NotPlainError("remove () from the CSS of this part")
    _check_functions(css)


def _check_sheet(css: str) -> str:
    """Raise NotPlainError if a style sheet may request something, or depends on texts.

    Return a selector that depends on which elements there are, or an empty text.
    """
    css = _CSS_TOKEN.sub(_without_content, css)
    if _CSS_OPEN.search(css):
        raise NotPlainError(_UNREADABLE)
    for rule in _AT_RULE.finditer(css):
        if rule[1].lower() not in _AT_RULES:
            why = ", since fonts that are loaded reveal which characters are shown"
            raise NotPlainError(f"remove @{rule[1][:40]} from the CSS of this part{why}")
    _check_functions(css)
    by_siblings = ""
    for before in css.split("{")[:-1]:
        selector = _SEPARATOR.split(before)[-1].strip()
        if selector.startswith("@"):
            continue
        if not _SELECTOR.fullmatch(selector):
            raise NotPlainError(f"remove the selector {selector[:40]!r} from the CSS of this part")
        by_siblings = by_siblings or (selector if _BY_SIBLINGS.search(selector) else "")
    return by_siblings


def _check_functions(css: str) -> None:
    for function in _CSS_FUNCTION.finditer(css):
        name = function[1].lower()
        instead = ": a background may be loaded only if it is seen, so use <img>" * (name == "url")
        if name and name not in _CSS_FUNCTIONS:
            raise NotPlainError(f"remove {name}() from the CSS of this part{instead}")


def _without_content(token: re.Match[str]) -> str:
    """Return a blank for a comment, and a word for a text; an open one as it is."""
    text = token[0]
    if text.startswith("/*"):
        return " " if len(text) > len("/*/") and text.endswith("*/") else text
    return " s " if len(text) > 1 and text[-1] == text[0] else text
