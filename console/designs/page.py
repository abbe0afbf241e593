"""The items of the design: what there is, what uses it, and what was changed when."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, reverse
from django.utils.http import urlencode

from notifications.catalog import designs
from notifications.catalog.designs import Design, Kind, key_of
from notifications.content import design_history, design_uses
from notifications.content.design_changes import Outcome
from notifications.content.design_history import Edition, ItemChange
from notifications.content.templates import DEFAULT_LANGUAGE
from notifications.models import Design as DesignModel

from ..types.preview import language_name
from ..widgets import names
from ..widgets.actions import not_found, render_page
from ..widgets.links import url_of_design_item
from ..widgets.lists import ReadOnlyAdmin
from . import form, item
from .item import LABELS, LIST

CHANGES = "admin:notifications_design_changes"
PER_PAGE = 30
BELOW = "below"
"""The parameter of a page of changes: those of designs below this number."""
SECTIONS = (
    (Kind.BRAND, "Brands", "Whom a message is from: a name, a logo, colours, and a footer."),
    (Kind.LAYOUT, "Layouts", "The frame of an email. Without one, emails have the built-in one."),
    (Kind.PARTIAL, "Partials", "Texts that several templates and layouts render by their name."),
    (Kind.TRANSLATION, "Translations", "Texts by language, which templates show by their keys."),
)


@admin.register(DesignModel)
class DesignAdmin(ReadOnlyAdmin):
    """The designs. The list shows the newest one's items, and the page of one what it changed."""

    class Media:
        """Styles of the previews."""

        css = {"all": ("console/types.css", "console/designs.css")}

    ordering = ("-number",)

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs of the items and of the list of changes."""
        return [self.url("changes/", self.changes_view, "changes"), *item.urls(self)]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the items by their kinds."""
        self._require_view(request)
        design = designs.read_newest()
        return render_page(
            self,
            request,
            "console/designs/list.html",
            title="Design",
            media=self.media,
            sections=_sections(request, design),
            may_change=request.user.has_perm(item.MAY_CHANGE),
            changes_url=reverse(CHANGES),
        )

    def changes_view(self, request: HttpRequest) -> HttpResponse:
        """Show what was changed, the newest first."""
        self._require_view(request)
        below = form.number_of(request.GET.get(BELOW, ""))
        found = design_history.list_editions(below=below, limit=PER_PAGE + 1)
        shown = found[:PER_PAGE]
        older = f"?{urlencode({BELOW: shown[-1].number})}" if len(found) > PER_PAGE else None
        return render_page(
            self,
            request,
            "console/designs/changes.html",
            title="Changes",
            media=self.media,
            original=DesignModel(number=shown[0].number if shown else 0),
            rows=[{**item.edition_row(each), "changes": _changes(each)} for each in shown],
            older=older,
            back=reverse(LIST),
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show what one design changed."""
        self._require_view(request)
        number = form.number_of(object_id)
        edition = None if number is None else design_history.find_edition(number)
        if edition is None:
            return not_found(request, "Design", LIST)
        return render_page(
            self,
            request,
            "console/designs/edition.html",
            title=f"Design {edition.number}",
            media=self.media,
            original=DesignModel(number=edition.number),
            row=item.edition_row(edition),
            changes=[
                {**each, "differences": _differences(edition, each["change"])}
                for each in _changes(edition)
            ],
            back=reverse(CHANGES),
        )

    def _require_view(self, request: HttpRequest) -> None:
        if not self.has_view_permission(request):
            raise PermissionDenied


def _sections(request: HttpRequest, design: Design) -> list[dict[str, Any]]:
    uses = design_uses.read_uses(design)
    editions = design_history.last_editions(design)
    return [
        {
            "kind": kind.value,
            "title": title,
            "note": note,
            "word": item.WORDS[kind],
            "new_url": reverse(item.NEW, args=[kind]),
            "rows": [
                {
                    "name": name,
                    "language": language_name(name)
                    if kind is Kind.TRANSLATION and name != DEFAULT_LANGUAGE
                    else "",
                    "url": url_of_design_item(kind, name),
                    "content": content,
                    "users": item.users_of(request, uses[kind, name]),
                    "count": _count(len(uses[kind, name].types)),
                    "by": names.author(editions[key_of(kind, name)].created_by),
                    "at": editions[key_of(kind, name)].created_at,
                }
                for name, content in sorted(design.items(kind).items())
            ],
        }
        for kind, title, note in SECTIONS
    ]


def _count(types: int) -> str:
    return "No type" if types == 0 else f"{types} type{'' if types == 1 else 's'}"


def _changes(edition: Edition) -> list[dict[str, Any]]:
    return [
        {
            "change": each,
            "word": item.WORDS[each.kind],
            "outcome": LABELS[each.outcome],
            "url": url_of_design_item(each.kind, each.name, number=_shown_in(edition, each)),
        }
        for each in edition.changes
    ]


def _shown_in(edition: Edition, change: ItemChange) -> int:
    """Return the design that has what was changed: of what is removed, the one before."""
    return edition.number - (change.outcome is Outcome.REMOVED)


def _differences(edition: Edition, change: ItemChange) -> list[Any]:
    before, after = (_content(number, change) for number in (edition.number - 1, edition.number))
    return form.changes_between(change.kind, before, after)


def _content(number: int, change: ItemChange) -> Mapping[str, Any] | str | None:
    return designs.numbered(number).items(change.kind).get(change.name)
