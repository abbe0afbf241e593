"""What is wrong with a template before anybody uses it: every fault with its line and a reason."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from liquid import Environment
from liquid.exceptions import LiquidError
from liquid.static_analysis import Variable

from ..models.notification import SUBJECT_LENGTH
from ..types import MASK
from . import files, inlining
from .engine import HTML, TEXT, Template, TemplateProblem, line_at, line_of
from .parts import DEFAULT_LANGUAGE, STORED_LANGUAGE, Part
from .texts import clean_line
from .versions import Parts

MAX_SOURCE = 64 * 1024
"""A part has at most this many characters."""
MAX_LANGUAGES = 20
ONE_LINE = (Part.SUBJECT, Part.PUSH_TITLE)
NEEDED = (Part.SUBJECT, Part.BODY)
RECIPIENT = {"name": "Ada Lovelace", "locale": "en", "timezone": "UTC"}
"""What a template may ask about the person; the names are documented in docs/adding_a_type.md."""
_MARKUP = re.compile(r"\{\{.*?\}\}|\{%-?\s*(\w*).*?%\}", re.DOTALL)
_UNCLOSED = "expected tag end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a template is refused. ``part`` and ``language`` are None for the template as a whole."""

    code: str
    reason: str
    language: str | None = None
    part: Part | None = None
    line: int | None = None

    @property
    def text(self) -> str:
        """The reason, with the line it is about."""
        return self.reason if self.line is None else f"Line {self.line}: {self.reason}"


def check(
    *, name: str, parts: Parts, example_data: Mapping[str, Any], sensitive: frozenset[str]
) -> list[Fault]:
    """Return what is wrong with the parts of a template; nothing if they can be stored.

    Every part must parse, use no filter and no variable that there is not, and render with the
    type's example, once as it is and once with its secrets masked.
    """
    whole = _check_languages(parts)
    if whole:
        return whole
    variables = {**example_data, "recipient": RECIPIENT}
    masked = {k: MASK if k in sensitive else v for k, v in variables.items()}
    faults = list(_check_completeness(name, parts))
    for language, texts in parts.items():
        for part in Part:
            if part in texts:
                found = _check_part(part, texts[part], variables, masked)
                faults += [
                    Fault(
                        code=fault.code,
                        reason=fault.reason,
                        line=fault.line,
                        language=language,
                        part=part,
                    )
                    for fault in found
                ]
    return faults


def _check_languages(parts: Parts) -> list[Fault]:
    if not any(parts.values()):
        return [Fault(code="required", reason="Give at least one part.")]
    if len(parts) > MAX_LANGUAGES:
        return [Fault(code="too_many_languages", reason=f"At most {MAX_LANGUAGES} languages.")]
    return [
        Fault(
            code="invalid_locale",
            reason="Expected default, or a language such as pt or pt-BR.",
            language=language,
        )
        for language in parts
        if language != DEFAULT_LANGUAGE and not STORED_LANGUAGE.fullmatch(language)
    ]


def _check_completeness(name: str, parts: Parts) -> Iterator[Fault]:
    """Yield what a person of some language would not get: every message has a subject and a body.

    Whatever the language, the last resort is the template's own: it must have both.
    """
    shipped = files.everything(name)
    for part in NEEDED:
        sources = [source.get(DEFAULT_LANGUAGE, {}) for source in (parts, shipped)]
        if not any(part in texts for texts in sources):
            yield Fault(
                code="required",
                reason="A template has a subject and a body in its own language.",
                language=DEFAULT_LANGUAGE,
                part=part,
            )


def _check_part(
    part: Part, source: str, variables: Mapping[str, Any], masked: Mapping[str, Any]
) -> list[Fault]:
    if not source.strip():
        return [Fault(code="blank", reason="A part says something, or is left out.")]
    if len(source) > MAX_SOURCE:
        return [Fault(code="too_long", reason=f"A part has at most {MAX_SOURCE:,} characters.")]
    environment = HTML if part is Part.EMAIL_HTML else TEXT
    try:
        bound = environment.from_string(source)
    except LiquidError as error:
        return [_syntax_fault(error, source, environment)]
    analysis = bound.analyze(include_partials=False)
    faults = [
        Fault(
            code="unknown_filter",
            reason=f"There is no filter {name!r}.",
            line=line_at(source, spans[0].index),
        )
        for name, spans in analysis.filters.items()
        if name not in environment.filters
    ]
    faults += [
        Fault(
            code="unknown_variable",
            reason=f"The type's example data has no {str(used)!r}.",
            line=line_at(source, used.span.index),
        )
        for uses in analysis.globals.values()
        for used in dict.fromkeys(uses)
        if not _is_known(used, variables)
    ]
    if part is Part.EMAIL_HTML and (index := inlining.misplaced(source)) is not None:
        reason = "Liquid stands inside a tag: put it around the tag, or into a quoted value."
        faults.append(Fault(code="misplaced", reason=reason, line=line_at(source, index)))
    return faults or _check_output(part, source, environment, (variables, masked))


def _is_known(used: Variable, variables: Mapping[str, Any]) -> bool:
    """Return whether an example has a variable; what it is inside of a list is not looked at."""
    value: Any = variables
    for segment in used.segments:
        if not isinstance(segment, str) or not isinstance(value, Mapping):
            return True
        if segment not in value:
            # Liquid's own: the size of an object, its first and last entry.
            return value is not variables and segment in ("size", "first", "last")
        value = value[segment]
    return True


def _check_output(
    part: Part, source: str, environment: Environment, examples: tuple[Mapping[str, Any], ...]
) -> list[Fault]:
    for variables in examples:
        try:
            text = Template(source, environment=environment).render(variables)
        except TemplateProblem as problem:
            return [Fault(code=problem.code, reason=str(problem), line=problem.line)]
        if not clean_line(text):
            return [Fault(code="blank", reason="Nothing is left of it with the type's example.")]
        if part in ONE_LINE and len(clean_line(text)) > SUBJECT_LENGTH:
            reason = f"With the type's example it has over {SUBJECT_LENGTH} characters."
            return [Fault(code="too_long", reason=reason)]
    return []


def _syntax_fault(error: LiquidError, source: str, environment: Environment) -> Fault:
    reason = str(error.message).strip()
    line = line_of(error) or _search_line(reason, source, environment)
    return Fault(code="syntax", reason=f"{reason[:1].upper()}{reason[1:]}.", line=line)


def _search_line(reason: str, source: str, environment: Environment) -> int | None:
    """Return the line of a fault that was found at the end of something: Liquid does not say."""
    opened: list[int] = []
    for match in _MARKUP.finditer(source):
        tag = match[1] or ""
        if reason.startswith(_UNCLOSED):
            if tag in environment.tags and f"end{tag}" in source + reason:
                opened.append(match.start())
            elif tag.startswith("end") and opened:
                opened.pop()
            continue
        try:
            environment.from_string(match[0])
        except LiquidError as alone:
            if str(alone.message).strip() == reason:
                return line_at(source, match.start())
    return line_at(source, opened[-1]) if opened else None
