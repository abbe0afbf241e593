"""Finds every fault of a template, with line and reason, before the template is stored."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from liquid import BoundTemplate, Environment
from liquid.exceptions import LiquidError

from domain.channels import Channel
from domain.sms import Encoding, TextRules
from domain.states import Category
from domain.type_rules import EXAMPLE_RECIPIENT, is_in_example
from notifications.content.templates import LAYOUT_PART

from ..catalog import designs
from ..catalog.designs import BRAND_VARIABLE, Design
from ..catalog.texts import DEFAULT_RULES, encode_text, rules_of
from ..catalog.types import MASK
from ..models.notification import SUBJECT_LENGTH
from ..validation import FieldProblem, pointer_token
from . import exposure, inlining, looks, templates, translations
from .engine import (
    HTML_ENVIRONMENT,
    TEXT_ENVIRONMENT,
    Template,
    TemplateError,
    check_source,
    line_at,
    line_of,
)
from .limits import MAX_WORK, Budget
from .partials import Expanded
from .source import MAX_MARKUP, Kind
from .templates import DEFAULT_LANGUAGE, STORED_LANGUAGE, Part, Parts
from .text import clean_line
from .whatsapp import PLACEHOLDER

MAX_LANGUAGES = 20
MAX_TEMPLATE_CHARACTERS = 512 * 1024  # Characters of all parts in all languages
MAX_TEMPLATE_MARKUP = 2_000  # Outputs and tags of all parts in all languages
MAX_TEMPLATE_TAGS = 8_000  # HTML tags of all parts in all languages
MAX_TEMPLATE_WORK = 2 * MAX_WORK  # Units for rendering all parts with the example data, twice each
REQUIRED_PARTS = (Part.SUBJECT, Part.BODY)
_APPROVED_PART = next(
    Part(part.name)
    for channel in Channel
    if channel.spec.has_service_window
    for part in channel.spec.parts
)
"""The part that an approved template replaces outside the service window."""
_TEXT_PARTS = frozenset(
    Part(part.name) for channel in Channel if channel.pays_by_part for part in channel.spec.parts
)
"""The parts whose texts are paid for."""
_UNCLOSED = "expected tag end"
_Fragment = tuple[str, list[str]]  # HTML with placeholders for its Liquid, and the Liquid


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateFault:
    """Why a template is rejected. ``part`` and ``language`` are None for the whole template."""

    code: str
    reason: str
    language: str | None = None
    part: Part | None = None
    line: int | None = None

    @property
    def text(self) -> str:
        """The reason, after the line if known."""
        return self.reason if self.line is None else f"Line {self.line}: {self.reason}"

    @property
    def place(self) -> str:
        """The reason, after part, language, and line."""
        where = [self.part, self.language, None if self.line is None else f"line {self.line}"]
        return f"{', '.join(place for place in where if place)}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """A part with its partials, and with the translations of one language."""

    language: str
    part: Part
    expanded: Expanded
    shown_in: str
    """The language of its translations: its own, or that of a recipient who gets it."""

    @property
    def is_own(self) -> bool:
        """Whether it is as the template's own language has it."""
        return self.shown_in == self.language

    def placed(self, fault: TemplateFault) -> TemplateFault:
        """Return a fault with its place in the template."""
        reason = fault.reason if self.is_own else f"Translated into {self.shown_in}: {fault.reason}"
        at = _placed(replace(fault, reason=reason), self.expanded)
        return replace(at, language=self.language, part=self.part)


def lint_template(
    *,
    name: str,
    parts: Parts,
    example_data: Mapping[str, Any],
    sensitive: frozenset[str],
    has_digest: bool = False,
    text_rules: TextRules = DEFAULT_RULES,
    is_marketing: bool = False,
    design: Design | None = None,
    brand: str | None = None,
    has_dry_run: bool = True,
) -> list[TemplateFault]:
    """Return the faults of a template's parts. Without faults, the parts can be stored.

    ``design`` has its partials and its ``brand``; None: the present one. Without a dry run, CSS
    isn't inlined.
    """
    # Every part must parse, use only known filters and variables, and render with the type's
    # example data, once as given and once with its sensitive values masked. With a digest, once
    # for a digest and once for a single message.
    if faults := _check_languages(parts):
        return faults
    variables = _example_variables(example_data, design, brand)
    masked = _masked(variables, sensitive)
    variables |= _digest_variables(example_data, has_digest=has_digest)
    sources, misused = _expand_all(parts, design)
    faults = [*_check_completeness(name, parts), *misused]
    fragments: dict[str, _Fragment] = {}
    # Whatever the number of languages, their texts take twice the work of the template's own.
    budgets = {is_own: Budget(MAX_TEMPLATE_WORK) for is_own in (True, False)}
    if sum(_count_markup(one.expanded.text) for one in sources if one.is_own) > MAX_TEMPLATE_MARKUP:
        reason = f"All parts together have at most {MAX_TEMPLATE_MARKUP:,} outputs and tags."
        return [*faults, TemplateFault(code="too_complex", reason=reason)]
    for one in sources:
        source, part = one.expanded.text, one.part
        if not one.is_own and faults:
            break
        found: list[TemplateFault] = []
        try:
            bound = _parse(part, source)
            found = _check_names(bound, source, variables, sensitive, part)
            if part.is_html:
                # Only the structure of the first one counts: translations have no tags.
                fragments.setdefault(one.language, _extract_liquid(source))
            elif not found:
                text = _check_output(part, bound, (variables, masked), budgets[one.is_own])
                shown_in = one.shown_in
                found = _check_text(part, text, text_rules, shown_in, is_marketing=is_marketing)
        except TemplateError as problem:
            found = [_to_fault(problem), *found]
        except RecursionError:
            reason = "An expression is nested too deeply."
            found = [TemplateFault(code="too_complex", reason=reason)]
        faults += [one.placed(fault) for fault in found]
    if not faults and fragments and has_dry_run:
        faults += _check_inlined(fragments, (variables, masked), budgets[True])
    return faults


def lint_source(part: Part, source: str, language: str, design: Design) -> list[TemplateFault]:
    """Return the faults of a text by itself, whatever its variables are."""
    expanded = Expanded(source)
    try:
        expanded = looks.expand(source, part, language, design)
        bound = _parse(part, expanded.text)
        faults = [*_find_unknown_filters(bound, expanded.text)]
    except TemplateError as problem:
        faults = [_to_fault(problem)]
    except RecursionError:
        reason = "An expression is nested too deeply."
        faults = [TemplateFault(code="too_complex", reason=reason)]
    return [_placed(fault, expanded) for fault in faults]


def variables_of(part: Part, source: str, language: str, design: Design) -> frozenset[str]:
    """Return the names of the variables that a text uses. Raises TemplateError."""
    bound = _parse(part, looks.expand(source, part, language, design).text)
    return frozenset(bound.analyze(include_partials=False).globals)


def lint_parts(
    type_slug: str,
    fields: Mapping[str, Any],
    parts: Parts,
    *,
    design: Design | None = None,
    has_dry_run: bool = True,
) -> list[TemplateFault]:
    """Return the faults of a type's parts. ``fields`` are those of the type as they are stored."""
    return lint_template(
        name=type_slug,
        parts=parts,
        example_data=fields["example_data"],
        sensitive=frozenset(fields["sensitive_variables"]),
        has_digest=fields.get("digest") is not None,
        text_rules=rules_of(fields),
        is_marketing=fields["category"] == Category.MARKETING,
        design=design,
        brand=fields.get("brand"),
        has_dry_run=has_dry_run,
    )


def find_exposures(
    type_slug: str, fields: Mapping[str, Any], parts: Parts, *, design: Design | None = None
) -> list[TemplateFault]:
    """Return where parts, with the files that complete them, may put a secret into a request.

    A variable may have become sensitive after they were stored. The wording of WhatsApp's approved
    templates is checked, too. ``fields`` are those of the type as they are stored.
    """
    sensitive, example_data = frozenset(fields["sensitive_variables"]), fields["example_data"]
    if not sensitive:
        return []
    approved = fields.get("approved_templates", ())
    wordings = [*_check_wordings(approved, sensitive, example_data)]
    texts = templates.completed_texts(type_slug, parts)
    faults = lint_parts(type_slug, fields, texts, design=design) if texts else ()
    return [*wordings, *(fault for fault in faults if fault.code == exposure.CODE)]


def find_exposures_of_version(
    type_slug: str, fields: Mapping[str, Any], number: int, *, design: Design
) -> list[TemplateFault]:
    """Return where a version of a type may put a secret into a request."""
    version = templates.get_version(type_slug=type_slug, number=number)
    return find_exposures(type_slug, fields, version.parts if version else {}, design=design)


def find_unpublishable(
    type_slug: str, fields: Mapping[str, Any], number: int, *, design: Design
) -> list[TemplateFault]:
    """Return why a version can't be published now, which could be stored once.

    Its partials, its translations, and the type's example data may have changed since.
    """
    version = templates.get_version(type_slug=type_slug, number=number)
    parts = version.parts if version else {}
    faults = lint_parts(type_slug, fields, parts, design=design) if any(parts.values()) else []
    return faults or find_exposures_of_version(type_slug, fields, number, design=design)


def field_problem(fault: TemplateFault) -> FieldProblem:
    """Return the field error for a fault in a template."""
    pointer = "/parts"
    if fault.language is not None:
        pointer += f"/{pointer_token(fault.language)}"
    return FieldProblem(
        f"{pointer}/{fault.part}" if fault.part else pointer, fault.code, fault.text
    )


def _check_wordings(
    approved: Sequence[Mapping[str, Any]], sensitive: frozenset[str], example: Mapping[str, Any]
) -> Iterator[TemplateFault]:
    """Yield a fault for each approved template whose wording makes a link with a secret."""
    for template in approved:
        names = {str(n): name for n, name in enumerate(template["parameters"], 1)}
        # Meta knows no Liquid, only placeholders: other braces are text.
        pieces = PLACEHOLDER.split(template.get("body") or "")
        for at in range(0, len(pieces), 2):
            pieces[at] = pieces[at].replace("{", "(")
        for at in range(1, len(pieces), 2):
            name = names.get(pieces[at])
            pieces[at] = f"{{{{ {name if name in sensitive else 'recipient.name'} }}}}"
        bound = TEXT_ENVIRONMENT.from_string("".join(pieces))
        for found in exposure.find_exposed(
            bound, sensitive=sensitive, example=example, is_html=False
        ):
            yield TemplateFault(
                code=exposure.CODE,
                reason=f"WhatsApp template {template['name']}: {found.reason}",
                language=template["locale"],
                part=_APPROVED_PART,
            )


def _example_variables(
    example_data: Mapping[str, Any], design: Design | None, brand: str | None
) -> dict[str, Any]:
    variables: dict[str, Any] = {**example_data, "recipient": EXAMPLE_RECIPIENT}
    if brand is not None:
        found = (design or designs.current()).brand(brand)
        variables[BRAND_VARIABLE] = designs.brand_variable(found)
    return variables


def _expand_all(parts: Parts, design: Design | None) -> tuple[list[_Source], list[TemplateFault]]:
    """Return the parts with partials and translations, and what is wrong with these.

    The parts as their own language has them are the first.
    """
    own: list[_Source] = []
    others: list[_Source] = []
    faults: list[TemplateFault] = []
    for language, texts in parts.items():
        for part in [part for part in Part if part in texts]:
            try:
                if not looks.needs_design(texts[part]):
                    expanded = Expanded(texts[part])
                    one = _Source(
                        language=language, part=part, expanded=expanded, shown_in=language
                    )
                    own.append(one)
                    continue
                used = design or designs.current()
                first, *rest = _translated(texts[part], part, language, parts, used)
            except TemplateError as problem:
                faults.append(replace(_to_fault(problem), language=language, part=part))
            else:
                own.append(first)
                others += rest
    return [*own, *others], faults


def _translated(
    source: str, part: Part, language: str, parts: Parts, design: Design
) -> Iterator[_Source]:
    """Yield a part in its own language, and in each in which a recipient may get it.

    Raises TemplateError.
    """
    expanded = looks.with_partials(source, part, language, design)
    has_translations = translations.has_translations(expanded.text)
    for shown_in in dict.fromkeys([language, *(design.translations if has_translations else ())]):
        if shown_in == language or language in templates.language_chain(shown_in, parts):
            languages = looks.translation_languages(design, shown_in)
            translated = looks.translate(expanded, part, languages, design)
            yield _Source(language=language, part=part, expanded=translated, shown_in=shown_in)


def _placed(fault: TemplateFault, expanded: Expanded) -> TemplateFault:
    """Return a fault with its line in the template itself."""
    name = expanded.partial_of(fault.line)
    reason = fault.reason if name is None else f"{fault.reason} (With the partial {name!r}.)"
    return replace(fault, line=expanded.line_of(fault.line), reason=reason)


def _count_markup(source: str) -> int:
    """Return an upper bound on the outputs and tags."""
    return min(source.count("{{") + source.count("{%"), MAX_MARKUP)


def _digest_variables(example_data: Mapping[str, Any], *, has_digest: bool) -> dict[str, Any]:
    return {"digest": example_digest(example_data)} if has_digest else {}


def example_digest(example_data: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``digest`` is in the template of a digest of three messages, two of them listed.

    All have the example data.
    """
    item = {
        "id": "6543210fedcba9876543210f",
        "created_at": "2026-12-01T09:00:00+00:00",
        "subject": "Example",
        "data": dict(example_data),
    }
    return {"items": [item, item], "count": 3, "more": 1}


def _check_languages(parts: Parts) -> list[TemplateFault]:
    if not any(parts.values()):
        return [TemplateFault(code="required", reason="At least one part is required.")]
    if len(parts) > MAX_LANGUAGES:
        reason = f"At most {MAX_LANGUAGES} languages."
        return [TemplateFault(code="too_many_languages", reason=reason)]
    texts = [text for language in parts.values() for text in language.values()]
    if sum(map(len, texts)) > MAX_TEMPLATE_CHARACTERS:
        reason = f"All parts together have at most {MAX_TEMPLATE_CHARACTERS:,} characters."
        return [TemplateFault(code="too_long", reason=reason)]
    htmls = [html for language in parts.values() if (html := language.get(LAYOUT_PART))]
    if len(htmls) > 1 and sum(html.count("<") for html in htmls) > MAX_TEMPLATE_TAGS:
        reason = f"All HTML parts together have at most {MAX_TEMPLATE_TAGS:,} tags."
        return [TemplateFault(code="too_complex", reason=reason)]
    reason = "Expected default, or a language such as pt or pt-BR."
    return [
        TemplateFault(code="invalid_locale", reason=reason, language=language)
        for language in parts
        if language != DEFAULT_LANGUAGE and not STORED_LANGUAGE.fullmatch(language)
    ]


def _check_completeness(name: str, parts: Parts) -> Iterator[TemplateFault]:
    """Yield a fault if the default language, the last fallback, lacks a subject or body."""
    both = (parts, templates.shipped_texts(name))
    available = {part for texts in both for part in texts.get(DEFAULT_LANGUAGE, {})}
    reason = "A subject and a body in the default language are required."
    for part in REQUIRED_PARTS:
        if part not in available:
            yield TemplateFault(
                code="required", reason=reason, language=DEFAULT_LANGUAGE, part=part
            )


def _parse(part: Part, source: str) -> BoundTemplate:
    if not source.strip():
        raise TemplateError("blank", "Must not be blank.")
    check_source(source)
    try:
        return part.environment.from_string(source)
    except LiquidError as error:
        raise _syntax_error(error, source, part.environment) from error


def _check_names(
    bound: BoundTemplate,
    source: str,
    variables: Mapping[str, Any],
    sensitive: frozenset[str],
    part: Part,
) -> list[TemplateFault]:
    analysis = bound.analyze(include_partials=False)
    exposed = (
        exposure.find_exposed(bound, sensitive=sensitive, example=variables, is_html=part.is_html)
        if sensitive
        else ()
    )
    faults = [*_find_unknown_filters(bound, source)]
    faults += [
        TemplateFault(
            code=exposure.CODE, reason=exposed_at.reason, line=line_at(source, exposed_at.index)
        )
        for exposed_at in exposed
    ]
    return faults + [
        TemplateFault(
            code="unknown_variable",
            reason=f"The type's example data has no {str(used)!r}.",
            line=line_at(source, used.span.index),
        )
        for uses in analysis.globals.values()
        for used in dict.fromkeys(uses)
        if not is_in_example(used, variables)
    ]


def _find_unknown_filters(bound: BoundTemplate, source: str) -> Iterator[TemplateFault]:
    for name, spans in bound.analyze(include_partials=False).filters.items():
        if name not in bound.env.filters:
            yield TemplateFault(
                code="unknown_filter",
                reason=f"Unknown filter {name!r}.",
                line=line_at(source, spans[0].index),
            )


def _extract_liquid(source: str) -> _Fragment:
    fragment = inlining.extract_liquid(source)
    if (index := inlining.find_misplaced_liquid(source)) is not None:
        reason = "Liquid inside a tag: move it around the tag or into a quoted value."
        raise TemplateError("misplaced", reason, line=line_at(source, index))
    if lost := inlining.find_lost(source):
        reason, index = lost
        raise TemplateError("misplaced", reason, line=line_at(source, index))
    return fragment


def _check_inlined(
    fragments: Mapping[str, _Fragment], examples: tuple[Mapping[str, Any], ...], budget: Budget
) -> Iterator[TemplateFault]:
    layout = templates.read_shipped(templates.LAYOUT, templates.LAYOUT_PART, DEFAULT_LANGUAGE) or ""
    inlined, failure = inlining.dry_run(
        [html for html, _ in fragments.values()], css=inlining.extract_style_sheet(layout)
    )
    for (language, (_, liquid)), html in zip(fragments.items(), inlined, strict=False):
        try:
            source = inlining.restore_liquid(html, liquid)
            bound = HTML_ENVIRONMENT.from_string(source)
            _check_output(LAYOUT_PART, bound, examples, budget)
        except TemplateError as problem:
            fault = _to_fault(problem)
        except LiquidError as error:
            fault = _to_fault(_syntax_error(error, source, HTML_ENVIRONMENT))
        else:
            continue
        yield replace(fault, language=language, part=LAYOUT_PART)
    if failure is not None:
        language = list(fragments)[len(inlined)]
        yield TemplateFault(code="too_complex", reason=failure, language=language, part=LAYOUT_PART)


def _check_output(
    part: Part, bound: BoundTemplate, examples: tuple[Mapping[str, Any], ...], budget: Budget
) -> str:
    """Return the first output. Raise TemplateError if there is none, or it's blank or too long."""
    template = Template.from_bound(bound)
    texts = [template.render(variables, budget=budget) for variables in examples]
    for text in texts:
        if not clean_line(text):
            raise TemplateError("blank", "Blank when rendered with the example data.")
        if part.has_one_line and len(clean_line(text)) > SUBJECT_LENGTH:
            reason = f"More than {SUBJECT_LENGTH} characters when rendered with the example data."
            raise TemplateError("too_long", reason)
    return texts[0].strip()


def _check_text(
    part: Part, text: str, rules: TextRules, language: str, *, is_marketing: bool
) -> list[TemplateFault]:
    """Return what is wrong with a text message that was rendered with the example data."""
    if part not in _TEXT_PARTS:
        return []
    encoded, faults = encode_text(text), []
    if encoded.encoding is Encoding.UCS_2 and not rules.allow_unicode:
        reason = f"Not in GSM-7, and the type forbids Unicode: {' '.join(encoded.forcing[:10])}"
        faults.append(TemplateFault(code="unicode", reason=reason))
    elif problem := rules.problem(encoded):
        faults.append(TemplateFault(code="too_long", reason=f"With the example data: {problem}"))
    own = None if language == DEFAULT_LANGUAGE else language
    sentence = templates.missing_opt_out(text, locales=[own]) if is_marketing else None
    if sentence is not None:
        reason = f"A marketing SMS says how to opt out: {sentence}"
        faults.append(TemplateFault(code="opt_out_missing", reason=reason))
    return faults


def _masked(value: Any, sensitive: frozenset[str]) -> Any:
    """Return data with a mask for each sensitive variable, at any depth."""
    if isinstance(value, Mapping):
        return {k: MASK if k in sensitive else _masked(v, sensitive) for k, v in value.items()}
    if isinstance(value, list):
        return [_masked(item, sensitive) for item in value]
    return value


def _to_fault(problem: TemplateError) -> TemplateFault:
    return TemplateFault(code=problem.code, reason=str(problem), line=problem.line)


def _syntax_error(error: LiquidError, source: str, environment: Environment) -> TemplateError:
    reason = str(error.message).strip()
    line = line_of(error) or _search_line(reason, source, environment)
    return TemplateError("syntax", f"{reason[:1].upper()}{reason[1:]}.", line=line)


def _search_line(reason: str, source: str, environment: Environment) -> int | None:
    opened: list[int] = []
    for piece in check_source(source):
        if reason.startswith(_UNCLOSED):
            if piece.name in environment.tags and f"end{piece.name}" in source + reason:
                opened.append(piece.start)
            elif piece.name.startswith("end") and opened:
                opened.pop()
            continue
        if piece.kind is Kind.HIDDEN or piece.name in ("raw", "endraw"):
            continue
        try:
            environment.from_string(source[piece.start : piece.end])
        except LiquidError as fragment_error:
            if str(fragment_error.message).strip() == reason:
                return line_at(source, piece.start)
    return line_at(source, opened[-1]) if opened else None
