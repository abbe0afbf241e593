"""The list of a saved view, and what its filters mean in this version."""

from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import SEARCH_VAR
from django.core.exceptions import EmptyResultSet
from django.http import HttpRequest, QueryDict

from notifyproject.db.match import match_of
from notifyproject.db.stored_match import dump_match

from ..widgets.filters import TimeFilter
from ..widgets.lists import ConsoleAdmin, describe_filters, filters_only_request

GONE_LIST = "Its list no longer exists."
GONE_FILTER = "A filter or a choice of it no longer exists. Delete it, and save another."


class BrokenViewError(Exception):
    """The list doesn't exist, or doesn't know a filter. The message is for the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenFilters:
    """The filters of a list, without a search and a page."""

    query: str
    """They as parameters of the list's URL; empty if there are none."""
    words: tuple[str, ...]
    source: str
    """The collection."""
    match: str | None
    """The condition as stored text; None if the list can't be counted by one."""
    index: str | None


def find_list(name: str) -> ConsoleAdmin | None:
    """Return the list whose URLs have this name, if it has filters."""
    for found in admin.site._registry.values():
        if isinstance(found, ConsoleAdmin) and found.url_name == name and found.list_filter:
            return found
    return None


def may_see(request: HttpRequest, list_name: str) -> bool:
    """Return whether the user may open a list. Nobody may open one that doesn't exist."""
    found = find_list(list_name)
    return found is not None and bool(found.has_view_permission(request))


def forbidden_lists(request: HttpRequest) -> list[str]:
    """Return the names of the lists that the user may not open."""
    return [
        found.url_name
        for found in admin.site._registry.values()
        if isinstance(found, ConsoleAdmin) and not found.has_view_permission(request)
    ]


def read_filters(request: HttpRequest, *, list_name: str, query: str) -> ChosenFilters:
    """Return what a query of a list chooses. Raises BrokenViewError.

    Nothing is left out that the list doesn't know: a view without one of its filters would show
    and count more than its name says.
    """
    list_admin: Any = find_list(list_name)
    if list_admin is None:
        raise BrokenViewError(GONE_LIST)
    parameters = QueryDict(query, mutable=True)
    parameters.pop(SEARCH_VAR, None)
    try:
        changelist = list_admin.get_changelist_instance(filters_only_request(request, parameters))
        match = {"$and": [match_of(changelist.queryset), dict(list_admin.list_match)]}
    except (IncorrectLookupParameters, EmptyResultSet) as error:
        raise BrokenViewError(GONE_FILTER) from error
    if any(spec.form.errors for spec in changelist.filter_specs if isinstance(spec, TimeFilter)):
        raise BrokenViewError(GONE_FILTER)
    return ChosenFilters(
        query=changelist.chosen_filters,
        words=tuple(describe_filters(changelist, is_frozen=False)),
        source=list_admin.opts.db_table,
        match=dump_match(match) if list_admin.is_countable else None,
        index=list_admin.list_index,
    )
