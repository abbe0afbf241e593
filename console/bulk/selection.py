"""The selection of a bulk operation: all matches of a list's filters, search and time range."""

from collections.abc import Mapping
from typing import Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import EmptyResultSet
from django.http import HttpRequest, QueryDict

from domain.channels import Channel
from notifications.bulk import selection
from notifications.bulk.operation import Selection
from notifications.models import Notification
from notifyproject.db.match import match_of
from recipients.masking import mask_text

from ..notifications import filters
from ..widgets.lists import describe_filters, filters_only_request

PAGING_PARAMETERS = ("p", "all", "o", "e", "cursor", "list")


class UnknownListError(Exception):
    """The list doesn't exist or rejects the filters. The message is for the user."""


def selection_of_list(request: HttpRequest, *, name: str, query: str) -> tuple[Any, Selection]:
    """Return a list's admin, and the selection that ``query`` makes. Raises UnknownListError."""
    list_admin = next(
        (
            model_admin
            for model, model_admin in admin.site._registry.items()
            if issubclass(model, Notification) and model._meta.model_name == name
        ),
        None,
    )
    if list_admin is None or not list_admin.has_view_permission(request):
        raise UnknownListError("List not found.")
    params = QueryDict(query)
    try:
        changelist = list_admin.get_changelist_instance(filters_only_request(request, params))
        match = match_of(changelist.queryset)
    except (IncorrectLookupParameters, EmptyResultSet) as error:
        raise UnknownListError("Nothing selected.") from error
    channel = params.get("channel")
    return list_admin, Selection(
        match=match,
        order=selection.order_field(list_admin.ordering[0]),
        description=(
            str(list_admin.opts.verbose_name_plural).capitalize(),
            *describe_filters(changelist, is_frozen=True),
            *([f"Search: {mask_text(changelist.query)}"] if changelist.query else []),
        ),
        channels=(Channel(channel),) if channel else tuple(Channel),
        delivery_filter=_delivery_filters(params),
    )


def filter_query(query: str) -> str:
    """Return a list's query without its paging parameters."""
    params = QueryDict(query, mutable=True)
    for parameter in PAGING_PARAMETERS:
        params.pop(parameter, None)
    return params.urlencode()


def _delivery_filters(params: Mapping[str, Any]) -> dict[str, str | None]:
    chosen = {
        "failure_code": params.get("code"),
        "status": params.get("delivery_status"),
        "provider": params.get("provider"),
    }
    return {
        path: None if value == filters.NO_PROVIDER else value
        for path, value in chosen.items()
        if value
    }
