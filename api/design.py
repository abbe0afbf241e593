"""Brands, layouts, and partials: read, and change together."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from msgspec import Meta

from access.models import Scope
from domain.time import utc_now
from notifications.catalog import designs
from notifications.catalog.designs import BrandRequest, Design, Kind
from notifications.content import design_changes
from notifications.content.design_changes import Change, DesignConflictError, Outcome, Planned
from notifications.models import Design as DesignModel
from notifications.validation import FieldProblem, ProblemCollector
from notifyproject.platform import audit

from .http.body import MAX_BYTES_BULK, read_request
from .http.problems import REVISION_CONFLICT, ApiError
from .http.rendering import Response
from .http.requests import ClientRequest
from .openapi.operations import operation

EXAMPLE_REVISION = "0a62d1f2f8e85c1b9a3d44f1c7e0b6a5"
EXAMPLE_TEXTS = {"default": {"html": '<a href="{{ url }}">{{ label }}</a>'}}
EXAMPLE_HTML = "<html><body>{{ content }} <a href='{{ unsubscribe_url }}'>Stop</a></body></html>"
MAX_CHANGES = design_changes.MAX_ITEMS
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


class DesignRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to store or remove, all or nothing. What isn't named stays as it is."""

    partials: Annotated[list[PartialChange], Meta(max_length=MAX_CHANGES)] = []
    layouts: Annotated[list[LayoutChange], Meta(max_length=MAX_CHANGES)] = []
    brands: Annotated[list[BrandChange], Meta(max_length=MAX_CHANGES)] = []
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
    brand: BrandRequest


class DesignView(msgspec.Struct, kw_only=True, frozen=True):
    """All brands, layouts, and partials, by name."""

    number: Annotated[int, Meta(examples=[7])]
    """Each change makes the design with the next number; 0: there is none."""
    partials: list[PartialView]
    layouts: list[LayoutView]
    brands: list[BrandView]


@operation(scope=Scope.TEMPLATES_WRITE, response=DesignView)
def get_design(_request: ClientRequest) -> Response:
    """Get the brands, layouts, and partials that new notifications use."""
    return Response(_view(designs.read_newest()))


@operation(
    scope=Scope.TEMPLATES_WRITE,
    request=DesignRequest,
    response=DesignView,
    max_bytes=MAX_BYTES_BULK,
    problems=(REVISION_CONFLICT,),
)
def change_design(request: ClientRequest) -> Response:
    """Store brands, layouts, and partials together: all, or none.

    New notifications use them at once; those that are accepted keep the design that they were
    accepted with. What has changed since its `revision` is a conflict, unless it already is as
    sent. A partial or a layout that a published template couldn't be rendered with is refused, and
    so is the removal of what is in use.
    """
    body = read_request(request, DesignRequest, limit=MAX_BYTES_BULK)
    changes = [*_changes(body)]
    _check_unique(changes)
    now, by = utc_now(), f"app:{request.client.name}"
    try:
        if body.dry_run:
            planned = design_changes.plan(changes, before=designs.read_newest())
        else:
            planned = design_changes.store(changes, created_by=by, now=now)
            _record(request, changes, planned)
    except DesignConflictError as conflict:
        raise _conflict(conflict) from None
    return Response(_view(planned.design))


def _changes(body: DesignRequest) -> Iterator[Change]:
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


def _change(
    kind: Kind, given: PartialChange | LayoutChange | BrandChange, content: Any, pointer: str
) -> Change:
    return Change(
        kind=kind, name=given.name, content=content, replaces=given.revision, pointer=pointer
    )


def _check_unique(changes: Sequence[Change]) -> None:
    problems, seen = ProblemCollector(), set[tuple[Kind, str]]()
    for change in changes:
        if (change.kind, change.name) in seen:
            problems.add(f"{change.pointer}/name", "duplicate", "Named twice.")
        seen.add((change.kind, change.name))
    problems.raise_if_any()


def _conflict(conflict: DesignConflictError) -> ApiError:
    return REVISION_CONFLICT.error(
        errors=[
            FieldProblem(f"{pointer}/revision", "changed", "Not the present revision.")
            for pointer in conflict.pointers
        ]
    )


def _record(request: ClientRequest, changes: Sequence[Change], planned: Planned) -> None:
    for change, outcome in zip(changes, planned.outcomes, strict=True):
        if outcome is not Outcome.UNCHANGED:
            audit.record_client_action(
                request.client,
                model=DesignModel,
                object_id=change.key,
                message=f"{outcome.capitalize()}, in design {planned.design.number}.",
                flag=FLAGS[outcome],
            )


def _view(design: Design) -> DesignView:
    return DesignView(
        number=design.number,
        partials=[
            PartialView(
                name=name,
                revision=designs.revision_of(texts),
                texts={language: dict(by_kind) for language, by_kind in texts.items()},
            )
            for name, texts in _sorted(design.partials)
        ],
        layouts=[
            LayoutView(name=name, revision=designs.revision_of(html), html=html)
            for name, html in _sorted(design.layouts)
        ],
        brands=[
            BrandView(name=name, revision=designs.revision_of(stored), brand=design.brand(name))
            for name, stored in _sorted(design.brands)
        ],
    )


def _sorted(items: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(items.items())
