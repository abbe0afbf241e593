"""The list of saved views, and the form that saves one."""

import re
from collections.abc import Sequence
from typing import Any

from bson import ObjectId
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import DELETION
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from monitoring import saved_views
from monitoring.models import AlertKind, AlertRule, SavedView
from monitoring.saved_views import MAX_VIEWS
from notifyproject.db.match import Match

from ..widgets.actions import not_found, parse_id, record_change, require_post
from ..widgets.columns import chip, link, text_column
from ..widgets.lists import ConsoleAdmin
from ..widgets.names import staff_names
from .filters import (
    BrokenViewError,
    ChosenFilters,
    find_list,
    forbidden_lists,
    may_see,
    read_filters,
)
from .menu import MAY_SEE, OPEN, counts, keep_condition, list_url

MAY_SHARE = "analytics.share_savedview"
MAY_ADD_RULE = "analytics.add_alertrule"
MAY_DELETE_RULE = "analytics.delete_alertrule"
LIST = "admin:analytics_savedview_changelist"
NOT_CHOSEN = "Open a list, choose filters there, and then “Save view”."
HAS_ADDRESS = "Leave out addresses and numbers: a view has no personal data."
HAS_RULE = "An alert rule counts this view for everyone. Delete the rule first."
TOO_MANY = f"There are {MAX_VIEWS} such views already. Delete one first."
DELETED_OWNER = "Deleted account"
_ADDRESS = re.compile(r"@|(?:\d[ ().-]*){7}", re.ASCII)


class SavedViewForm(forms.ModelForm):
    """Form of a saved view: its name, and whether it is shared. Its filters never change."""

    request: HttpRequest
    name = forms.CharField(max_length=60, widget=UnfoldAdminTextInputWidget)
    is_shared = forms.BooleanField(
        label="Share with everybody",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="All staff who may open the list have it in their menu.",
    )

    class Meta:
        """The model and its editable fields."""

        model = SavedView
        fields = ("name", "is_shared")

    def clean_name(self) -> str:
        """Return the name. Raises ValidationError for an address, which erasure wouldn't find."""
        name: str = self.cleaned_data["name"]
        if _ADDRESS.search(name):
            raise forms.ValidationError(HAS_ADDRESS)
        return name

    def clean(self) -> dict[str, Any]:
        """Return the fields. Adds what is wrong with the filters, or that there are too many."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        was_shared = None if self.instance._state.adding else self.instance.is_shared
        if was_shared is None:
            try:
                chosen_filters(self.request)
            except BrokenViewError as error:
                self.add_error(None, str(error))
        is_shared = cleaned.get("is_shared", False) if "is_shared" in self.fields else was_shared
        if was_shared and not is_shared and saved_views.has_rule(self.instance.pk):
            self.add_error("is_shared", HAS_RULE)
        if bool(is_shared) is not was_shared:
            owner = self.request.user.pk if was_shared is None else self.instance.owner_id
            kept = saved_views.shared() if is_shared else saved_views.own(owner)
            if len(kept) >= MAX_VIEWS:
                self.add_error(None, TOO_MANY)
        return cleaned


def chosen_filters(request: HttpRequest) -> ChosenFilters:
    """Return the filters that the URL of the form names. Raises BrokenViewError."""
    name = request.GET.get("list", "")
    if not may_see(request, name):
        raise BrokenViewError(NOT_CHOSEN)
    chosen = read_filters(request, list_name=name, query=request.GET.get("query", ""))
    if not chosen.query:
        raise BrokenViewError(NOT_CHOSEN)
    return chosen


@admin.register(SavedView)
class SavedViewAdmin(ConsoleAdmin):
    """The user's own views, and the shared ones."""

    form = SavedViewForm
    change_form_outer_before_template = "console/saved_views/chosen.html"
    list_display = ("view", "list_title", "filters", "seen_by", "owner", "order")
    list_display_links = None
    ordering = ("is_shared", "position", "id")
    show_add_link = False
    empty_title = "No saved views"
    empty_text = "Choose filters on a list, and then “Save view”. It appears in the menu."
    owner = text_column("Saved by", "owner_name")

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs that open and move a view, and that of the counts."""
        return [
            self.url("counts/", self.counts_view, "counts"),
            self.url("<path:object_id>/open/", self.open_view, "open"),
            self.url("<path:object_id>/up/", self.move_view, "up", by=-1),
            self.url("<path:object_id>/down/", self.move_view, "down", by=1),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return the own and the shared views, without those of lists that are closed to the user.

        A view of a list that doesn't exist any more is shown, so that it can be deleted.
        """
        own_or_shared = [{"owner_id": request.user.pk, "is_shared": False}, {"is_shared": True}]
        match = {"$or": own_or_shared, "list": {"$nin": forbidden_lists(request)}}
        return super().get_queryset(request).filter(Match(match))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may change a view. A shared one is of those who may share."""
        return super().has_change_permission(request, obj) and _is_of(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may delete a view, as :meth:`has_change_permission`.

        Its alert rules are deleted with it, by those who may.
        """
        if not (super().has_delete_permission(request, obj) and _is_of(request, obj)):
            return False
        may_delete_rules = obj is None or request.user.has_perm(MAY_DELETE_RULE)
        return may_delete_rules or not saved_views.has_rule(obj.pk)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return no actions: views are deleted one by one, by whom each of them is."""
        return {}

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return the fields. Only those who may share see that field."""
        return ("name", "is_shared") if request.user.has_perm(MAY_SHARE) else ("name",)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        """Return the form's class, which knows the URL with the filters."""
        form = super().get_form(request, obj, change, **options)
        form.request = request
        return form

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the form of a new view, with the filters that it saves."""
        context: dict[str, Any] = {"title": "Save view"}
        try:
            context["words"] = chosen_filters(request).words
            context["list_title"] = _list_title(request.GET["list"])
            context["left_out_search"] = "searched" in request.GET
        except BrokenViewError as error:
            context["problem"] = str(error)
        shown: HttpResponse = super().add_view(request, form_url, context)
        return shown

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return what a view shows, and the link to its alert rule's form."""
        view = self.get_object(request, object_id)
        if view is None:
            return {}
        may_alert = view.is_shared and view.match and request.user.has_perm(MAY_ADD_RULE)
        rule = {"kind": AlertKind.SAVED_VIEW.value, "view_id": str(view.pk), "name": view.name}
        return {
            "words": view.words,
            "list_title": _list_title(view.list),
            "problem": view.problem,
            "open_url": "" if view.problem else reverse(OPEN, args=[view.pk]),
            "alert_url": f"{reverse('admin:analytics_alertrule_add')}?{urlencode(rule)}"
            if may_alert
            else "",
        }

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the names of the owners, the filters in words, and who may move each view."""
        owners = staff_names({row.owner_id for row in rows})
        for row in rows:
            row.owner_name = owners.get(row.owner_id, DELETED_OWNER)
            row.is_movable = self.has_change_permission(request, row)
            row.words, row.problem = (), ""
            try:
                row.words = read_filters(request, list_name=row.list, query=row.query).words
            except BrokenViewError as error:
                row.problem = str(error)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store a new view with its filters, or the new name of an existing one."""
        if not change:
            chosen = chosen_filters(request)
            obj.owner_id, obj.list = request.user.pk, request.GET["list"]
            obj.query, obj.source = chosen.query, chosen.source
            obj.match, obj.index = chosen.match, chosen.index
            obj.position = MAX_VIEWS
        super().save_model(request, obj, form, change)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete the view, and its alert rules, which are recorded, too."""
        for rule in saved_views.delete([obj.pk]):
            message = f"Deleted with the view “{obj.name}”."
            record_change(
                request, AlertRule, rule["_id"], message, name=rule["name"], flag=DELETION
            )

    def response_add(
        self, request: HttpRequest, obj: Any, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Return to the list, which the menu now shows under its name."""
        messages.success(request, f"Saved “{obj.name}”. It's in the menu under Views.")
        return HttpResponseRedirect(f"{list_url(obj.list)}?{obj.query}")

    def counts_view(self, request: HttpRequest) -> HttpResponse:
        """Return the counts of the views in the menu."""
        return counts(request)

    def open_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Redirect to the list of a view. Without one of its filters, say so instead."""
        if not request.user.has_perm(MAY_SEE):
            raise PermissionDenied
        key = parse_id(object_id)
        view = saved_views.get(key) if key is not None else None
        if view is None or not self.get_queryset(request).filter(pk=view["_id"]).exists():
            return not_found(request, "View", LIST)
        try:
            filters = read_filters(request, list_name=view["list"], query=view["query"])
        except BrokenViewError as error:
            messages.error(request, f"“{view['name']}” isn't shown. {error}")
            return HttpResponseRedirect(reverse(LIST))
        keep_condition(view, filters)
        return HttpResponseRedirect(f"{list_url(view['list'])}?{view['query']}")

    def move_view(self, request: HttpRequest, object_id: str, *, by: int) -> HttpResponse:
        """Move a view up or down in the menu; POST only."""
        if refused := require_post(request, allowed=self.has_change_permission(request)):
            return refused
        key = parse_id(object_id)
        row = None if key is None else self.get_queryset(request).filter(pk=key).first()
        if row is None:
            return not_found(request, "View", LIST)
        if not self.has_change_permission(request, row):
            raise PermissionDenied
        some = saved_views.shared() if row.is_shared else saved_views.own(row.owner_id)
        order = [view["_id"] for view in some]
        saved_views.arrange(_moved(order, row.pk, by=by))
        record_change(request, SavedView, row.pk, "Moved in the menu.", name=row.name)
        return HttpResponseRedirect(reverse(LIST))

    @admin.display(description="View")
    def view(self, row: Any) -> SafeString:
        """Return the name, which leads to the page of the view, and what is wrong with it."""
        name = link(reverse("admin:analytics_savedview_change", args=[row.pk]), row.name)
        if row.problem:
            return format_html("{} {}", name, chip("Not shown", "danger", title=row.problem))
        return name

    @admin.display(description="List")
    def list_title(self, row: Any) -> str:
        """Return the title of the list."""
        return _list_title(row.list)

    @admin.display(description="Filters")
    def filters(self, row: Any) -> str:
        """Return the filters in words."""
        return "; ".join(row.words) or row.problem

    @admin.display(description="Seen by")
    def seen_by(self, row: Any) -> str:
        """Return who has it in the menu."""
        return "Everybody" if row.is_shared else "You"

    @admin.display(description="Order")
    def order(self, row: Any) -> SafeString | str:
        """Return the buttons that move a view. They are part of the list's form."""
        if not row.is_movable:
            return ""
        button = (
            '<button type="submit" class="button" formaction="{}" aria-label="Move {} {}">'
            '<span class="material-symbols-outlined" aria-hidden="true">arrow_{}ward</span>'
            "</button>"
        )
        up, down = (
            format_html(
                button,
                reverse(f"admin:analytics_savedview_{way}", args=[row.pk]),
                row.name,
                way,
                f"{way}",
            )
            for way in ("up", "down")
        )
        return format_html('<span class="buttons">{}{}</span>', up, down)


def _is_of(request: HttpRequest, view: Any) -> bool:
    if view is None:
        return True
    if view.is_shared:
        return bool(request.user.has_perm(MAY_SHARE))
    return bool(view.owner_id == request.user.pk)


def _list_title(name: str) -> str:
    found = find_list(name)
    return name if found is None else str(found.opts.verbose_name_plural).capitalize()


def _moved(order: list[ObjectId], key: ObjectId, *, by: int) -> list[ObjectId]:
    """Return an order in which one view is a place further up or down, if there is one."""
    if key not in order:
        return order
    at = order.index(key)
    others = [other for other in order if other != key]
    return [*others[: max(at + by, 0)], key, *others[max(at + by, 0) :]]
