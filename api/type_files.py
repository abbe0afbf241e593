"""Types with their texts, what they use, and limits: what the command ``notify`` has as files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any

import msgspec
from django.contrib.admin.models import ADDITION, CHANGE
from msgspec import Meta

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.time import utc_now
from domain.type_rules import Finding, Rule
from notifications.catalog import designs, limits, types
from notifications.catalog.definitions import TypeRequest
from notifications.catalog.limits import MAX_LIMITS, LimitRequest
from notifications.content import design_changes, limit_changes, pushes, type_files, type_lint
from notifications.content.design_changes import Outcome
from notifications.content.limit_changes import LimitChange, PlannedLimit
from notifications.content.pushes import Push, PushConflictError
from notifications.content.type_files import Change, NewContent, TypeContent, TypeOutcome
from notifications.models import Limit, NotificationType
from notifications.models.catalog import NOTE_LENGTH
from notifications.validation import ProblemCollector
from notifyproject.platform import audit
from notifyproject.platform.audit import Unaudited

from . import design
from .design import FLAGS, DesignChanges, DesignChangesView, Replaces
from .http import paging
from .http.body import MAX_BYTES_BULK, MAX_DEPTH, check_values, convert, decode, read_body
from .http.field_hints import HintBudget
from .http.fields import EXAMPLE_TIME, TypeSlug
from .http.paging import PageView
from .http.problems import INSUFFICIENT_SCOPE, REVISION_CONFLICT, VERSION_CONFLICT, ApiError
from .http.rendering import Response
from .http.requests import ClientRequest
from .openapi.operations import operation
from .types.schemas import EXAMPLE_PARTS, PartsRequest, given_parts

LIST = "type_files"
LINT_PAGE = "docs/reference/lint.md"
MAX_TYPES = 500
OUTER_LEVELS = 3  # Of the body around a definition
EXAMPLE_REVISION = "0a62d1f2f8e85c1b9a3d44f1c7e0b6a5"
EXAMPLE_DEFINITION = {
    "name": "Payment confirmed",
    "category": "transactional",
    "channels": ["email"],
    "example_data": {"video_title": "Sunrise", "amount": "49.90"},
}
EXAMPLE_FILE = {
    "slug": "payment_confirmed",
    "definition": EXAMPLE_DEFINITION,
    "parts": EXAMPLE_PARTS,
}
EXAMPLE_LIMIT = {"categories": ["marketing"], "max": 3, "period_seconds": 604_800}
RULES = frozenset(Rule)
Slug = Annotated[str, Meta(min_length=1, max_length=64, examples=["payment_confirmed"])]
Revision = Annotated[str, Meta(min_length=32, max_length=32, examples=[EXAMPLE_REVISION])]


class EmergencyChangeView(msgspec.Struct, kw_only=True, frozen=True):
    """What staff changed of a type that is managed by code."""

    reason: Annotated[str, Meta(examples=["The price in the subject was wrong."])]
    by: Annotated[str, Meta(examples=["staff:ana"])]
    at: Annotated[datetime, Meta(examples=[EXAMPLE_TIME])]


class TypeFileView(msgspec.Struct, kw_only=True, frozen=True):
    """A type with the texts of its published version."""

    slug: TypeSlug
    revision: Revision
    """Differs once the definition or a published text does."""
    version: Annotated[int, Meta(examples=[0])]
    """The published template version; 0 is the built-in one."""
    definition: Annotated[dict[str, Any], Meta(examples=[EXAMPLE_DEFINITION])]
    """The fields of `PUT /types/{slug}` that don't have their default."""
    parts: Annotated[dict[str, dict[str, str]], Meta(examples=[EXAMPLE_PARTS])]
    emergency_changes: Annotated[list[EmergencyChangeView], Meta(examples=[[]])] = []
    """What staff changed since the last push, while the type was managed by code."""


class LimitFileView(msgspec.Struct, kw_only=True, frozen=True):
    """A limit for recipients."""

    name: Annotated[str, Meta(examples=["weekly_marketing"])]
    revision: Revision
    """Differs once the limit does."""
    limit: Annotated[dict[str, Any], Meta(examples=[EXAMPLE_LIMIT])]
    """The fields of `PUT /limits/{name}` that don't have their default."""


class TypeFileList(PageView[TypeFileView], kw_only=True, frozen=True):
    """A page of types with their texts, by slug."""

    limits: list[LimitFileView] = msgspec.field(default_factory=list)
    """All limits, by name, on the first page."""


class TypeFileRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A type to store, with all texts of its template."""

    slug: Slug
    revision: Annotated[
        Revision | None,
        Meta(description="The revision that this one was made from; null: the type is new."),
    ] = None
    definition: Annotated[TypeRequest, Meta(examples=[EXAMPLE_DEFINITION])]
    parts: Annotated[
        dict[str, PartsRequest],
        Meta(description="By language; none: the type has no template.", examples=[EXAMPLE_PARTS]),
    ] = {}


TypeFileRequests = Annotated[
    list[TypeFileRequest], Meta(max_length=MAX_TYPES, examples=[[EXAMPLE_FILE]])
]


class LimitFileRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit for recipients, to store with types."""

    name: Annotated[str, Meta(min_length=1, max_length=64, examples=["weekly_marketing"])]
    revision: Replaces = None
    limit: Annotated[LimitRequest | None, Meta(description="null: it is removed.")] = None


class FileChanges(DesignChanges, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the files have beside types."""

    limits: Annotated[list[LimitFileRequest], Meta(max_length=MAX_LIMITS)] = msgspec.field(
        default_factory=list
    )


class TypeFilesRequest(FileChanges, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Types, what they use, and limits, to store together. What isn't named stays as it is."""

    types: TypeFileRequests = msgspec.field(default_factory=list)
    publish: Annotated[
        bool,
        Meta(
            description="False: new texts of types are stored as drafts. All else stays as it is."
        ),
    ] = False
    dry_run: Annotated[bool, Meta(description="Checks everything and stores nothing.")] = False
    note: Annotated[
        str, Meta(max_length=NOTE_LENGTH, description="Of the new template versions.")
    ] = ""
    confirm_breaking: Annotated[
        list[Annotated[str, Meta(max_length=64)]],
        Meta(
            max_length=MAX_TYPES,
            description="Types whose new schema may refuse data that the published one takes.",
        ),
    ] = msgspec.field(default_factory=list)


class TypeLintRequest(FileChanges, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Types, what they use, and limits, to check. Nothing is stored."""

    types: TypeFileRequests = msgspec.field(default_factory=list)


class NamedType(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A type to check, of which the slug alone is read."""

    slug: Slug


class NamedTypesRequest(FileChanges, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The types to check, of which any may have the wrong structure."""

    types: Annotated[list[NamedType], Meta(max_length=MAX_TYPES)] = msgspec.field(
        default_factory=list
    )


class TypeChangeView(msgspec.Struct, kw_only=True, frozen=True):
    """What a set does to one of its types."""

    slug: TypeSlug
    outcome: Annotated[TypeOutcome, Meta(examples=["changed"])]
    revision: Revision
    """The revision of the type as it was sent, which it has once it is published."""
    version: Annotated[int | None, Meta(examples=[1])]
    """The template version with these texts, published or not; null: it isn't stored."""
    definition: Annotated[dict[str, Any], Meta(examples=[EXAMPLE_DEFINITION])]
    """As it was sent, without defaults."""
    parts: Annotated[dict[str, dict[str, str]], Meta(examples=[EXAMPLE_PARTS])]


class LimitChangeView(msgspec.Struct, kw_only=True, frozen=True):
    """What a set does to a limit."""

    name: Annotated[str, Meta(examples=["weekly_marketing"])]
    outcome: Annotated[Outcome, Meta(examples=["changed"])]
    revision: Revision | None
    """The revision that it has once it is stored; null: it is removed."""
    limit: Annotated[dict[str, Any] | None, Meta(examples=[EXAMPLE_LIMIT])]


class TypeChangesView(DesignChangesView, kw_only=True, frozen=True):
    """What a set does to types, the design, and limits, each list in the request's order."""

    results: list[TypeChangeView]
    limits: list[LimitChangeView]
    is_published: Annotated[bool, Meta(examples=[True])]


class FindingView(msgspec.Struct, kw_only=True, frozen=True):
    """What a rule found in a type."""

    type: TypeSlug | None
    """null: it is in an item of the design."""
    code: Annotated[str, Meta(examples=["insecure_link"])]
    """The rule, or why the type would be refused."""
    pointer: Annotated[str, Meta(examples=["/types/0/parts/pt/body"])]
    """The place in the request, as a JSON Pointer. A missing text has one, too."""
    line: Annotated[int | None, Meta(examples=[3])] = None
    detail: Annotated[str, Meta(examples=["http://example.com isn't https."])]
    docs: Annotated[str, Meta(examples=[f"{LINT_PAGE}#insecure_link"])]
    """The page about the rule."""


class FindingsView(msgspec.Struct, kw_only=True, frozen=True):
    """What the rules found, in the order of the request."""

    findings: list[FindingView]


@operation(scope=Scope.TEMPLATES_WRITE, response=TypeFileList, parameters=paging.PARAMETERS)
def list_type_files(request: ClientRequest) -> Response:
    """List the types by slug, each with its published texts; and all limits, on the first page."""
    page_request = paging.parse_page_request(request.query_params, list_name=LIST)
    page = types.page(limit=page_request.limit, cursor=page_request.cursor)
    links = paging.page_links(page, list_name=LIST, order=types.BY_SLUG)
    found = type_files.read_contents(page.documents)
    stored = limits.read_limits() if page_request.cursor is None else []
    return Response(
        TypeFileList(
            results=[_file_view(each) for each in found],
            limits=[_limit_view(each) for each in stored],
            **links,
        )
    )


@operation(
    scope=Scope.TEMPLATES_WRITE,
    request=TypeFilesRequest,
    response=TypeChangesView,
    max_bytes=MAX_BYTES_BULK,
    problems=(REVISION_CONFLICT, VERSION_CONFLICT),
)
def push_type_files(request: ClientRequest) -> Response:
    """Store types with their texts, and the design that they use, together: all, or none.

    What has changed since its `revision` is a conflict, unless it already is as sent. To repeat a
    request has no effect. With `publish`, definitions, texts, and the design take effect at once
    and together; without it, new texts become drafts and the rest is checked, and stays as it is.
    Types are checked with the design of the request, and it with them. Changes that make a critical
    or sensitive type less safe need the scope `types:admin`, as for a single type, and the
    publication of limits needs `limits:write`. To publish a schema that refuses what the published
    one takes needs `confirm_breaking`.
    """
    raw = _read(request)
    for index, each in enumerate(_listed_types(raw)):
        check_values(each, pointer=f"/types/{index}")
    body = convert(raw, TypeFilesRequest)
    _check_not_empty(body)
    _check_unique("types", "slug", [each.slug for each in body.types])
    problems = ProblemCollector()
    problems.check_one_line(body.note, "/note")
    confirmed, named = set(body.confirm_breaking), {each.slug for each in body.types}
    for index, slug in enumerate(body.confirm_breaking):
        if slug not in named:
            problems.add(f"/confirm_breaking/{index}", "unknown_type", "Not in `types`.")
    problems.raise_if_any()
    new = [
        replace(each, may_break=not body.publish or each.slug in confirmed)
        for each in _contents(body.types)
    ]
    items = design.given_changes(body)
    try:
        push = _push(request, body, new, items, _limit_changes(body))
    except PushConflictError as conflict:
        raise REVISION_CONFLICT.error(
            errors=[design.revision_problem(pointer) for pointer in conflict.pointers]
        ) from None
    of_design = design.changes_view(items, push.design)
    return Response(
        TypeChangesView(
            results=[_change_view(change) for change in push.types],
            limits=[_limit_change_view(planned) for planned in push.limits],
            is_published=body.publish and not body.dry_run,
            **msgspec.structs.asdict(of_design),
        )
    )


@operation(
    scope=Scope.TEMPLATES_WRITE,
    request=TypeLintRequest,
    response=FindingsView,
    max_bytes=MAX_BYTES_BULK,
    test_mode=SafeWrite.NOTHING,
    unaudited=Unaudited.NOTHING,
)
def lint_type_files(request: ClientRequest) -> Response:
    """Check types with their texts: what would be refused, and what is worth a second look.

    `notify lint` runs the same rules on files. Only this operation knows the published schema.
    """
    raw = _read(request)
    slugs = _read_slugs(raw)
    budget = HintBudget()
    read: list[TypeFileRequest] = []
    found: dict[str, Sequence[Finding]] = {}
    for slug, each in zip(slugs, _listed_types(raw), strict=True):
        try:
            check_values(each)
            read.append(convert(each, TypeFileRequest, budget=budget))
        except ApiError as refused:
            found[slug] = [
                Finding(code=problem.code, pointer=problem.pointer, detail=problem.detail)
                for problem in refused.errors
            ]
    new = _contents(read)
    beside = convert({**raw, "types": []}, TypeLintRequest)
    items = design.given_changes(beside)
    limit_changes.plan(_limit_changes(beside), new_types=slugs)
    planned = design_changes.draft(items, before=designs.read_newest())
    linted = type_lint.lint_types(new, design=planned.design)
    found |= zip([each.slug for each in new], linted, strict=True)
    of_items = type_lint.lint_design(items, planned, new)
    return Response(
        FindingsView(
            findings=[
                _finding_view(finding, slug, f"/types/{index}")
                for index, slug in enumerate(slugs)
                for finding in found[slug]
            ]
            + [
                _finding_view(finding, None, change.pointer)
                for change, findings in zip(items, of_items, strict=True)
                for finding in findings
            ]
        )
    )


def _contents(given: Sequence[TypeFileRequest]) -> list[NewContent]:
    return [
        NewContent(
            slug=each.slug,
            definition=each.definition,
            parts=given_parts(each.parts),
            replaces=each.revision,
        )
        for each in given
    ]


def _limit_changes(body: FileChanges) -> list[LimitChange]:
    """Return the changes of limits. Raises InvalidRequestError for a name given twice."""
    _check_unique("limits", "name", [each.name for each in body.limits])
    return [
        LimitChange(
            name=each.name,
            request=each.limit,
            replaces=each.revision,
            pointer=f"/limits/{index}",
        )
        for index, each in enumerate(body.limits)
    ]


def _read(request: ClientRequest) -> dict[str, Any]:
    """Return a body, of which all but the types is checked for what can't be stored."""
    raw = decode(
        read_body(request._request, limit=MAX_BYTES_BULK), max_depth=MAX_DEPTH + OUTER_LEVELS
    )
    check_values({name: value for name, value in raw.items() if name != "types"})
    return raw


def _read_slugs(raw: Mapping[str, Any]) -> list[str]:
    """Return the slugs of types of which any may have the wrong structure. Raises ApiError."""
    given = raw.get("types")
    if isinstance(given, list):
        named = [
            {name: value for name, value in each.items() if name == "slug"}
            if isinstance(each, Mapping)
            else each
            for each in given
        ]
        raw = {**raw, "types": named}
    named_types = convert(raw, NamedTypesRequest)
    _check_not_empty(named_types)
    slugs = [each.slug for each in named_types.types]
    for index, slug in enumerate(slugs):
        check_values({"slug": slug}, pointer=f"/types/{index}")
    _check_unique("types", "slug", slugs)
    return slugs


def _listed_types(raw: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    given = raw.get("types")
    listed = given if isinstance(given, list) else []
    return [each if isinstance(each, Mapping) else {} for each in listed]


def _check_not_empty(body: TypeFilesRequest | NamedTypesRequest) -> None:
    of_design = (body.partials, body.layouts, body.brands, body.translations)
    if not any((body.types, *of_design, body.limits)):
        problems = ProblemCollector()
        problems.add("/types", "out_of_range", "At least one type, item of the design, or limit.")
        problems.raise_if_any()


def _check_unique(listed: str, field: str, names: Sequence[str]) -> None:
    problems = ProblemCollector()
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            reason = f"Another one in `{listed}` has this {field}."
            problems.add(f"/{listed}/{index}/{field}", "duplicate", reason)
        seen.add(name)
    problems.raise_if_any()


def _push(
    request: ClientRequest,
    body: TypeFilesRequest,
    new: Sequence[NewContent],
    items: Sequence[design_changes.Change],
    new_limits: Sequence[LimitChange],
) -> Push:
    """Return what was done, or of a dry run what would be. Raises PushConflictError and others."""
    now, by = utc_now(), f"app:{request.client.name}"
    for _ in range(pushes.MAX_ATTEMPTS):
        push = pushes.plan(new, items, new_limits)
        _check_scopes(request, push, publish=body.publish)
        if body.dry_run:
            return push
        push = pushes.store_drafts(push, note=body.note, created_by=by, now=now)
        for change in push.types:
            if change.content.slug in push.stored_texts:
                message = f"Template version {change.content.version} created."
                _record(request, change, message)
        if not body.publish:
            return push
        if pushes.publish(push, created_by=by, now=now):
            design.record(request, items, push.design)
            _record_publication(request, push)
            return push
    raise PushConflictError([f"{change.pointer}/revision" for change in items])


def _check_scopes(request: ClientRequest, push: Push, *, publish: bool) -> None:
    """Raise ApiError if the client may not do what a push does."""
    is_weakened = any(change.weakened for change in push.types)
    needed = {
        Scope.TYPES_ADMIN: is_weakened or design_changes.weakens(push.design),
        Scope.LIMITS_WRITE: publish and push.has_new_limits,
    }
    for scope, is_needed in needed.items():
        if is_needed and not request.client.has_scope(scope):
            raise INSUFFICIENT_SCOPE.error(scope=scope)


def _record_publication(request: ClientRequest, push: Push) -> None:
    for change in push.types:
        if change.outcome is not TypeOutcome.UNCHANGED:
            _record(request, change, _described(change))
    for planned in push.limits:
        if planned.has_effect:
            _record_limit(request, planned)


def _described(change: Change) -> str:
    message = audit.describe_change(change.before, change.fields, fields=change.fields) or ""
    return f"{message} Template version {change.content.version} published.".strip()


def _record(request: ClientRequest, change: Change, message: str) -> None:
    audit.record_client_action(
        request.client,
        model=NotificationType,
        object_id=change.content.slug,
        message=message,
        flag=ADDITION if change.outcome is TypeOutcome.CREATED else CHANGE,
    )


def _record_limit(request: ClientRequest, planned: PlannedLimit) -> None:
    described = audit.describe_change(planned.before, planned.fields, fields=planned.fields)
    audit.record_client_action(
        request.client,
        model=Limit,
        object_id=planned.change.name,
        message=(described or "Saved without changes.") if planned.fields else "Removed.",
        flag=FLAGS[planned.outcome],
    )


def _limit_view(stored: Mapping[str, Any]) -> LimitFileView:
    return LimitFileView(
        name=stored["_id"],
        revision=limit_changes.revision_of(stored),
        limit=limit_changes.given(stored),
    )


def _limit_change_view(planned: PlannedLimit) -> LimitChangeView:
    return LimitChangeView(
        name=planned.change.name,
        outcome=planned.outcome,
        revision=limit_changes.revision_of(planned.fields) if planned.fields else None,
        limit=planned.given,
    )


def _file_view(content: TypeContent) -> TypeFileView:
    return TypeFileView(
        slug=content.slug,
        revision=content.revision,
        version=content.version,
        definition=dict(content.definition),
        parts={language: dict(texts) for language, texts in content.parts.items()},
        emergency_changes=[
            EmergencyChangeView(reason=change["reason"], by=change["by"], at=change["at"])
            for change in content.emergency_changes
        ],
    )


def _finding_view(finding: Finding, slug: str | None, pointer: str) -> FindingView:
    return FindingView(
        type=slug,
        code=finding.code,
        pointer=f"{pointer}{finding.pointer}",
        line=finding.line,
        detail=finding.detail,
        docs=f"{LINT_PAGE}#{finding.code}" if finding.code in RULES else LINT_PAGE,
    )


def _change_view(change: Change) -> TypeChangeView:
    content = change.content
    return TypeChangeView(
        slug=content.slug,
        outcome=change.outcome,
        revision=content.revision,
        version=None if change.has_new_texts else content.version,
        definition=dict(content.definition),
        parts={language: dict(texts) for language, texts in content.parts.items()},
    )
