"""Brands, layouts, partials, and translations: read, and change together."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from msgspec import Meta

from access.models import Scope
from domain.time import utc_now
from notifications.catalog import designs
from notifications.catalog.designs import BrandRequest, Design, Kind
from notifications.content import design_changes
from notifications.content.design_changes import (
    Change,
    DesignConflictError,
    Outcome,
    Planned,
    WeakenedError,
)
from notifications.models import Design as DesignModel
from notifications.validation import FieldProblem, ProblemCollector
from notifyproject.platform import audit

from .http.body import MAX_BYTES_BULK, read_request
from .http.problems import INSUFFICIENT_SCOPE, REVISION_CONFLICT
from .http.rendering import Response
from .http.requests import ClientRequest
from .openapi.operations import operation

EXAMPLE_REVISION = "0a62d1f2f8e85c1b9a3d44f1c7e0b6a5"
EXAMPLE_TEXTS = {"default": {"html": '<a href="{{ url }}">{{ label }}</a>'}}
EXAMPLE_BRAND = {"name": "Acme", "colours": {"light": {"accent": "#b91c1c"}}}
EXAMPLE_TRANSLATIONS = {
    "order": {"items": "{count, plural, one {# artigo} other {# artigos}} para {name}"}
}
EXAMPLE_HTML = "<html><body>{{ content }} <a href='{{ unsubscribe_url }}'>Stop</a></body></html>"
MAX_CHANGES = design_changes.MAX_ITEMS
FIELDS = {
    Kind.PARTIAL: "texts",
    Kind.LAYOUT: "html",
    Kind.BRAND: "brand",
    Kind.TRANSLATION: "texts",
}
"""The field that has the content of an item."""
FLAGS = {Outcome.CREATED: ADDITION, Outcome.CHANGED: CHANGE, Outcome.REMOVED: DELETION}
Name = Annotated[str, Meta(min_length=1, max_length=64)]
Revision = Annotated[str, Meta(min_length=32, max_length=32, examples=[EXAMPLE_REVISION])]
Replaces = Annotated[
    Revision | None, Meta(description="The revision that this was made from; null: it is new.")
]
Source = Annotated[str, Meta(min_length=1, max_length=64 * 1024)]


class PartialTexts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A partial in one language."""

    text: Annotated[Source | None, Meta(description="In every part that isn't HTML.")] = None
    html: Annotated[Source | None, Meta(description="In HTML and in layouts.")] = None


Texts = Annotated[
    dict[str, PartialTexts],
    Meta(description="By language, as those of a template.", examples=[EXAMPLE_TEXTS]),
]


class PartialChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A partial, which templates show by `{% render 'name' %}`."""

    name: Annotated[Name, Meta(examples=["button"])]
    revision: Replaces = None
    texts: Annotated[Texts | None, Meta(description="null: it is removed.")] = None


class LayoutChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A layout, the frame of emails."""

    name: Annotated[Name, Meta(examples=["main"])]
    revision: Replaces = None
    html: Annotated[
        Source | None, Meta(description="null: it is removed.", examples=[EXAMPLE_HTML])
    ] = None


class BrandChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A brand, which requests and types name."""

    name: Annotated[Name, Meta(examples=["acme"])]
    revision: Replaces = None
    brand: Annotated[BrandRequest | None, Meta(description="null: it is removed.")] = None


class TranslationChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The translations into a language, which templates show by `{{ 'order.title' | t }}`."""

    name: Annotated[Name, Meta(description="`default`, or a language.", examples=["pt"])]
    revision: Replaces = None
    texts: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Messages by name, at up to eight levels; null: they are removed.",
            examples=[EXAMPLE_TRANSLATIONS],
        ),
    ] = None


class DesignChanges(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Items of the design to store or remove. What isn't named stays as it is."""

    partials: Annotated[list[PartialChange], Meta(max_length=MAX_CHANGES)] = []
    layouts: Annotated[list[LayoutChange], Meta(max_length=MAX_CHANGES)] = []
    brands: Annotated[list[BrandChange], Meta(max_length=MAX_CHANGES)] = []
    translations: Annotated[list[TranslationChange], Meta(max_length=MAX_CHANGES)] = []


class DesignRequest(DesignChanges, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to store or remove, all or nothing. What isn't named stays as it is."""

    dry_run: Annotated[bool, Meta(description="Checks everything and stores nothing.")] = False


class PartialView(msgspec.Struct, kw_only=True, frozen=True):
    """A partial."""

    name: Annotated[str, Meta(examples=["button"])]
    revision: Revision
    texts: Annotated[dict[str, dict[str, str]], Meta(examples=[EXAMPLE_TEXTS])]


class LayoutView(msgspec.Struct, kw_only=True, frozen=True):
    """A layout."""

    name: Annotated[str, Meta(examples=["main"])]
    revision: Revision
    html: Annotated[str, Meta(examples=[EXAMPLE_HTML])]


class BrandView(msgspec.Struct, kw_only=True, frozen=True):
    """A brand."""

    name: Annotated[str, Meta(examples=["acme"])]
    revision: Revision
    brand: Annotated[
        dict[str, Any],
        Meta(description="Its fields that don't have their default.", examples=[EXAMPLE_BRAND]),
    ]


class TranslationView(msgspec.Struct, kw_only=True, frozen=True):
    """The translations into a language."""

    name: Annotated[str, Meta(examples=["pt"])]
    revision: Revision
    texts: Annotated[dict[str, Any], Meta(examples=[EXAMPLE_TRANSLATIONS])]


class DesignView(msgspec.Struct, kw_only=True, frozen=True):
    """All brands, layouts, partials, and translations, by name."""

    number: Annotated[int, Meta(examples=[7])]
    """Each change makes the design with the next number; 0: there is none."""
    partials: list[PartialView]
    layouts: list[LayoutView]
    brands: list[BrandView]
    translations: list[TranslationView]


class PartialChangeView(msgspec.Struct, kw_only=True, frozen=True):
    """What a set does to a partial."""

    name: Annotated[str, Meta(examples=["button"])]
    outcome: Annotated[Outcome, Meta(examples=["changed"])]
    revision: Revision | None
    """The revision that it has once it is stored; null: it is removed."""
    texts: Annotated[dict[str, dict[str, str]] | None, Meta(examples=[EXAMPLE_TEXTS])]


class LayoutChangeView(msgspec.Struct, kw_only=True, frozen=True):
    """What a set does to a layout."""

    name: Annotated[str, Meta(examples=["main"])]
    outcome: Annotated[Outcome, Meta(examples=["changed"])]
    revision: Revision | None
    """The revision that it has once it is stored; null: it is removed."""
    html: Annotated[str | None, Meta(examples=[EXAMPLE_HTML])]


class BrandChangeView(msgspec.Struct, kw_only=True, frozen=True):
    """What a set does to a brand."""

    name: Annotated[str, Meta(examples=["acme"])]
    outcome: Annotated[Outcome, Meta(examples=["changed"])]
    revision: Revision | None
    """The revision that it has once it is stored; null: it is removed."""
    brand: Annotated[
        dict[str, Any] | None,
        Meta(description="Its fields that don't have their default.", examples=[EXAMPLE_BRAND]),
    ]


class TranslationChangeView(msgspec.Struct, kw_only=True, frozen=True):
    """What a set does to the translations into a language."""

    name: Annotated[str, Meta(examples=["pt"])]
    outcome: Annotated[Outcome, Meta(examples=["changed"])]
    revision: Revision | None
    """The revision that they have once they are stored; null: they are removed."""
    texts: Annotated[dict[str, Any] | None, Meta(examples=[EXAMPLE_TRANSLATIONS])]


class DesignChangesView(msgspec.Struct, kw_only=True, frozen=True):
    """What a set does to the items of the design, each list in the order of the request."""

    partials: list[PartialChangeView]
    layouts: list[LayoutChangeView]
    brands: list[BrandChangeView]
    translations: list[TranslationChangeView]


@operation(scope=Scope.TEMPLATES_WRITE, response=DesignView)
def get_design(_request: ClientRequest) -> Response:
    """Get the brands, layouts, partials, and translations that new notifications use."""
    return Response(_view(designs.read_newest()))


@operation(
    scope=Scope.TEMPLATES_WRITE,
    request=DesignRequest,
    response=DesignView,
    max_bytes=MAX_BYTES_BULK,
    problems=(REVISION_CONFLICT,),
)
def change_design(request: ClientRequest) -> Response:
    """Store brands, layouts, partials, and translations together: all, or none.

    New notifications use them at once; those that are accepted keep the design that they were
    accepted with. What has changed since its `revision` is a conflict, unless it already is as
    sent. What a published template couldn't be rendered with is refused, and so is the removal of
    what is in use.
    """
    body = read_request(request, DesignRequest, limit=MAX_BYTES_BULK)
    changes = given_changes(body)
    now, by = utc_now(), f"app:{request.client.name}"
    may_weaken = request.client.has_scope(Scope.TYPES_ADMIN)
    try:
        if body.dry_run:
            newest = designs.read_newest()
            planned = design_changes.plan(changes, before=newest, may_weaken=may_weaken)
        else:
            planned = design_changes.store(changes, created_by=by, now=now, may_weaken=may_weaken)
            record(request, changes, planned)
    except WeakenedError:
        raise INSUFFICIENT_SCOPE.error(scope=Scope.TYPES_ADMIN) from None
    except DesignConflictError as conflict:
        raise REVISION_CONFLICT.error(
            errors=[revision_problem(f"{pointer}/revision") for pointer in conflict.pointers]
        ) from None
    return Response(_view(planned.design))


def given_changes(body: DesignChanges) -> list[Change]:
    """Return the changes of a request. Raises InvalidRequestError for a name given twice."""
    changes = [*_changes(body)]
    problems, seen = ProblemCollector(), set[tuple[Kind, str]]()
    for change in changes:
        if (change.kind, change.name) in seen:
            problems.add(f"{change.pointer}/name", "duplicate", "Named twice.")
        seen.add((change.kind, change.name))
    problems.raise_if_any()
    return changes


def revision_problem(pointer: str) -> FieldProblem:
    """Return the field error for a revision that isn't the present one."""
    return FieldProblem(pointer, "changed", "Not the present revision.")


def _changes(body: DesignChanges) -> Iterator[Change]:
    for index, partial in enumerate(body.partials):
        texts = None
        if partial.texts is not None:
            texts = {
                language: {k: v for k, v in msgspec.structs.asdict(given).items() if v is not None}
                for language, given in partial.texts.items()
            }
        yield _change(Kind.PARTIAL, partial, texts, f"/partials/{index}")
    for index, layout in enumerate(body.layouts):
        yield _change(Kind.LAYOUT, layout, layout.html, f"/layouts/{index}")
    for index, brand in enumerate(body.brands):
        content = None if brand.brand is None else msgspec.to_builtins(brand.brand)
        yield _change(Kind.BRAND, brand, content, f"/brands/{index}")
    for index, each in enumerate(body.translations):
        yield _change(Kind.TRANSLATION, each, each.texts, f"/translations/{index}")


def _change(
    kind: Kind,
    given: PartialChange | LayoutChange | BrandChange | TranslationChange,
    content: Any,
    pointer: str,
) -> Change:
    return Change(
        kind=kind, name=given.name, content=content, replaces=given.revision, pointer=pointer
    )


def record(request: ClientRequest, changes: Sequence[Change], planned: Planned) -> None:
    """Record what a client has changed."""
    for change, outcome in zip(changes, planned.outcomes, strict=True):
        if outcome is not Outcome.UNCHANGED:
            audit.record_client_action(
                request.client,
                model=DesignModel,
                object_id=change.key,
                message=f"{outcome.capitalize()}, in design {planned.design.number}.",
                flag=FLAGS[outcome],
            )


def changes_view(changes: Sequence[Change], planned: Planned) -> DesignChangesView:
    """Return what changes do, each list in their order."""
    shown: dict[Kind, list[dict[str, Any]]] = {kind: [] for kind in Kind}
    for change, outcome in zip(changes, planned.outcomes, strict=True):
        after = planned.design.items(change.kind).get(change.name)
        shown[change.kind].append(
            {
                "name": change.name,
                "outcome": outcome,
                "revision": None if after is None else designs.revision_of(after),
                FIELDS[change.kind]: change.given,
            }
        )
    return DesignChangesView(
        partials=[PartialChangeView(**each) for each in shown[Kind.PARTIAL]],
        layouts=[LayoutChangeView(**each) for each in shown[Kind.LAYOUT]],
        brands=[BrandChangeView(**each) for each in shown[Kind.BRAND]],
        translations=[TranslationChangeView(**each) for each in shown[Kind.TRANSLATION]],
    )


def _view(design: Design) -> DesignView:
    shown: dict[Kind, list[dict[str, Any]]] = {kind: [] for kind in Kind}
    for kind in Kind:
        for name in sorted(design.items(kind)):
            revision = designs.revision_of(design.items(kind)[name])
            content = design.given(kind, name)
            shown[kind].append({"name": name, "revision": revision, FIELDS[kind]: content})
    return DesignView(
        number=design.number,
        partials=[PartialView(**each) for each in shown[Kind.PARTIAL]],
        layouts=[LayoutView(**each) for each in shown[Kind.LAYOUT]],
        brands=[BrandView(**each) for each in shown[Kind.BRAND]],
        translations=[TranslationView(**each) for each in shown[Kind.TRANSLATION]],
    )
