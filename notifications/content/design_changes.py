"""Changes of a design: checked with all that uses what is changed, and stored at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec
from pymongo.client_session import ClientSession
from pymongo.errors import DuplicateKeyError

from domain import messages
from domain.channels import Channel
from domain.mailboxes import parse_mailbox
from domain.messages import MessageError
from domain.states import BroadcastStatus
from providers import accounts, registry, senders

from ..catalog import designs, types
from ..catalog.designs import BrandRequest, Design, DesignMovedError, Kind, TextKind
from ..documents.broadcasts import BROADCASTS
from ..documents.catalog import DESIGNS, NOTIFICATION_TYPES, DesignDocument
from ..validation import (
    MAX_PROBLEMS,
    FieldProblem,
    InvalidLinkError,
    InvalidRequestError,
    ProblemCollector,
    check_image_url,
    pointer_token,
)
from . import design_uses, inlining, layout_checks, linting, looks, type_files
from .engine import TemplateError
from .partials import NAME
from .templates import (
    DEFAULT_LANGUAGE,
    LAYOUT_PART,
    STORED_LANGUAGE,
    Part,
    Parts,
)

MAX_ITEMS = 200
"""Brands, layouts, partials, and languages of translations together."""
MAX_LANGUAGES = linting.MAX_LANGUAGES
MAX_CHARACTERS = 2 * 1024 * 1024
"""Of all texts of a design, which is one document."""
MAX_INSERT_ATTEMPTS = 100
UNREAD = (
    BroadcastStatus.DRAFT,
    BroadcastStatus.AWAITING_APPROVAL,
    BroadcastStatus.SCHEDULED,
    BroadcastStatus.RUNNING,
    BroadcastStatus.PAUSED,
)
"""Statuses of broadcasts whose audience is, or may be, still to be read."""
ROUTING = ("accounts", "layout", "reply_to", "sender")
"""Fields of a brand that decide who sends its messages, who gets the answers, and what is around
them.
"""
_TEXT_PART = Part.BODY


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A brand, a layout, a partial, or the translations into a language, to store.

    ``content`` None: it is removed.

    ``replaces`` is the revision that it was made from; None: it is new.
    """

    kind: Kind
    name: str
    content: Any
    replaces: str | None
    pointer: str
    """Of the change in its request."""

    @property
    def key(self) -> str:
        """The item's name in the audit log."""
        return designs.key_of(self.kind, self.name)

    @property
    def given(self) -> Any:
        """The content as a request gives it."""
        if self.kind is not Kind.BRAND or self.content is None:
            return self.content
        return designs.fields_of(msgspec.convert(self.content, BrandRequest))


class Outcome(StrEnum):
    """What a change does."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A design after changes, not stored yet, and what each of them does."""

    before: Design
    design: Design
    outcomes: Sequence[Outcome]
    changed: Sequence[Change]
    """Those with an effect."""
    conflicts: Sequence[str]
    """The pointers of those whose item has changed since what they replace."""


class DesignConflictError(Exception):
    """Items have changed since the revisions that the changes name."""

    def __init__(self, pointers: Sequence[str]) -> None:
        super().__init__("the design has changed")
        self.pointers = tuple(pointers)


class WeakenedError(Exception):
    """A change of the routing of critical or sensitive types, by those who may not."""


def draft(changes: Sequence[Change], *, before: Design) -> Planned:
    """Return the design after changes, whatever uses it. Nothing is written.

    Raises InvalidRequestError with every problem of the items themselves.
    """
    items: dict[Kind, dict[str, Any]] = {kind: {**before.items(kind)} for kind in Kind}
    outcomes: list[Outcome] = []
    changed: list[Change] = []
    conflicts: list[str] = []
    for change in changes:
        present = before.given(change.kind, change.name)
        outcome = _outcome_of(present, change.given)
        outcomes.append(outcome)
        if outcome is Outcome.UNCHANGED:
            continue
        changed.append(change)
        stored = before.items(change.kind).get(change.name)
        was = None if stored is None else designs.revision_of(stored)
        if was != change.replaces:
            conflicts.append(change.pointer)
        if change.content is None:
            items[change.kind].pop(change.name, None)
        else:
            items[change.kind][change.name] = change.content
    number = before.number + 1
    after = Design(
        number=number,
        partials=items[Kind.PARTIAL],
        layouts=items[Kind.LAYOUT],
        brands=items[Kind.BRAND],
        translations=items[Kind.TRANSLATION],
        changed_in=_changed_in(before, changed, number),
    )
    _raise_if_any([*_find_misnamed(changes), *_find_problems(changed, before, after)])
    return Planned(
        before=before,
        design=after if changed else before,
        outcomes=outcomes,
        changed=changed,
        conflicts=conflicts,
    )


def plan(changes: Sequence[Change], *, before: Design, may_weaken: bool = True) -> Planned:
    """Return the design after changes. Nothing is written.

    Raises InvalidRequestError with every problem, DesignConflictError, and WeakenedError unless
    they may change the routing of critical and sensitive types.
    """
    planned = draft(changes, before=before)
    if planned.conflicts:
        raise DesignConflictError(planned.conflicts)
    _raise_if_any(find_broken_uses(planned))
    if not may_weaken and weakens(planned):
        raise WeakenedError
    return planned


def store(
    changes: Sequence[Change], *, created_by: str, now: datetime, may_weaken: bool = True
) -> Planned:
    """Store the design after changes, for new notifications. Raises as :func:`plan` does."""
    for _ in range(MAX_INSERT_ATTEMPTS):
        planned = plan(changes, before=designs.read_newest(), may_weaken=may_weaken)
        if not planned.changed:
            return planned
        write = partial(insert, planned, created_by=created_by, now=now)
        try:
            with DESIGNS().database.client.start_session() as session:
                session.with_transaction(write)
        except DesignMovedError:
            continue  # Ours are checked against what is there now.
        designs.invalidate()
        return planned
    raise DesignConflictError([change.pointer for change in changes])


def insert(planned: Planned, session: ClientSession, *, created_by: str, now: datetime) -> None:
    """Store a design in a transaction. Raises DesignMovedError.

    It was checked with what used the one before, so nothing else may have been stored since.
    """
    design = planned.design
    document: DesignDocument = {
        "_id": design.number,
        "partials": {name: _plain(texts) for name, texts in design.partials.items()},
        "layouts": {**design.layouts},
        "brands": {name: {**brand} for name, brand in design.brands.items()},
        "translations": {name: {**texts} for name, texts in design.translations.items()},
        "changed_in": {**design.changed_in},
        "created_at": now,
        "created_by": created_by,
    }
    designs.give_up(planned.before, session=session)
    try:
        DESIGNS().insert_one(document, session=session)
    except DuplicateKeyError:
        raise DesignMovedError from None


def _raise_if_any(problems: Sequence[FieldProblem]) -> None:
    if problems:
        raise InvalidRequestError(problems[:MAX_PROBLEMS])


def _find_misnamed(changes: Sequence[Change]) -> Iterator[FieldProblem]:
    for change in changes:
        if _has_name(change):
            continue
        if change.kind is Kind.TRANSLATION:
            reason = "Expected default, or a language such as pt or pt-BR."
            yield FieldProblem(f"{change.pointer}/name", "invalid_locale", reason)
        else:
            reason = "Must be 1 to 64 lower-case letters, digits, hyphens, and underscores."
            yield FieldProblem(f"{change.pointer}/name", "invalid_name", reason)


def _has_name(change: Change) -> bool:
    if change.kind is Kind.TRANSLATION:
        return change.name == DEFAULT_LANGUAGE or bool(STORED_LANGUAGE.fullmatch(change.name))
    return NAME.fullmatch(change.name) is not None


def _plain(texts: designs.Texts) -> dict[str, dict[str, str]]:
    return {language: {**by_kind} for language, by_kind in texts.items()}


def _changed_in(before: Design, changed: Sequence[Change], number: int) -> dict[str, int]:
    removed = {change.key for change in changed if change.content is None}
    written = {change.key: number for change in changed if change.content is not None}
    kept = {key: last for key, last in before.changed_in.items() if key not in removed}
    return kept | written


def _outcome_of(present: Any, content: Any) -> Outcome:
    if present == content:
        return Outcome.UNCHANGED
    if content is None:
        return Outcome.REMOVED
    return Outcome.CREATED if present is None else Outcome.CHANGED


def _find_problems(
    changed: Sequence[Change], before: Design, after: Design
) -> Iterator[FieldProblem]:
    """Yield what is wrong with the changed items themselves."""
    yield from _find_excess(after)
    for change in changed:
        if change.content is not None and _has_name(change):
            yield from _FINDERS[change.kind](change, after)
    layouts = {each.name for each in changed if each.kind is Kind.LAYOUT}
    for name, html in after.layouts.items():
        cause = None if name in layouts else _cause([html], changed, before, after)
        if cause is not None:
            for problem in _find_faults_of_layout(replace(cause, content=html), after):
                reason = f"The layout {name} renders it: {problem.detail}"
                yield FieldProblem(cause.pointer, problem.code, reason)


def _find_excess(after: Design) -> Iterator[FieldProblem]:
    if sum(len(after.items(kind)) for kind in Kind) > MAX_ITEMS:
        yield FieldProblem("", "too_many", f"At most {MAX_ITEMS} items together.")
    if len(after.translations) > MAX_LANGUAGES:
        yield FieldProblem("", "too_many_languages", f"At most {MAX_LANGUAGES} languages.")
    if len(msgspec.json.encode([after.items(kind) for kind in Kind])) > MAX_CHARACTERS:
        yield FieldProblem("", "too_long", "All texts together have at most 2 MB.")


def _find_faults_of_translations(change: Change, _after: Design) -> Iterator[FieldProblem]:
    yield from find_faults_of_texts(change.content, pointer=f"{change.pointer}/texts")


def find_faults_of_texts(texts: Any, *, pointer: str) -> Iterator[FieldProblem]:
    """Yield what is wrong with the texts of a language, however deep they are."""
    count = 0
    waiting: list[tuple[str, Any, int]] = [(pointer, texts, 0)]
    while waiting:
        place, here, level = waiting.pop()
        if isinstance(here, str):
            count += 1
            try:
                messages.parse(here)
            except MessageError as problem:
                yield FieldProblem(place, "invalid_message", str(problem))
        elif not isinstance(here, Mapping):
            yield FieldProblem(place, "wrong_type", "Expected a text, or texts by name.")
        elif level >= messages.MAX_LEVELS:
            reason = f"At most {messages.MAX_LEVELS} levels."
            yield FieldProblem(place, "too_deep", reason)
        else:
            for name, inner in here.items():
                below = f"{place}/{pointer_token(name)}"
                if messages.KEY.fullmatch(name):
                    waiting.append((below, inner, level + 1))
                else:
                    reason = "Must be 1 to 64 letters, digits, hyphens, and underscores."
                    yield FieldProblem(below, "invalid_name", reason)
    if count > messages.MAX_TEXTS:
        yield FieldProblem(pointer, "too_many", f"At most {messages.MAX_TEXTS:,} texts.")


def _find_faults_of_partial(change: Change, after: Design) -> Iterator[FieldProblem]:
    htmls: dict[str, str] = {}
    for language, texts in change.content.items():
        pointer = f"{change.pointer}/texts/{pointer_token(language)}"
        if language != DEFAULT_LANGUAGE and not STORED_LANGUAGE.fullmatch(language):
            reason = "Expected default, or a language such as pt or pt-BR."
            yield FieldProblem(pointer, "invalid_locale", reason)
            continue
        for kind, source in texts.items():
            part = LAYOUT_PART if kind == TextKind.HTML else _TEXT_PART
            calling = f"{{% render '{change.name}' %}}"
            # By itself for its lines, and as a template has it.
            faults = linting.lint_source(part, source, language, after)
            for fault in faults or linting.lint_source(part, calling, language, after):
                yield FieldProblem(f"{pointer}/{kind}", fault.code, fault.text)
            if part is LAYOUT_PART and not faults:
                htmls[f"{pointer}/{kind}"] = source
    yield from _dry_run(htmls, is_layout=False)


def _find_faults_of_layout(change: Change, after: Design) -> Iterator[FieldProblem]:
    pointer = f"{change.pointer}/html"
    source, faults = change.content, 0
    for fault in linting.lint_source(LAYOUT_PART, source, DEFAULT_LANGUAGE, after):
        faults += 1
        yield FieldProblem(pointer, fault.code, fault.text)
    if faults:
        return
    htmls: dict[str, None] = {}
    for language in _languages_of(source, after):
        for fault in linting.lint_source(LAYOUT_PART, source, language, after)[:1]:
            yield FieldProblem(pointer, fault.code, fault.text)
            return
        expanded = looks.expand(source, LAYOUT_PART, language, after).text
        html = looks.with_colours(expanded, None)
        htmls[html] = None
        problems = [*_dry_run({pointer: html}, is_layout=True)]
        if not problems:
            found = layout_checks.find_faults(html)
            problems = [FieldProblem(pointer, fault.code, fault.text) for fault in found]
        if problems:
            yield from problems
            return
    texts = _html_of_types(after)
    for html in htmls:
        if reason := layout_checks.find_costly(html, texts):
            yield FieldProblem(pointer, "too_complex", reason)
            return


def _html_of_types(design: Design) -> dict[str, str]:
    """Return the published HTML of each type with its partials, that of the language with most."""
    htmls: dict[str, str] = {}
    for content in type_files.read_contents(list(NOTIFICATION_TYPES().find())):
        for language, texts in content.parts.items():
            try:
                source = texts.get(LAYOUT_PART, "")
                html = looks.expand(source, LAYOUT_PART, language, design).text
            except TemplateError:
                continue  # The change of a partial breaks it, which is named at that.
            if len(html) > len(htmls.get(content.slug, "")):
                htmls[content.slug] = html
    return htmls


def _languages_of(source: str, design: Design) -> list[str]:
    """Return the languages in which a layout has other texts, the default one first."""
    names = design_uses.all_rendered([source], design)
    languages = {language for name in names for language in design.partials.get(name, {})}
    if design_uses.all_keys([source], design):
        languages |= design.translations.keys()
    return [DEFAULT_LANGUAGE, *sorted(languages - {DEFAULT_LANGUAGE})]


def _dry_run(htmls: Mapping[str, str], *, is_layout: bool) -> Iterator[FieldProblem]:
    """Inline HTML in a child process, by the pointers to it. Yield the problem of the first."""
    prepared: dict[str, str] = {}
    for pointer, source in htmls.items():
        try:
            prepared[pointer] = inlining.extract_liquid(source)[0]
        except TemplateError as problem:
            yield FieldProblem(pointer, problem.code, problem.text)
    if not prepared:
        return
    inlined, failure = inlining.dry_run([*prepared.values()], css="", is_layout=is_layout)
    if failure is not None:
        yield FieldProblem([*prepared][len(inlined)], "too_complex", failure)


def _find_faults_of_brand(change: Change, after: Design) -> Iterator[FieldProblem]:
    brand = msgspec.convert(change.content, BrandRequest)
    problems, pointer = ProblemCollector(), f"{change.pointer}/brand"
    problems.check_one_line(brand.name, f"{pointer}/name")
    if not brand.name.strip():
        problems.add(f"{pointer}/name", "blank", "Must not be blank.")
    for line in brand.footer.splitlines():
        problems.check_one_line(line, f"{pointer}/footer")
    if brand.logo is not None:
        _check_image(brand.logo.url, f"{pointer}/logo/url", problems)
        if brand.logo.dark_url is not None:
            _check_image(brand.logo.dark_url, f"{pointer}/logo/dark_url", problems)
    if brand.layout is not None and brand.layout not in after.layouts:
        problems.add(f"{pointer}/layout", "unknown_layout", "Unknown layout.")
    _check_senders(brand, pointer, problems)
    for channel, names in brand.accounts.items():
        _check_accounts(channel, names, f"{pointer}/accounts/{pointer_token(channel)}", problems)
    yield from problems.problems


def _check_senders(brand: BrandRequest, pointer: str, problems: ProblemCollector) -> None:
    for name, text in (("from", brand.sender), ("reply_to", brand.reply_to)):
        try:
            mailbox = parse_mailbox(text) if text is not None else None
        except ValueError:
            reason = "Expected one address: ada@example.com, or Ada <ada@example.com>."
            problems.add(f"{pointer}/{name}", "invalid_email", reason)
            continue
        if mailbox is not None and name == "from" and not senders.is_allowed(mailbox):
            reason = "Not the installation's sender, and none of its EMAIL_SENDERS."
            problems.add(f"{pointer}/{name}", "sender_not_allowed", reason)


def _check_accounts(
    channel: str, names: Sequence[str], pointer: str, problems: ProblemCollector
) -> None:
    known = next((each for each in Channel if each.value == channel), None)
    if known is None or not accounts.has_order(known):
        reason = "Not a channel whose providers have an order of failover."
        problems.add(pointer, "invalid_channel", reason)
        return
    for index, name in enumerate(names):
        if names.index(name) < index:
            problems.add(f"{pointer}/{index}", "duplicate", "Named twice.")
        elif not registry.can_send(name, known):
            reason = "No account by which this installation sends on the channel."
            problems.add(f"{pointer}/{index}", "unknown_account", reason)


def _check_image(url: str, pointer: str, problems: ProblemCollector) -> None:
    try:
        check_image_url(url)
    except InvalidLinkError as problem:
        problems.add(pointer, "invalid_url", str(problem))
        return
    if urlsplit(url).path.lower().endswith((".svg", ".webp")):
        reason = "Mail programs don't show this format: use PNG, JPEG, or GIF."
        problems.add(pointer, "invalid_image", reason)


def weakens(planned: Planned) -> bool:
    """Return whether changes of brands change the routing of critical or sensitive types.

    What a type itself names is a field of the type, with the same protection.
    """
    names = [
        change.name
        for change in planned.changed
        if change.kind is Kind.BRAND
        and _routing_of(change.name, planned.before) != _routing_of(change.name, planned.design)
    ]
    if not names:
        return False
    using = NOTIFICATION_TYPES().find({"brand": {"$in": names}}, {"_id": 1})
    return any(types.is_locked(document["_id"]) for document in using)


def _routing_of(name: str, design: Design) -> list[Any] | None:
    """Return the values of ROUTING, with defaults. None without such a brand."""
    if name not in design.brands:
        return None
    brand = design.brand(name)
    return [getattr(brand, each) for each in ROUTING]


def find_broken_uses(
    planned: Planned, *, pushed: Mapping[str, tuple[Mapping[str, Any], Parts]] | None = None
) -> list[FieldProblem]:
    """Return what changes break: other items of the design, and types that use them.

    ``pushed`` has the types that are stored together with the design, by their slugs: the fields to
    store, and the texts.
    """
    return [*_find_broken_uses(planned, pushed or {})] if planned.changed else []


def _find_broken_uses(
    planned: Planned, pushed: Mapping[str, tuple[Mapping[str, Any], Parts]]
) -> Iterator[FieldProblem]:
    by_name = {(change.kind, change.name): change for change in planned.changed}
    removed = {key: change for key, change in by_name.items() if change.content is None}
    for (kind, name), change in removed.items():
        users = [*design_uses.users_of(kind, name, planned.design), *_broadcasts_with(kind, name)]
        if users:
            yield FieldProblem(change.pointer, "in_use", f"Used by {', '.join(users[:5])}.")
    documents = list(NOTIFICATION_TYPES().find())
    contents = type_files.read_contents(documents)
    stored = {
        content.slug: (document, content.parts)
        for document, content in zip(documents, contents, strict=True)
    }
    for slug, (fields, parts) in {**stored, **pushed}.items():
        named = [(Kind.BRAND, fields.get("brand")), (Kind.LAYOUT, fields.get("layout"))]
        gone = [removed[kind, name] for kind, name in named if name and (kind, name) in removed]
        for change in gone:
            yield FieldProblem(change.pointer, "in_use", f"Used by the type {slug}.")
        if not gone:
            yield from _find_broken_texts(slug, fields, parts, planned)


def _find_broken_texts(
    slug: str, fields: Mapping[str, Any], parts: Parts, planned: Planned
) -> Iterator[FieldProblem]:
    """Yield why a type's texts can't be rendered any more, at one of the changes."""
    texts = [text for by_part in parts.values() for text in by_part.values()]
    cause = _cause(texts, planned.changed, planned.before, planned.design)
    if cause is None:
        return
    faults = linting.lint_parts(slug, fields, parts, design=planned.design, has_dry_run=False)
    for fault in faults[:1]:
        reason = f"The type {slug} can't use it: {fault.place}"
        yield FieldProblem(cause.pointer, "in_use", reason)


def _cause(
    texts: Iterable[str], changed: Sequence[Change], before: Design, after: Design
) -> Change | None:
    """Return the first change of a partial or a translation that texts use, None without one."""
    texts = [text for text in texts if looks.needs_design(text)]
    rendered, keys = set[str](), set[str]()
    for design in (before, after) if texts else ():
        rendered |= design_uses.all_rendered(texts, design)
        keys |= design_uses.all_keys(texts, design)
    for change in changed:
        if change.kind is Kind.PARTIAL and change.name in rendered:
            return change
        if change.kind is Kind.TRANSLATION and any(
            before.translation(key, change.name) != after.translation(key, change.name)
            for key in keys
        ):
            return change
    return None


def _broadcasts_with(kind: Kind, name: str) -> list[str]:
    """Return the broadcast that names a brand and is still to be sent to somebody."""
    if kind is not Kind.BRAND:
        return []
    found = BROADCASTS().find_one({"request.brand": name, "status": {"$in": UNREAD}}, {"_id": 1})
    return [] if found is None else [f"the broadcast {found['_id']}"]


_FINDERS: Mapping[Kind, Callable[[Change, Design], Iterator[FieldProblem]]] = {
    Kind.PARTIAL: _find_faults_of_partial,
    Kind.LAYOUT: _find_faults_of_layout,
    Kind.BRAND: _find_faults_of_brand,
    Kind.TRANSLATION: _find_faults_of_translations,
}
