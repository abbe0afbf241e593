"""Base classes of the lists, which limit counts, the time of reads, and filters."""

import copy
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any
from urllib.parse import urlencode

import pymongo
from bson import ObjectId
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters, ShowFacets
from django.contrib.admin.utils import quote
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db import DatabaseError, IntegrityError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import URLPattern, path, reverse
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from pymongo.errors import DuplicateKeyError, PyMongoError
from unfold.admin import ModelAdmin, checkbox
from unfold.views import ChangeList

from notifyproject.db.collections import collection
from notifyproject.db.stored_match import Ago

from .changes import changed_fields
from .filters import RECENT, SPANS, TimeFilter
from .forms import compared
from .search import pasted

COUNT_CAP = 10_000
COUNT_SECONDS = 0.5  # Time limit of a count. After it, the page shows no exact count
OVERTAKEN = "Others changed the same at the same time. Try again."
FORM_ATTEMPTS = 10  # Of a save that others precede each time
PAGE_SECONDS = 5.0
MAX_SEARCH = 400  # Characters, more than any address; MongoDB fails at 32 KB
_KEY_PLACEHOLDER = "place-of-the-key"
_FILTERS_ONLY = "is_for_filters_only"
TOO_SLOW = "Query too large. Select a shorter time range or search for one notification."


class CappedPaginator(Paginator):
    """A paginator that counts at most COUNT_CAP rows. A larger collection is estimated."""

    # There are no pages beyond COUNT_CAP, because a skip reads all skipped rows.

    template_name = "console/widgets/pagination.html"

    @cached_property
    def count(self) -> int:
        """The number of rows: exact up to COUNT_CAP, above it an estimate or a lower bound."""
        queryset = self.object_list
        if not isinstance(queryset, QuerySet):
            return len(queryset)
        if not queryset.query.where:
            estimate = collection(queryset.model._meta.db_table).estimated_document_count()
            if estimate > COUNT_CAP:
                return estimate
        try:
            with pymongo.timeout(COUNT_SECONDS):
                return queryset.order_by()[: COUNT_CAP + 1].count()
        except (DatabaseError, PyMongoError) as error:
            if not is_timeout(error):
                raise
            return COUNT_CAP + 1

    @cached_property
    def num_pages(self) -> int:
        """The number of pages, at least one."""
        return max(1, ceil(min(self.count, COUNT_CAP) / self.per_page))

    @property
    def count_label(self) -> str:
        """The number of rows as text: exact, "about N", or "more than N"."""
        if self.count <= COUNT_CAP:
            return f"{self.count:,}"
        if isinstance(self.object_list, QuerySet) and not self.object_list.query.where:
            return f"about {self.count:,}"
        return f"more than {COUNT_CAP:,}"


def is_timeout(error: BaseException) -> bool:
    """Return whether a read exceeded its time limit."""
    cause = error if isinstance(error, PyMongoError) else error.__cause__
    return isinstance(cause, PyMongoError) and cause.timeout


class OvertakenError(Exception):
    """What another has stored or deleted meanwhile prevents the write of a form."""


def _was_overtaken(error: Exception) -> bool:
    """Return whether a write failed because of what another has stored or deleted meanwhile."""
    # That nothing was left to change is an error of Django's own, without a cause.
    is_gone = type(error) is DatabaseError and error.__cause__ is None
    return is_gone or isinstance(error, IntegrityError | DuplicateKeyError | OvertakenError)


class BoundedChangeList(ChangeList):
    """A list that rejects undeclared lookups, and whose reads have a time limit."""

    result_list: Sequence[Any]
    is_limited_to_recent = False  # Older rows are omitted; see get_queryset
    skips_rows = False  # No row is shown: see :func:`filters_only_request` and :meth:`_runs_action`

    def url_for_result(self, result: Any) -> str:
        """Return the URL of a row's page."""
        options = self.opts
        name = f"admin:{options.app_label}_{options.model_name}_change"
        return reverse(name, args=[quote(getattr(result, self.pk_attname))])

    def get_filters(self, request: HttpRequest) -> tuple[Any, ...]:
        """Return the filters. Raises IncorrectLookupParameters for undeclared lookups."""
        specs, has_filters, others, duplicates, _ = super().get_filters(request)
        # Django leaves out a filter that has nothing to choose, such as of types once none is left.
        # Without it, the list would show everything.
        known = {name for spec in specs for name in spec.expected_parameters()}
        chosen = {name for name, values in self.get_filters_params().items() if any(values)}
        if unknown := {*others} | chosen - known:
            raise IncorrectLookupParameters(f"unknown conditions: {sorted(unknown)}")
        # A form sends filters without a value, too.
        is_active = any(getattr(spec, "is_active", spec.value()) for spec in specs)
        return specs, has_filters, others, duplicates, is_active

    @property
    def chosen_filters(self) -> str:
        """The chosen filters as a query, without the search and the page."""
        chosen = {
            name: value
            for spec in self.filter_specs
            for name in spec.expected_parameters()
            if (value := spec.used_parameters.get(name))
        }
        return urlencode(chosen)

    def get_queryset(self, request: HttpRequest, *args: Any, **options: Any) -> QuerySet:
        """Return the rows. An unindexed filter without a time range shows only ``RECENT`` rows.

        Raises IncorrectLookupParameters for a search that is too long.
        """
        if len(self.query) > MAX_SEARCH:
            raise IncorrectLookupParameters(f"a search of over {MAX_SEARCH} characters")
        queryset = super().get_queryset(request, *args, **options)
        times = [spec for spec in self.filter_specs if isinstance(spec, TimeFilter)]
        is_unindexed = any(
            getattr(spec, "is_unindexed", False) and spec.value() for spec in self.filter_specs
        )
        if times and is_unindexed and not self.query and not any(spec.is_active for spec in times):
            self.is_limited_to_recent = True
            return queryset.filter(times[0].since(RECENT))
        return queryset

    def get_ordering(self, request: HttpRequest, queryset: QuerySet) -> list[str]:
        """Return the admin's own order, which ends in the key and is served by an index."""
        return list(self.model_admin.get_ordering(request))

    def get_results(self, request: HttpRequest) -> None:
        """Read one page. If the read exceeds its time limit, show an empty page and a notice."""
        self.skips_rows = getattr(request, _FILTERS_ONLY, False) or self._runs_action(request)
        if self.skips_rows:
            self._clear_results()
            return
        try:
            with pymongo.timeout(PAGE_SECONDS):
                self.read_page(request)
        except (DatabaseError, PyMongoError) as error:
            if not is_timeout(error):
                raise
            messages.warning(request, TOO_SLOW)
            self._clear_results()
        self.full_result_count = self.result_count
        self.model_admin.prepare_rows(request, self.result_list)

    def _runs_action(self, request: HttpRequest) -> bool:
        """Return whether the request runs an action, so that no list is shown."""
        # A user without actions gets the list, even after a POST.
        has_selection = ACTION_CHECKBOX_NAME in request.POST or "index" in request.POST
        is_action = request.method == "POST" and has_selection and "_save" not in request.POST
        return is_action and bool(self.model_admin.get_actions(request))

    def read_page(self, request: HttpRequest) -> None:
        """Read the rows of one page."""
        super().get_results(request)
        self.result_list = list(self.result_list)

    def _clear_results(self) -> None:
        self.paginator = self.model_admin.paginator([], self.list_per_page)
        self.result_count: int = 0
        self.full_result_count = 0
        self.show_admin_actions = self.can_show_all = self.multi_page = False
        self.result_list = []


def section(title: str | None, *fields: str) -> tuple[str | None, dict[str, Sequence[str]]]:
    """Return a section of an object's page, for ``fieldsets``."""
    return title, {"fields": fields}


class ConsoleAdmin(ModelAdmin):
    """The base of every admin. ``ordering`` must end in the key and be served by an index."""

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0
    list_filter_submit = True
    list_disable_select_all = True
    sortable_by = ()
    list_before_template = "console/widgets/list_notices.html"
    change_form_before_template = "console/widgets/shown_digests.html"
    warn_unsaved_form = True
    changelist_class: type[BoundedChangeList] = BoundedChangeList
    list_index: str | None = None  # Hint for pages without a search; None: MongoDB chooses
    list_match: Mapping[str, Any] = {}
    """Condition that all rows meet, with which an index serves the order of those pages."""
    is_countable = True
    """Whether a stored condition stays right: the filters depend on no other documents."""
    noun = ""  # The console's word for one object, if it isn't the model's
    empty_title = "No items"
    empty_text = ""
    empty_link: tuple[str, str] | None = None  # URL name and text of a link on the empty list

    @property
    def url_name(self) -> str:
        """The prefix of the names of this admin's URLs."""
        return f"{self.opts.app_label}_{self.opts.model_name}"

    def get_urls(self) -> list[URLPattern]:
        """Return all URLs. Own URLs are first, because the admin's last URL matches any path."""
        return [*self.own_urls(), *super().get_urls()]

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs that Django's admin doesn't have."""
        return []

    def url(self, route: str, view: Any, name: str, **options: Any) -> URLPattern:
        """Return the URL of a view. ``options`` are passed to the view."""
        view = self.admin_site.admin_view(view)
        return path(route, view, options, name=f"{self.url_name}_{name}")

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[BoundedChangeList]:
        """Return the class of the list."""
        return self.changelist_class

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Return the rows that a text finds, each once; without a text, all rows."""
        text = pasted(search_term)
        return self.search(request, queryset, text) if text else queryset, False

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the rows that a text finds."""
        return super().get_search_results(request, queryset, text)[0]

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add data of other documents to the rows of a page, in one read for all rows."""

    def get_object(self, request: HttpRequest, *args: Any) -> Any:
        """Return one object, prepared like a row."""
        found = super().get_object(request, *args)
        if found is not None:
            self.prepare_rows(request, [found])
        return found

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the list, titled by what it holds."""
        # Django's is "Select type to change".
        title = capfirst(self.opts.verbose_name_plural)
        shown: HttpResponse = super().changelist_view(
            request, {"title": title, **(extra_context or {})}
        )
        return shown

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show one object with the context of :meth:`page_context`."""
        context = self.page_context(request, object_id) | (extra_context or {})
        response: HttpResponse = super().change_view(request, object_id, form_url, context)
        data = getattr(response, "context_data", None) or {}
        if (shown := data.get("original")) is not None:
            # Django's is "Change type", with the object as the subtitle.
            data |= {"title": self.object_title(shown), "subtitle": None}
        return response

    def changeform_view(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        """Show or store a form; again, if another user or client was faster.

        The form then finds what was stored after its check, and names it beside what was entered.
        """
        shown: HttpResponse
        for _ in range(FORM_ATTEMPTS):
            try:
                shown = super().changeform_view(request, *args, **options)
            except (DatabaseError, DuplicateKeyError, OvertakenError) as error:
                if not _was_overtaken(error):
                    raise
            else:
                return shown
        messages.error(request, f"Not saved. {OVERTAKEN}")
        return HttpResponseRedirect(request.get_full_path())

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> Any:
        """Return a form's page without *Save and add another*."""
        context["show_save_and_add_another"] = False
        return super().render_change_form(request, context, *args, **options)

    def object_title(self, obj: Any) -> str:
        """Return the title of an object's page: what it is, rather than its ID."""
        return getattr(obj, "page_title", None) or str(obj)

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return additional template context of the object's page."""
        return {}

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        """Return a form class that stores only the fields the user changed."""
        form = compared(super().get_form(request, obj, change, **options))
        shown = options.get("fields")
        if shown is not None:
            # Django keeps a declared field that the page doesn't show, and takes it from a POST.
            for name in form.base_fields.keys() - set(shown):
                del form.base_fields[name]
        return form

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store a new object or, of an existing one, the fields that the user changed."""
        if not change:
            # Without this, Django replaces what another has added with the same ID.
            obj.save(force_insert=True)
        elif names := self.changed_columns(form):
            automatic = (
                field.name for field in self.opts.fields if getattr(field, "auto_now", False)
            )
            obj.save(update_fields=[*names, *automatic])

    def changed_columns(self, form: Any) -> list[str]:
        """Return the names of the stored fields that a form changes."""
        stored = {field.name for field in self.opts.concrete_fields}
        return [name for name in form.changed_data if name in stored]

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record a change in the audit log. A save without a change isn't one."""
        obj.is_unchanged = not message
        return super().log_change(request, obj, message) if message else None

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Redirect after a save, and say whether it changed anything."""
        if not getattr(obj, "is_unchanged", False):
            return super().response_change(request, obj)
        messages.info(request, "No change: the form was saved as it was.")
        if "_continue" in request.POST:
            return HttpResponseRedirect(request.path)
        return self.response_post_save_change(request, obj)

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> list[dict[str, dict[str, Any]]]:
        """Return the audit entry of a form, which names the values before and after."""
        found: list[dict[str, dict[str, Any]]] = super().construct_change_message(
            request, form, formsets, add
        )
        for entry in found:
            # An entry with a name is about an inline form.
            if "name" not in entry.get("changed", {"name": ""}):
                entry["changed"]["fields"] = changed_fields(form)
        return [entry for entry in found if entry.get("changed", {}).get("fields") != []]

    @admin.display(description=ModelAdmin.action_checkbox.short_description)
    def action_checkbox(self, obj: Any) -> SafeString:
        """Return a row's checkbox. For speed, the widget is rendered once for all rows."""
        before, after = self._checkbox_parts
        return format_html("{}{}{}", before, obj.pk, after)

    @cached_property
    def _checkbox_parts(self) -> tuple[SafeString, SafeString]:
        before, _, after = checkbox.render(ACTION_CHECKBOX_NAME, _KEY_PLACEHOLDER).partition(
            _KEY_PLACEHOLDER
        )
        return SafeString(before), SafeString(after)

    def response_action(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        """Run an action on the selected rows, never on all matches. Ignores malformed keys."""
        selected = request.POST.getlist(ACTION_CHECKBOX_NAME)
        request.POST = request.POST.copy()
        request.POST["select_across"] = "0"
        request.POST.setlist(ACTION_CHECKBOX_NAME, list(filter(self._is_key, selected)))
        return super().response_action(request, queryset)

    def _is_key(self, text: str) -> bool:
        try:
            self.opts.pk.to_python(text)
        except ValidationError:
            return False
        return True


def never(_admin: Any, _request: HttpRequest, *_args: Any) -> bool:
    """Return False. As a method of an admin, denies a permission to everyone."""
    return False


class ReadOnlyAdmin(ConsoleAdmin):
    """An admin without adding, changing, and deleting."""

    has_add_permission = has_change_permission = has_delete_permission = never


class ListOnlyAdmin(ReadOnlyAdmin):
    """A read-only admin whose objects have no page of their own."""

    list_display_links = None

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may see the list."""
        return obj is None and super().has_view_permission(request)


def filters_only_request(request: HttpRequest, query: QueryDict) -> HttpRequest:
    """Return a copy of the request that applies a list's filters without reading rows."""
    filters_request = copy.copy(request)
    filters_request.method, filters_request.GET = "GET", query
    setattr(filters_request, _FILTERS_ONLY, True)
    return filters_request


def describe_filters(changelist: BoundedChangeList, *, is_frozen: bool) -> list[str]:
    """Return a list's filters in words. If they are frozen, no time moves with now."""
    lines = []
    for spec in changelist.filter_specs:
        title = str(spec.title).capitalize()
        if isinstance(spec, TimeFilter):
            since, until = spec.limits
            span = None if is_frozen or not isinstance(since, Ago) else spec.value()
            ends = [f"from {since:%Y-%m-%d %H:%M}"] if since and span is None else []
            ends += [f"until {until:%Y-%m-%d %H:%M}"] if until else []
            text = [SPANS[span][0].lower()] if span is not None else []
            text += [f"{' '.join(ends)} UTC"] if ends else []
            if text:
                lines.append(f"{title}: {' '.join(text)}")
        elif value := spec.value():
            choices = {str(choice): str(label) for choice, label in spec.lookup_choices}
            lines.append(f"{title}: {choices.get(value, value)}")
    if changelist.is_limited_to_recent:
        lines.append(SPANS[RECENT][0])
    return lines


def search_text(request: HttpRequest) -> str:
    """Return the search text of a list, which may be empty."""
    return pasted(request.GET.get(SEARCH_VAR, ""))


def find_by_notification(queryset: QuerySet, text: str, *, cap: int) -> QuerySet:
    """Return the document with this key, or up to ``cap`` about the notification with this ID."""
    if not ObjectId.is_valid(text):
        return queryset.filter(pk=text)
    rows = collection(queryset.model._meta.db_table).find(
        {"notification_id": ObjectId(text)}, {"_id": 1}, limit=cap
    )
    return queryset.filter(pk__in=[row["_id"] for row in rows])
