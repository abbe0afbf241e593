"""What the admin needs so that its lists stay quick over large collections.

Every list is ordered by an index, counts no more than it must, reads within a time limit, and can
be narrowed in the ways its admin declares, and in no other.
"""

import copy
from collections.abc import Sequence
from math import ceil
from typing import Any

import pymongo
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters, ShowFacets
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.paginator import Paginator
from django.db import DatabaseError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from pymongo.errors import PyMongoError
from unfold.admin import ModelAdmin, checkbox
from unfold.views import ChangeList

from notifyproject.db.collections import collection

from .filters import RECENT, TimeFilter

COUNT_CAP = 10_000
"""No list counts, or pages, beyond this many rows."""
COUNT_SECONDS = 0.5
"""How long counting may take before the page does without."""
PAGE_SECONDS = 5.0
"""How long reading the rows of a page may take."""
_KEY_PLACEHOLDER = "place-of-the-key"
_FILTERS_ONLY = "is_for_filters_only"
TOO_SLOW = (
    "This would read too much. Choose a shorter time, or search for one notification or person."
)


class CappedPaginator(Paginator):
    """Counts at most COUNT_CAP rows, estimates a whole collection, and gives up on slow counts.

    Pages end where counting ends: skipping further would read everything before it.
    """

    template_name = "admin/console/pagination.html"

    @cached_property
    def count(self) -> int:
        """The number of rows, exact unless :attr:`described` says otherwise."""
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
        """The number of pages one may turn to, at least one."""
        return max(1, ceil(min(self.count, COUNT_CAP) / self.per_page))

    @property
    def count_label(self) -> str:
        """The number of rows in words: exact, more than the cap, or about so many."""
        if self.count <= COUNT_CAP:
            return f"{self.count:,}"
        if isinstance(self.object_list, QuerySet) and not self.object_list.query.where:
            return f"about {self.count:,}"
        return f"more than {COUNT_CAP:,}"


def is_timeout(error: BaseException) -> bool:
    """Return whether a read was stopped because it took too long."""
    cause = error if isinstance(error, PyMongoError) else error.__cause__
    return isinstance(cause, PyMongoError) and cause.timeout


class BoundedChangeList(ChangeList):
    """A list that refuses undeclared look-ups and reads within a time window and a time limit."""

    result_list: Sequence[Any]
    is_limited_to_recent = False
    """A filter that no index serves is on, and nobody chose a time: older rows are left out."""
    is_filters_only = False
    """Nobody looks at its rows: only what narrows it is asked for; see :func:`for_filters`."""

    def get_filters(self, request: HttpRequest) -> tuple[Any, ...]:
        """Return the filters; raises IncorrectLookupParameters for any other condition."""
        specs, has_filters, others, duplicates, _ = super().get_filters(request)
        if others:
            raise IncorrectLookupParameters(f"unknown conditions: {sorted(others)}")
        # A form also sends the filters nobody touched.
        is_active = any(getattr(spec, "is_active", spec.value()) for spec in specs)
        return specs, has_filters, others, duplicates, is_active

    def get_queryset(self, request: HttpRequest, *args: Any, **options: Any) -> QuerySet:
        """Return the rows; recent ones only, if the filters would read too much otherwise."""
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
        """Return the admin's own order: it ends in the key, and an index serves it."""
        return list(self.model_admin.get_ordering(request))

    def get_results(self, request: HttpRequest) -> None:
        """Read one page; a page that takes too long is shown empty, with a word why."""
        self.is_filters_only = getattr(request, _FILTERS_ONLY, False)
        if self.is_filters_only:
            self._clear_results()
            return
        try:
            with pymongo.timeout(PAGE_SECONDS):
                self.read_page(request)
        except (DatabaseError, PyMongoError) as error:
            if not is_timeout(error):
                raise
            self._show_timeout(request)
        self.full_result_count = self.result_count
        self.model_admin.prepare_rows(request, self.result_list)

    def read_page(self, request: HttpRequest) -> None:
        """Read the rows of one page."""
        super().get_results(request)
        self.result_list = list(self.result_list)

    def _show_timeout(self, request: HttpRequest) -> None:
        messages.warning(request, TOO_SLOW)
        self._clear_results()

    def _clear_results(self) -> None:
        self.paginator = self.model_admin.paginator([], self.list_per_page)
        self.result_count: int = 0
        self.full_result_count = 0
        self.show_admin_actions = self.can_show_all = self.multi_page = False
        self.result_list = []


class ConsoleAdmin(ModelAdmin):
    """The base of every admin here. ``ordering`` must end in the key and be served by an index."""

    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_per_page = 50
    list_max_show_all = 0
    list_filter_submit = True
    list_disable_select_all = True
    sortable_by = ()
    list_before_template = "admin/console/list_before.html"
    list_index: str | None = None
    """The index that pages by place are read by unless the list is searched; None: any."""
    empty_title = "Nothing here yet"
    """What an empty list says."""
    empty_words = ""
    """How something comes into it."""
    empty_link: tuple[str, str] | None = None
    """Where to begin: a page of the console, and what is written on the link to it."""

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[BoundedChangeList]:
        """Return the kind of list: see :class:`BoundedChangeList`."""
        return BoundedChangeList

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add to the rows of a page what they show of other documents, in one read for all."""

    @admin.display(description=ModelAdmin.action_checkbox.short_description)
    def action_checkbox(self, obj: Any) -> SafeString:
        """Return a row's box: the widget is rendered once, and not for each row anew."""
        before, after = self._checkbox_parts
        return format_html("{}{}{}", before, obj.pk, after)

    @cached_property
    def _checkbox_parts(self) -> tuple[SafeString, SafeString]:
        before, _, after = checkbox.render(ACTION_CHECKBOX_NAME, _KEY_PLACEHOLDER).partition(
            _KEY_PLACEHOLDER
        )
        return SafeString(before), SafeString(after)

    def response_action(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        """Run an action on the rows that were ticked, never on all that match."""
        request.POST = request.POST.copy()
        request.POST["select_across"] = "0"
        return super().response_action(request, queryset)


class ReadOnlyAdmin(ConsoleAdmin):
    """An admin that shows and changes nothing."""

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        """Return False."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False."""
        return False


def filters_only_request(request: HttpRequest, query: QueryDict) -> HttpRequest:
    """Return a request for what narrows a list by a query, and for none of its rows."""
    filters_request = copy.copy(request)
    filters_request.method, filters_request.GET = "GET", query
    setattr(filters_request, _FILTERS_ONLY, True)
    return filters_request


def search_text(request: HttpRequest) -> str:
    """Return what the list is searched for; empty if it is not."""
    return request.GET.get(SEARCH_VAR, "").strip()
