"""The results of a file: the progress of its broadcast, and what became of each row."""

from itertools import islice
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from domain.states import NotificationStatus
from notifications.broadcasts import repository
from notifications.files import downloads
from notifications.files.downloads import RowResult

from ..broadcasts.actions import BROADCAST_ACTIONS
from ..broadcasts.labels import summarize
from ..broadcasts.page import progress_of, status_counts
from ..texts.labels import STATUS_LABELS, broadcast_state
from ..widgets import names
from ..widgets.columns import chip
from .labels import worded
from .preview import number_in
from .steps import CHECK, REFRESH_SECONDS, RESULTS, ROWS, file_page, opened, url_of

SHOWN_ROWS = 50


def rows(request: HttpRequest, object_id: str) -> HttpResponse:
    """Show the progress of a file's broadcast, and some of its rows."""
    document = opened(request, object_id)
    if isinstance(document, HttpResponse):
        return document
    broadcast = repository.get(document["_id"])
    if broadcast is None:
        # It may be sealed by a confirmation that was lost before it stored the broadcast.
        return HttpResponseRedirect(url_of(CHECK, document))
    is_refresh = request.headers.get("HX-Request") == "true"
    if is_refresh and request.GET.get("was") != broadcast["status"]:
        return HttpResponse(headers={"HX-Refresh": "true"})
    start = number_in(request.GET.get("from", "")) or 0
    pairs = list(islice(downloads.read_rows(document, start=start), SHOWN_ROWS + 1))
    is_over = "finished_at" in broadcast
    found = list(downloads.results_of(document, pairs[:SHOWN_ROWS], is_over=is_over))
    label, color = broadcast_state(broadcast["status"], is_throttled=broadcast["is_waiting"])
    return file_page(
        request,
        # A whole page has inline styles of the theme, which the policy refuses in a part.
        "rows_refresh.html" if is_refresh else "rows.html",
        document,
        title="Results",
        is_refresh=is_refresh,
        broadcast=broadcast,
        type_name=names.type_names([document["type"]])[document["type"]],
        status=label,
        color=color,
        headline=summarize(broadcast),
        progress=progress_of(broadcast),
        status_counts=status_counts(document["_id"]),
        actions=[
            action
            for action in BROADCAST_ACTIONS
            if broadcast["status"] in action.statuses and request.user.has_perm(action.permission)
        ],
        may_see_broadcast=request.user.has_perm("notifications.view_broadcast"),
        may_see_notifications=request.user.has_perm("notifications.view_notification"),
        rows=[_row(each) for each in found],
        start=start,
        next_row=pairs[SHOWN_ROWS][0].number if len(pairs) > SHOWN_ROWS else None,
        rows_url=url_of(ROWS, document),
        results_url=url_of(RESULTS, document),
        refresh_seconds=None if is_over else REFRESH_SECONDS * 5,
    )


def _row(result: RowResult) -> dict[str, Any]:
    has_status = result.status != ""
    return {
        "number": result.row,
        "notification_id": result.notification_id,
        "chip": chip(*STATUS_LABELS[NotificationStatus(result.status)]) if has_status else "",
        "problem": worded(result.problem),
    }
