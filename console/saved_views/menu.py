"""The saved views in the menu, and their counts, which the page asks for once it is shown."""

from collections.abc import Iterator, Mapping
from functools import cache
from time import monotonic
from typing import Any

import pymongo
import structlog
from bson import ObjectId
from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.urls import reverse
from django.utils.html import escape
from pymongo.errors import PyMongoError

from domain.time import utc_now
from monitoring import saved_views
from monitoring.documents import SavedViewDocument
from monitoring.saved_views import COUNT_CAP

from ..widgets.lists import is_timeout
from .filters import BrokenViewError, ChosenFilters, may_see, read_filters

log = structlog.get_logger(__name__)
MAY_SEE = "analytics.view_savedview"
OPEN = "admin:analytics_savedview_open"
COUNT_SECONDS = 0.5
"""Time limit of one count. After it, the menu shows none."""
ALL_SECONDS = 2.0
"""Time limit of all counts of a menu."""
KEPT_SECONDS = 15.0
"""How long a process shows a count again."""
MAX_KEPT = 500
_NOTHING: Mapping[str, str] = {}
_kept: dict[ObjectId, tuple[float, Mapping[str, str]]] = {}


def visible_views(request: HttpRequest) -> list[SavedViewDocument]:
    """Return the user's own views and the shared ones, of lists that the user may open."""
    if not request.user.has_perm(MAY_SEE):
        return []
    found = [*saved_views.own(request.user.pk), *saved_views.shared()]
    return [view for view in found if may_see(request, view["list"])]


def menu_items(request: HttpRequest) -> Iterator[dict[str, Any]]:
    """Return the entries of the menu, in the form that the theme reads."""
    for view in visible_views(request):
        path, query = request.path, request.GET.urlencode()
        yield {
            # The theme trusts titles.
            "title": escape(view["name"]),
            "icon": icon_of(view),
            "link": url_of(view),
            "active": query == view["query"] and path == list_url(view["list"]),
        }


@cache
def list_url(name: str) -> str:
    """Return the path of a list by the name of its URLs."""
    return reverse(f"admin:{name}_changelist")


def url_of(view: SavedViewDocument) -> str:
    """Return the URL that opens a view."""
    return reverse(OPEN, args=[view["_id"]])


def icon_of(view: SavedViewDocument) -> str:
    """Return the icon of a view: whether it is shared."""
    return "group" if view["is_shared"] else "filter_list"


def counts(request: HttpRequest) -> JsonResponse:
    """Return the count of each view in the menu by its URL, or why it can't be shown.

    What can't be counted in time has no count.
    """
    until = monotonic() + ALL_SECONDS
    found: dict[str, Mapping[str, str]] = {}
    for view in visible_views(request):
        kept_at, shown = _kept.get(view["_id"], (-KEPT_SECONDS, _NOTHING))
        left = until - monotonic()
        if monotonic() - kept_at >= KEPT_SECONDS and left > 0:
            shown = _shown(request, view, seconds=min(left, COUNT_SECONDS))
            if len(_kept) >= MAX_KEPT:
                _kept.clear()
            _kept[view["_id"]] = monotonic(), shown
        if shown:
            found[url_of(view)] = shown
    return JsonResponse(found)


def forget() -> None:
    """Forget all counts of this process."""
    _kept.clear()


def _shown(request: HttpRequest, view: SavedViewDocument, *, seconds: float) -> Mapping[str, str]:
    try:
        with pymongo.timeout(seconds):
            filters = read_filters(request, list_name=view["list"], query=view["query"])
            current = keep_condition(view, filters)
            if filters.match is None:
                return _NOTHING
            number = saved_views.count(current, limit=COUNT_CAP + 1, seconds=seconds, now=utc_now())
    except BrokenViewError as error:
        return {"problem": str(error)}
    except (DatabaseError, PyMongoError) as error:
        if not is_timeout(error):
            log.warning("saved_view_not_counted", view=str(view["_id"]), exc_info=error)
        return _NOTHING
    return {"count": f"{number:,}" if number <= COUNT_CAP else f"{COUNT_CAP:,}+"}


def keep_condition(view: SavedViewDocument, filters: ChosenFilters) -> SavedViewDocument:
    """Store what a view's filters mean now, for its alert, if another version stored it."""
    if (view.get("match"), view.get("index")) == (filters.match, filters.index):
        return view
    saved_views.store_condition(view["_id"], match=filters.match, index=filters.index)
    return {**view, "match": filters.match, "index": filters.index}
