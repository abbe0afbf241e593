"""A cohort is what a list shows: its filters, its search and its limits in time, on all pages."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import EmptyResultSet
from django.http import HttpRequest, QueryDict

from domain.states import Channel
from notifications.bulk import selection
from notifications.bulk.operation import Selection
from notifications.models import Notification
from notifyproject.db.match import match_of
from recipients.masking import mask_text

from ..notifications import filters
from ..widgets.filters import TimeFilter
from ..widgets.lists import filters_only_request

CODE, PROVIDER, CHANNEL, STATUS = "code", "provider", "channel", "delivery_status"
PAGING_PARAMETERS = ("p", "all", "o", "e", "cursor", "list")
"""Parameters of a list that say which part of it is looked at."""


class UnknownListError(Exception):
    """There is no such list, or it cannot be narrowed like that; the message says so."""


def selection_of_list(request: HttpRequest, *, name: str, query: str) -> tuple[Any, Selection]:
    """Return a list's admin, and the cohort that is what the list shows with this query.

    ``name`` is the list's model. Raises NoSuchList.
    """
    list_admin = _admin_of(name)
    if list_admin is None or not list_admin.has_view_permission(request):
        raise UnknownListError("There is no such list.")
    params = QueryDict(query)
    try:
        changelist = list_admin.get_changelist_instance(filters_only_request(request, params))
        match = match_of(changelist.queryset)
    except (IncorrectLookupParameters, EmptyResultSet) as error:
        raise UnknownListError("No notification can be in this list.") from error
    channel = params.get(CHANNEL)
    return list_admin, Selection(
        match=match,
        order=selection.order_field(list_admin.ordering[0]),
        description=(
            str(list_admin.opts.verbose_name_plural).capitalize(),
            *_filter_descriptions(changelist),
        ),
        channels=(Channel(channel),) if channel else tuple(Channel),
        delivery_filter=_delivery_filters(params),
    )


def filter_query(query: str) -> str:
    """Return what narrows a list of a list's query, without what pages through it."""
    params = QueryDict(query, mutable=True)
    for parameter in PAGING_PARAMETERS:
        params.pop(parameter, None)
    return params.urlencode()


def _admin_of(name: str) -> Any:
    """Return the admin of a list of notifications; None if there is none of this name."""
    for model, found in admin.site._registry.items():
        if issubclass(model, Notification) and model._meta.model_name == name:
            return found
    return None


def _delivery_filters(params: Mapping[str, Any]) -> dict[str, str | None]:
    """Return what the list's filters say of the one delivery they are about."""
    only: dict[str, str | None] = {}
    if code := params.get(CODE):
        only["failure_code"] = code
    if status := params.get(STATUS):
        only["status"] = status
    if provider := params.get(PROVIDER):
        only["provider"] = None if provider == filters.NO_PROVIDER else provider
    return only


def _filter_descriptions(changelist: Any) -> list[str]:
    """Return a list's filters in words; spans back from now as the instants they mean now."""
    lines = []
    for spec in changelist.filter_specs:
        if isinstance(spec, TimeFilter):
            since, until = spec.limits
            ends = [f"from {since:%Y-%m-%d %H:%M}"] if since else []
            ends += [f"until {until:%Y-%m-%d %H:%M}"] if until else []
            if ends:
                lines.append(f"{str(spec.title).capitalize()}: {' '.join(ends)} UTC")
        elif value := spec.value():
            words = {str(word): str(label) for word, label in spec.lookup_choices}
            lines.append(f"{str(spec.title).capitalize()}: {words.get(value, value)}")
    if changelist.query:
        lines.append(f"Search: {mask_text(changelist.query)}")
    if changelist.is_limited_to_recent:
        lines.append("The last 7 days")
    return lines
