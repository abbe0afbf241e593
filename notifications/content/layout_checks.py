"""What a layout must show whatever a message has, and must not do with what a message says.

A layout is used for types that don't exist yet, login codes included. So what a message says is as
secret in it as a sensitive variable is in a template, and so are its links: one may sign in whoever
opens it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from domain.content import Look

from ..catalog.designs import BrandRequest, Logo
from . import exposure, inlining, looks, markup
from .engine import HTML_ENVIRONMENT, TemplateError, check_source, line_at
from .limits import MAX_WORK, Budget
from .templates import layout_words

SAID = frozenset({"content", "heading", "preheader", "subject"})
"""Variables of a layout that have what a message says, such as a code."""
LINKS = frozenset({"deep_link", "unsubscribe_url"})
"""Variables that a layout may also have as the whole address of a link."""
MAX_RENDERED_WORK = 2 * MAX_WORK
"""Units for rendering a layout in all ways."""
_TEXT = "Example of a text."
_PAGE, _UNSUBSCRIBE = "https://example.com/", "https://example.com/unsubscribe"
_ALWAYS: Mapping[str, Any] = {"content": f"<p>{_TEXT}</p>", "subject": "Example", "language": "en"}
_OTHER_LANGUAGE = "xx"
"""One that no layout names."""
_BRAND = BrandRequest(
    name="Example", logo=Logo(url="https://example.com/logo.png"), footer="Street"
)
_SOMETIMES: Mapping[str, Any] = {
    "styles": "<style>p { margin: 0; }</style>",
    "heading": "Example",
    "image_url": "https://example.com/image.png",
    "deep_link": _PAGE,
    "unsubscribe_url": _UNSUBSCRIBE,
    "preheader": "Example",
}
"""What a message may lack: it is None then."""
_FRAME = frozenset(["html", "head", "body", "title"])
"""Elements of a document that a part of one doesn't have."""
_DOCTYPE = re.compile(r"<!doctype\b", re.IGNORECASE)
_LANGUAGE = re.compile(r"\{\{-?\s*language\s*-?\}\}")
_LIQUID = re.compile(r"\{[{%]")
_VALUE = r"""(?:\s*=\s*(?:"[^"]*"|'[^']*'))?"""
_HREF = re.compile(
    rf"""\A(<a(?:\s+(?!href\b)[\w:-]+{_VALUE})*\s+href\s*=\s*)"""
    rf"""(["'])\{{\{{-? *(?:{"|".join(sorted(LINKS))}) *-?\}}\}}\2""",
    re.IGNORECASE,
)
"""A link to one of LINKS, which is the whole of its address."""
_META = re.compile(r"http-equiv(?!\s*=\s*[\"']?(?:content-type|x-ua-compatible)[\"'\s/>])", re.I)
"""An instruction to the mail program, such as to open another page."""
_CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
NESTED, REPEATED = 100, 400
"""Elements of the text that a style sheet is tried with."""
MAX_CLASSES = 200
"""Characters."""
MAX_TRIED = 10
"""Texts of types that a style sheet is tried with."""
_NOT_LINE_END = re.compile(r"[^\n]")


def find_faults(html: str) -> list[TemplateError]:
    """Return why a layout with its partials and colours can't be one.

    Its conditions are tried in each way, by messages that have all, nothing, or all but one.
    """
    try:
        return [*_find_unshown(html)] or _find_exposed(html)
    except TemplateError as problem:
        return [problem]


def _find_unshown(html: str) -> Iterator[TemplateError]:
    """Yield what a layout doesn't show in some way, or why it can't be rendered."""
    layout = looks.parse_layout(html, is_own=False)
    budget = Budget(MAX_RENDERED_WORK)
    words = {"words": layout_words(None)}
    found: dict[str, TemplateError] = {}
    for present in _ways():
        try:
            shown = layout.render({**words, **present}, budget=budget)
        except TemplateError as problem:
            found.setdefault(problem.code, problem)
            continue
        if not _has_text(shown, _TEXT):
            reason = "A layout has {{ content }}. Each email shows it, as a text."
            found.setdefault(_TEXT, TemplateError("required", reason))
        has_url = present["unsubscribe_url"] is not None
        if has_url and not (_has_text(shown, _UNSUBSCRIBE) or _has_link(shown, _UNSUBSCRIBE)):
            reason = "A layout has {{ unsubscribe_url }}. Each email that has one shows it."
            found.setdefault(_UNSUBSCRIBE, TemplateError("required", reason))
    yield from found.values()


def _find_exposed(html: str) -> list[TemplateError]:
    """Return where a layout may put what a message says into a request."""
    body = _body(html)
    exposed = exposure.find_exposed(
        HTML_ENVIRONMENT.from_string(body),
        sensitive=SAID | LINKS,
        example={**_ALWAYS, **_SOMETIMES},
        is_html=True,
    )
    return [
        TemplateError(exposure.CODE, _reason(each), line=line_at(body, each.index))
        for each in exposed
    ]


def _reason(exposed: exposure.Exposure) -> str:
    if exposed.name in LINKS:
        return (
            f"{exposed.name!r} may sign in whoever opens it, and must not be in any request, nor "
            f"decide about one, but be the whole of <a href>, or a text: {exposed.why}."
        )
    return (
        f"{exposed.name!r} may have a login code, and must not be in a URL or any other request, "
        f"nor decide about one: {exposed.why}."
    )


def find_costly(html: str, texts: Mapping[str, str]) -> str | None:
    """Return why the style sheet of a layout can't be inlined into texts in time, or None.

    ``texts`` have the HTML of the types that it may be used for, with their partials. Those with
    the most tags are tried in a child process, whose time is limited for each, and a text that is
    made for the style sheet: its elements are nested, and have every class.
    """
    css = inlining.extract_style_sheet(html)
    if not css.strip():
        return None
    largest = sorted(texts, key=lambda name: -texts[name].count("<"))[:MAX_TRIED]
    fragments: dict[str, str] = {"": _nested(css)}
    for name in largest:
        try:
            fragments[name] = inlining.extract_liquid(texts[name])[0]
        except TemplateError:
            continue  # It can't be sent by any layout.
    inlined, failure = inlining.dry_run([*fragments.values()], css=css)
    if failure is None:
        return None
    name = [*fragments][len(inlined)]
    where = f" The type {name} can't use it." if name else ""
    return f"The style sheet takes too long: {failure}{where}"


def _nested(css: str) -> str:
    classes = " ".join(dict.fromkeys(_CLASS.findall(css)))[:MAX_CLASSES]
    inner = f'<div class="{classes}">' * NESTED + f'<p class="{classes}">x</p>' * REPEATED
    return inner + "</div>" * NESTED


def _ways() -> Iterator[dict[str, Any]]:
    """Yield the variables of messages that have all, nothing, or all but one."""
    nothing = dict.fromkeys(_SOMETIMES)
    always = {**looks.layout_variables(Look(design=0), "Example"), **_ALWAYS}
    yield {**always, **_SOMETIMES}
    yield {**always, **_SOMETIMES, "language": _OTHER_LANGUAGE}
    yield {**always, **_SOMETIMES, **looks.brand_variables(_BRAND)}
    yield {**always, **nothing}
    yield {**always, **nothing, "unsubscribe_url": _UNSUBSCRIBE}
    for name in _SOMETIMES:
        yield {**always, **_SOMETIMES, name: None}


def _has_text(html: str, text: str) -> bool:
    """Return whether a text is shown, and not in a comment, a style sheet, or an attribute."""
    at, shown = 0, []
    for token in markup.tokenize(html):
        shown.append(html[at : token.start])
        at = token.end
    return text in "".join([*shown, html[at:]])


def _has_link(html: str, url: str) -> bool:
    return any(
        token.name == "a" and not token.is_end and url in html[token.start : token.tag_end]
        for token in markup.tokenize(html)
    )


def _body(html: str) -> str:
    """Return a layout as a part of a document, with the same lines.

    Tags whose attributes have other Liquid than the language keep them, to be refused. So does what
    a mail program would obey. Links to one of LINKS are links to a page.
    """
    pieces = check_source(html)
    blanked = inlining.replace_liquid(
        html, pieces, lambda piece: _NOT_LINE_END.sub("x", html[piece.start : piece.end])
    )
    texts: list[str] = []
    at = 0
    for token in markup.tokenize(blanked):
        tag = html[token.start : token.tag_end or token.end]
        has_liquid = _LIQUID.search(_LANGUAGE.sub("", tag)) is not None
        lines = "\n" * tag.count("\n")
        is_obeyed = _META.search(tag) is not None
        if _DOCTYPE.match(tag) or (token.name == "meta" and not (has_liquid or is_obeyed)):
            replaced = lines
        elif token.name == "a" and (link := _HREF.match(tag)):
            replaced = f"{link[1]}{link[2]}{_PAGE}{link[2]}{tag[link.end() :]}"
        elif token.name not in _FRAME:
            continue
        elif token.is_end:
            replaced = f"</div>{lines}"
        else:
            replaced = f"<div{tag[len(token.name) + 1 :]}" if has_liquid else f"<div>{lines}"
        texts += [html[at : token.start], replaced]
        at = token.tag_end or token.end
    return "".join([*texts, html[at:]])
