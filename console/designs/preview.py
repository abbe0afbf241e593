"""Live preview: a message of a type with its example data, as a changed item would make it.

It is rendered by what sends messages, from a design that isn't stored. The change is checked first,
by what stores it.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from domain.colours import MIN_CONTRAST, READ_ON, contrast
from domain.content import Look
from notifications.catalog import designs
from notifications.catalog.designs import Colours, Design, Kind, TextKind
from notifications.content import design_uses, linting, templates
from notifications.content.engine import TemplateError
from notifications.content.templates import (
    DEFAULT_LANGUAGE,
    LAYOUT_PART,
    SHIPPED_VERSION,
    Part,
    Parts,
)
from notifications.documents.catalog import NotificationTypeDocument
from providers import senders
from providers.contract import Message

from ..types import preview as template_preview
from ..widgets.panels import framed
from .fields import BRAND

SCHEMES = ("light", "dark")
LARGE_CONTRAST = 3.0
"""What WCAG asks of large text."""
UNNAMED_LANGUAGE = "und"
"""The language of new translations, until they have one."""
OF_TYPE, WITHOUT = "", "-"
"""Choices of a brand: that of the type, and none."""
_SCHEME = re.compile(r"\(\s*prefers-color-scheme\s*:\s*(light|dark)\s*\)", re.IGNORECASE)
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_SUPPLIED = frozenset({"recipient", designs.BRAND_VARIABLE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A previewed email, and where it can't be made why not."""

    sender: str = ""
    subject: str = ""
    text: str = ""
    html: Mapping[str, str] | None = None
    """By scheme: a mail program in light and in dark mode."""
    problem: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """How well a colour of a brand is read on another one."""

    scheme: str
    what: str
    colour: str
    ground: str
    ratio: float

    @property
    def verdict(self) -> tuple[str, str]:
        """Label and color of what the ratio is worth."""
        if self.ratio >= MIN_CONTRAST:
            return "Good", "success"
        return ("Large text only", "warning") if self.ratio >= LARGE_CONTRAST else ("Low", "danger")


_READ_AS = {
    ("text", "surface"): "Text on the card",
    ("muted", "surface"): "Quiet text on the card",
    ("muted", "background"): "Name and footer on the background",
    ("accent", "surface"): "Links on the card",
    ("on_accent", "accent"): "Label on a button",
}


def show(
    document: NotificationTypeDocument,
    *,
    design: Design,
    kind: Kind,
    name: str,
    language: str = DEFAULT_LANGUAGE,
    brand: str = OF_TYPE,
) -> Shown:
    """Return a type's email with an item of a design."""
    of_type = document.get("brand")
    # An earlier design may be from before the type's brand.
    by_choice = {OF_TYPE: of_type if of_type in design.brands else None, WITHOUT: None}
    own, layout = by_choice.get(brand, brand), document.get("layout")
    if kind is Kind.BRAND:
        own = name
    elif kind is Kind.LAYOUT:
        layout = name
    note = ""
    try:
        look = designs.look_of(design=design, brand=own, layout=layout)
        with _version(document, design, kind, name) as (version, is_alone):
            message = _mail(document, version, language, look)
        if is_alone:
            note = f"{document['name']} doesn't render it. It is shown by itself."
        elif kind is Kind.TRANSLATION and name not in _translated(document, design):
            note = f"{document['name']} shows none of its texts."
    except (TemplateError, designs.UnknownBrandError) as problem:
        return Shown(problem=str(problem) or "Unknown brand.")
    return Shown(
        sender=str(message.sender or senders.own_sender()),
        subject=message.subject or "",
        text=message.text,
        html={scheme: in_scheme(framed(message.html or ""), scheme) for scheme in SCHEMES},
        note=note,
    )


def in_scheme(html: str, scheme: str) -> str:
    """Return an email as a mail program shows it in light or in dark mode, whatever the browser's.

    Its conditions on the mode are replaced by ones that always or never hold.
    """
    shown = _SCHEME.sub(
        lambda found: "(min-width: 0)" if found[1].lower() == scheme else "(max-width: 0)", html
    )
    return f"{shown}<style>:root {{ color-scheme: only {scheme} !important; }}</style>"


def contrasts(values: Mapping[str, str]) -> list[Contrast]:
    """Return the contrasts of a brand's colours, without those of which one isn't a colour."""
    found = []
    for scheme in Colours.__struct_fields__:
        for colour, ground in READ_ON:
            one, other = (values.get(f"{BRAND}/colours/{scheme}/{c}", "") for c in (colour, ground))
            if _COLOUR.fullmatch(one) and _COLOUR.fullmatch(other):
                what = _READ_AS[colour, ground]
                found.append(
                    Contrast(
                        scheme=scheme,
                        what=what,
                        colour=one,
                        ground=other,
                        ratio=contrast(one, other),
                    )
                )
    return found


def languages(
    document: NotificationTypeDocument, design: Design, kind: Kind, name: str, *, requested: str
) -> list[template_preview.Language]:
    """Return the languages to choose from: those of the type, and of the item."""
    number = document.get("template_version") or SHIPPED_VERSION
    version = templates.get_version(type_slug=document["_id"], number=number)
    found = template_preview.languages(document, version, requested=requested)
    known = {each.code for each in found}
    own = {Kind.PARTIAL: [*design.partials.get(name, ())], Kind.TRANSLATION: [name]}.get(kind, [])
    codes = [*(each.code for each in found), *(code for code in own if code not in known)]
    chosen = requested if requested in codes else DEFAULT_LANGUAGE
    return [
        template_preview.Language(
            code=code,
            name="New language"
            if code == UNNAMED_LANGUAGE
            else template_preview.language_name(code),
            is_chosen=code == chosen,
        )
        for code in codes
    ]


def _mail(document: NotificationTypeDocument, version: int, language: str, look: Look) -> Message:
    messages = template_preview.example_messages(document, version, language, look=look)
    return next(message for message in messages.values() if message.html is not None)


@contextmanager
def _version(
    document: NotificationTypeDocument, design: Design, kind: Kind, name: str
) -> Iterator[tuple[int, bool]]:
    """Yield the version to show, and whether it has nothing but the partial."""
    slug, number = document["_id"], document.get("template_version") or SHIPPED_VERSION
    if kind is not Kind.PARTIAL or name in _rendered(slug, number, design):
        yield number, False
        return
    with templates.trying(slug, _alone(document, design, name)) as version:
        yield version, True


def _rendered(slug: str, number: int, design: Design) -> set[str]:
    return design_uses.all_rendered(_texts_of(slug, number), design)


def _translated(document: NotificationTypeDocument, design: Design) -> list[str]:
    number = document.get("template_version") or SHIPPED_VERSION
    return design_uses.all_languages(_texts_of(document["_id"], number), design)


def _texts_of(slug: str, number: int) -> list[str]:
    version = templates.get_version(type_slug=slug, number=number)
    by_part = version.parts.values() if version else ()
    return [text for texts in by_part for text in texts.values()]


def _alone(document: NotificationTypeDocument, design: Design, name: str) -> Parts:
    """Return a template that only renders a partial, in each of its languages.

    A variable that the type hasn't is an argument, with its name as the text. Raises TemplateError.
    """
    texts: dict[str, dict[str, str]] = {}
    for language, by_kind in design.partials[name].items():
        parts = {Part.SUBJECT.value: f"The partial {name}", Part.BODY.value: f"The partial {name}"}
        for text_kind, source in by_kind.items():
            part = LAYOUT_PART if text_kind == TextKind.HTML else Part.BODY
            used = linting.variables_of(part, source, language, design)
            missing = sorted(used - _SUPPLIED - document["example_data"].keys())
            arguments = "".join(f", {variable}: '{variable}'" for variable in missing)
            parts[part.value] = f"{{% render '{name}'{arguments} %}}"
        texts[language] = parts
    return texts


def json_of(shown: Shown) -> dict[str, Any]:
    """Return a preview as the page's script takes it."""
    return {
        "sender": shown.sender,
        "subject": shown.subject,
        "text": shown.text,
        "html": shown.html,
        "problem": shown.problem,
        "note": shown.note,
    }
