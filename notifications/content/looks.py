"""What a message looks like by its design: templates with their partials, layouts, and brands."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from django.conf import settings
from markupsafe import escape

from domain.channels import Channel
from domain.content import Look
from domain.languages import is_right_to_left
from domain.mailboxes import Mailbox, parse_mailbox
from domain.messages import unknown_reason
from notifyproject import lockstep

from ..catalog import designs
from ..catalog.designs import (
    BRAND_VARIABLE,
    BrandRequest,
    Design,
    Logo,
    TextKind,
    UnknownDesignError,
)
from . import inlining, partials, templates, translations
from .direction import turn_round
from .engine import (
    HTML_ENVIRONMENT,
    LAYOUT_ENVIRONMENT,
    RAW_HTML_FILTER,
    Template,
    TemplateError,
    escape_of,
)
from .partials import Expanded
from .templates import DEFAULT_LANGUAGE, MAX_CACHED_TEMPLATES, SHIPPED_VERSION, Located, Part
from .translations import Translation

MAX_CACHED_LAYOUTS = 256
_STYLE = re.compile(r"(<style[^>]*>)(.*?)(</style>)", re.DOTALL)
_COLOUR = re.compile(r"\{\{-?\s*brand\.colours\.(light|dark)\.(\w+)\s*-?\}\}", re.ASCII)
_MADE = re.compile(r"\{\{-?\s*(content|styles)\s*-?\}\}")
"""Outputs of a layout that are HTML already."""
_PICTURE = (
    '<img class="{kind}" src="{url}" alt="{name}" width="{logo.width}" '
    'style="display: block; height: auto; border: 0;">'
)
_DARK_PICTURE = (
    '<img class="logo-dark" src="{url}" alt="" width="{logo.width}" '
    'style="display: none; mso-hide: all; height: auto; border: 0;">'
)
_LIGHT = """
body, .page {{ background-color: {background}; }}
.preheader {{ color: {background}; }}
.card {{ background-color: {surface}; color: {text}; }}
h1, h2, .facts .value, .said {{ color: {text}; }}
.brand, .footer, .footer a, .quiet, .facts .label {{ color: {muted}; }}
a {{ color: {accent}; }}
.action td {{ background-color: {accent}; }}
.button {{ border-color: {accent}; color: {on_accent}; }}
"""
_DARK = """
@media (prefers-color-scheme: dark) {{
  body, .page {{ background-color: {background} !important; }}
  .card {{ background-color: {surface} !important; color: {text} !important; }}
  .card p, .card li, .said, h1, h2, .facts .value {{ color: {text} !important; }}
  .card .quiet, .facts .label, .brand, .footer, .footer a {{ color: {muted} !important; }}
  .card a {{ color: {accent} !important; }}
  .action td {{ background-color: {accent} !important; }}
  .card .button {{ border-color: {accent} !important; color: {on_accent} !important; }}
  .logo-light {{ display: none !important; }}
  .logo-dark {{ display: block !important; }}
}}
[data-ogsc] .card {{ background-color: {surface} !important; color: {text} !important; }}
[data-ogsc] .card p, [data-ogsc] .card li {{ color: {text} !important; }}
[data-ogsc] h1, [data-ogsc] h2, [data-ogsc] .facts .value {{ color: {text} !important; }}
[data-ogsb] .action td {{ background-color: {accent} !important; }}
[data-ogsc] .card .button {{ color: {on_accent} !important; }}
[data-ogsc] .logo-light {{ display: none !important; }}
[data-ogsc] .logo-dark {{ display: block !important; }}
"""
"""Rules of a brand, after those of the built-in layout."""


def find_template(
    name: str, version: int, part: Part, locale: str | None, *, look: Look | None
) -> Template | None:
    """Return a part's parsed template, with partials and translations of its message's look.

    None if there is no such part. Raises TemplateError.
    """
    if look is None:
        return templates.find_template(name, version, part, locale)
    located = templates.locate(name, version, part, locale)
    if located is None:
        return None
    found = _find_untranslated(located, part, look)
    if found is None:
        languages = translation_languages(design_of(look), locale)
        found = _find_translated(located, part, look, languages)
    return found


def language_of(name: str, version: int, locale: str | None, *, look: Look | None) -> str | None:
    """Return the language of a message: that of its translations, or in which its body is found.

    None for the template's own, or without one.
    """
    if look is not None and is_designed(name, version):
        try:
            located = templates.locate(name, version, Part.BODY, locale)
            if located is not None and _find_untranslated(located, Part.BODY, look) is None:
                nearest = translation_languages(design_of(look), locale)[0]
                if nearest != DEFAULT_LANGUAGE:
                    return nearest
        except TemplateError:
            return None
    return templates.language_of(name, version, locale)


@lru_cache(maxsize=templates.MAX_CACHED_VERSIONS)
def is_designed(name: str, version: int) -> bool:
    """Return whether a stored version has partials or translations. Shipped files don't."""
    if version == SHIPPED_VERSION:
        return False
    texts = templates.parts_of(name, version).values()
    return any(needs_design(text) for by_part in texts for text in by_part.values())


def needs_design(source: str) -> bool:
    """Return whether a source may have partials or translations."""
    return partials.has_partials(source) or translations.has_translations(source)


def find_look(
    *,
    name: str | None,
    version: int,
    brand: str | None,
    layout: str | None,
    accepted: Look | None = None,
    pinned: int | None = None,
) -> Look | None:
    """Return the look that a message with a template, a brand, and a layout has now.

    None if it has none of them, no partials, and no translations, which then reads nothing.
    ``accepted`` is the look of the messages in whose place it is sent: their brand may be removed
    by now. ``pinned`` is the number of a design that was approved, which is used whatever has
    changed since. Raises UnknownBrandError.
    """
    is_dressed = brand is not None or layout is not None
    if not is_dressed and not (name and is_designed(name, version)):
        return None
    design = designs.current() if pinned is None else designs.numbered(pinned)
    if accepted is not None and brand is not None and brand not in design.brands:
        design = designs.numbered(accepted.design)
    return designs.look_of(design=design, brand=brand, layout=layout)


def expand(source: str, part: Part, language: str, design: Design) -> Expanded:
    """Return a part with its partials and translations, in its language. Raises TemplateError."""
    expanded = with_partials(source, part, language, design)
    return translate(expanded, part, translation_languages(design, language), design)


def with_partials(source: str, part: Part, language: str, design: Design) -> Expanded:
    """Return a part with its partials, in its language. Raises TemplateError."""
    kind = TextKind.HTML if part.is_html else TextKind.TEXT
    return partials.expand(source, lambda name: find_partial(design, name, kind, language))


def translate(expanded: Expanded, part: Part, languages: Sequence[str], design: Design) -> Expanded:
    """Return a part with its translations, each in the first of these languages that has it.

    Raises TemplateError.
    """
    return translations.expand(
        expanded,
        lambda key: _find_translation(design, key, languages),
        escape=escape_of(part.environment),
    )


def translation_languages(design: Design, locale: str | None) -> tuple[str, ...]:
    """Return the languages in which a text for a locale is searched, the nearest first."""
    own = None if locale == DEFAULT_LANGUAGE else locale
    return templates.language_chain(own, design.translations)


def _find_translation(design: Design, key: str, languages: Sequence[str]) -> Translation:
    for language in languages:
        if (text := design.translation(key, language)) is not None:
            is_own = language == DEFAULT_LANGUAGE
            return Translation(text, settings.LANGUAGE_CODE if is_own else language)
    own = design.translations.get(DEFAULT_LANGUAGE, {})
    raise TemplateError(translations.UNKNOWN, unknown_reason(key, own))


def find_partial(design: Design, name: str, kind: TextKind, language: str | None) -> str | None:
    """Return a partial's text in the nearest language that has one of the kind, or None."""
    texts = design.partials.get(name, {})
    locale = None if language == DEFAULT_LANGUAGE else language
    chain = templates.language_chain(locale, [code for code in texts if kind in texts[code]])
    return next((texts[code][kind] for code in chain if kind in texts.get(code, {})), None)


def design_of(look: Look) -> Design:
    """Return the design of a look. Raises TemplateError."""
    try:
        return designs.numbered(look.design)
    except UnknownDesignError:
        raise TemplateError("unknown_design", "The design isn't stored.") from None


def brand_of(look: Look | None) -> BrandRequest | None:
    """Return the brand of a look, None without one. Raises TemplateError."""
    if look is None or look.brand is None:
        return None
    return _brand(look)


def accounts_of(look: Look | None, channel: Channel) -> Sequence[str]:
    """Return the accounts that send a brand's messages on a channel. Raises TemplateError.

    Without any, the channel's providers do.
    """
    brand = brand_of(look)
    return () if brand is None else brand.accounts.get(channel.value, ())


def sender_of(look: Look | None) -> Mailbox | None:
    """Return the sender of a brand's emails. None: the installation's. Raises TemplateError."""
    brand = brand_of(look)
    return parse_mailbox(brand.sender) if brand is not None and brand.sender else None


def variables_of(look: Look | None) -> Mapping[str, Any]:
    """Return the variables that templates have of a look. Raises TemplateError."""
    brand = brand_of(look)
    return {} if brand is None else {BRAND_VARIABLE: designs.brand_variable(brand)}


@lru_cache(maxsize=MAX_CACHED_LAYOUTS)
def find_layout(look: Look, locale: str | None, *, is_turned: bool = False) -> Template:
    """Return the parsed layout of a look. Raises TemplateError."""
    lockstep.rest()
    return parse_layout(
        layout_source(look, locale, is_turned=is_turned), is_own=look.layout is None
    )


def parse_layout(source: str, *, is_own: bool) -> Template:
    """Return a parsed layout, the service's own or one of a design. Raises TemplateError."""
    if not is_own:
        # Its other variables are texts, which it can't insert as HTML: it was stored without
        # the filter.
        source = _MADE.sub(rf"{{{{ \1 | {RAW_HTML_FILTER} }}}}", source)
    return Template(inlining.inline_layout(source), environment=LAYOUT_ENVIRONMENT)


def layout_source(look: Look, locale: str | None, *, is_turned: bool) -> str:
    """Return the HTML of a layout, with its partials and its brand's colours."""
    design, brand = design_of(look), brand_of(look)
    if look.layout is None:
        source = templates.layout_source(locale)
        source = source if brand is None else _with_palettes(source, brand)
    else:
        html = design.layouts[look.layout]
        source = with_colours(
            expand(html, templates.LAYOUT_PART, locale or DEFAULT_LANGUAGE, design).text, brand
        )
    return turn_round(source) if is_turned else source


def with_colours(source: str, brand: BrandRequest | None) -> str:
    """Return a layout with the colours of a brand in its style sheets.

    They are inlined before any variable has a value. Without a brand, the built-in ones are used.
    """
    colours = (brand or BrandRequest(name="")).colours

    def colour(found: re.Match[str]) -> str:
        palette = colours.light if found[1] == "light" else colours.dark
        return getattr(palette, found[2], found[0])

    return _STYLE.sub(lambda style: style[1] + _COLOUR.sub(colour, style[2]) + style[3], source)


def opening_tag(element: str, look: Look | None) -> str:
    """Return an element's opening tag with the layout's style for it."""
    if look is None:
        return templates.opening_tag(element)
    return inlining.opening_tag(element, css=_style_sheet(look, is_turned=False))


def layout_variables(look: Look | None, sender: str) -> Mapping[str, Any]:
    """Return what a layout shows of the brand, or of the sender without one."""
    if look is None:
        return {"sender": sender}
    return brand_variables(brand_of(look) or BrandRequest(name=sender))


def brand_variables(brand: BrandRequest) -> Mapping[str, Any]:
    """Return what a layout shows of a brand."""
    return {
        BRAND_VARIABLE: designs.brand_variable(brand),
        "sender": brand.name,
        "logo": _pictures(brand.logo, brand.name) if brand.logo else None,
        "footer": "<br>".join(str(escape(line)) for line in brand.footer.splitlines()) or None,
    }


def _pictures(logo: Logo, name: str) -> str:
    """Return the HTML of a logo, and of the one for dark mode, which is hidden until then."""
    if logo.dark_url is None:
        return _PICTURE.format(kind="logo", url=escape(logo.url), name=escape(name), logo=logo)
    shown = _PICTURE.format(kind="logo-light", url=escape(logo.url), name=escape(name), logo=logo)
    return shown + _DARK_PICTURE.format(url=escape(logo.dark_url), logo=logo)


def clear() -> None:
    """Forget all that was read and parsed."""
    designs.clear()
    for cached in (
        is_designed,
        find_layout,
        _find_untranslated,
        _find_translated,
        _style_sheet,
        _brand,
    ):
        cached.cache_clear()


@lru_cache(maxsize=MAX_CACHED_LAYOUTS)
def _brand(look: Look) -> BrandRequest:
    design = design_of(look)
    try:
        return design.brand(look.brand or "")
    except (KeyError, msgspec.ValidationError):
        raise TemplateError("unknown_design", "The design has no such brand.") from None


@lru_cache(maxsize=MAX_CACHED_TEMPLATES)
def _find_untranslated(located: Located, part: Part, look: Look) -> Template | None:
    """Return the template of a text without translations, None for one that has any."""
    lockstep.rest()
    source = with_partials(located.text, part, located.language, design_of(look)).text
    if translations.has_translations(source):
        return None
    return _parse(source, part, look, is_turned=located.is_turned)


@lru_cache(maxsize=MAX_CACHED_TEMPLATES)
def _find_translated(
    located: Located, part: Part, look: Look, languages: tuple[str, ...]
) -> Template:
    """Return the template of a text with translations, searched in these languages.

    They are those of the recipient's locale, not of the text: most such texts are in none.
    """
    lockstep.rest()
    design = design_of(look)
    expanded = with_partials(located.text, part, located.language, design)
    source = translate(expanded, part, languages, design).text
    nearest = languages[0]
    is_turned = located.is_turned if nearest == DEFAULT_LANGUAGE else is_right_to_left(nearest)
    return _parse(source, part, look, is_turned=is_turned)


def _parse(source: str, part: Part, look: Look, *, is_turned: bool) -> Template:
    if not part.is_html:
        return Template(source, environment=part.environment)
    css = _style_sheet(look, is_turned=is_turned)
    return Template(inlining.inline_fragment(source, css=css), environment=HTML_ENVIRONMENT)


@lru_cache(maxsize=MAX_CACHED_LAYOUTS)
def _style_sheet(look: Look, *, is_turned: bool) -> str:
    return inlining.extract_style_sheet(layout_source(look, None, is_turned=is_turned))


def _with_palettes(source: str, brand: BrandRequest) -> str:
    """Return the built-in layout with a brand's rules at the end of its two style sheets."""
    light, dark = (
        rules.format(**{name: getattr(palette, name) for name in palette.__struct_fields__})
        for rules, palette in ((_LIGHT, brand.colours.light), (_DARK, brand.colours.dark))
    )
    first, rest = source.split("</style>", 1)
    return f"{first}{light}</style>{rest.replace('</style>', f'{dark}</style>', 1)}"
