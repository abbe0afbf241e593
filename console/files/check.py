"""What the check of a file found: progress, wrong rows by sentence, and their download."""

from collections.abc import Callable, Iterator
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode

from domain.states import FileStatus
from domain.time import utc_now
from notifications.actions.actions import InvalidStateError
from notifications.broadcasts import repository as broadcasts
from notifications.documents.files import AudienceFileDocument
from notifications.files import control, downloads, parts, repository
from notifications.files.downloads import BYTE_ORDER_MARK
from notifications.models import AudienceFile

from ..widgets.actions import record_change, require_post
from ..widgets.links import BROADCAST, MAY_SEND_FILE, START_FILE
from . import labels
from .steps import (
    CHECK,
    PROGRESS,
    REFRESH_SECONDS,
    file_page,
    is_sent,
    may_see_rows,
    next_page,
    opened,
    url_of,
)

F = FileStatus
MOST_WRONG = 0.01
"""Share of wrong rows up to which sending the others is what the page suggests."""
RUNNING = "Its broadcast isn't over. Cancel it first."


def check(request: HttpRequest, object_id: str) -> HttpResponse:
    """Show the progress of a check, or what it found."""
    document = opened(request, object_id)
    if isinstance(document, HttpResponse):
        return document
    if document["status"] in (F.UPLOADING, F.READING, F.UNMAPPED):
        return HttpResponseRedirect(next_page(document))
    may_see = may_see_rows(request.user, document)
    head = parts.read_head(document["_id"]) if may_see else None
    return file_page(
        request,
        "check.html",
        document,
        title=_title(document),
        step=CHECK,
        **_progress(document),
        state=labels.file_state(document),
        **{
            name: labels.sentences(found, document, head)
            for name, found in {
                "wrong": [each for each in document["problems"] if not each["is_skipped"]],
                "skipped": [each for each in document["problems"] if each["is_skipped"]],
                "doubts": document["doubts"],
            }.items()
        },
        suggests_good=is_mostly_right(document),
        is_open=document["status"] == F.CHECKED and not is_sent(document),
        correct_url=f"{reverse(START_FILE)}?{urlencode({'again': document['_id']})}",
        earlier=[
            {"at": at, "url": reverse(BROADCAST, args=[broadcast_id])}
            for broadcast_id, at in repository.sent_before(document)
        ],
        may_see_broadcasts=request.user.has_perm("notifications.view_broadcast"),
    )


def progress(request: HttpRequest, object_id: str) -> HttpResponse:
    """Return the progress for htmx, or make the browser reload the page at a new status."""
    document = opened(request, object_id)
    if isinstance(document, HttpResponse) or request.GET.get("was") != document["status"]:
        return HttpResponse(headers={"HX-Refresh": "true"})
    context = {"document": document, **_progress(document)}
    return HttpResponse(render_to_string("console/files/progress.html", context, request))


def wrong_rows(request: HttpRequest, object_id: str) -> HttpResponseBase:
    """Return the rows that wouldn't be sent, as CSV, to who may see them."""
    return _download(request, object_id, downloads.wrong_rows, "wrong", has_cells=True)


def results(request: HttpRequest, object_id: str) -> HttpResponseBase:
    """Return what became of each row, as CSV."""
    return _download(request, object_id, _marked_results, "results", has_cells=False)


def remove(request: HttpRequest, object_id: str) -> HttpResponse:
    """Remove what a file contains; POST only."""
    if refused := require_post(request, allowed=request.user.has_perm(MAY_SEND_FILE)):
        return refused
    document = opened(request, object_id)
    if isinstance(document, HttpResponse):
        return document
    broadcast = broadcasts.get(document["_id"])
    if broadcast is not None and "finished_at" not in broadcast:
        messages.warning(request, f"No change: {RUNNING}")
        return HttpResponseRedirect(next_page(document))
    try:
        control.remove(document, now=utc_now())
    except InvalidStateError as refused:
        messages.warning(request, f"No change: {refused}")
        return HttpResponseRedirect(next_page(document))
    _record(request, document, "Removed.")
    messages.success(request, "The content of the file is removed. Its counts stay.")
    return HttpResponseRedirect(reverse(START_FILE))


def is_mostly_right(document: AudienceFileDocument) -> bool:
    """Return whether so few rows are wrong that the others may be sent by default."""
    return document["wrong"] <= MOST_WRONG * document.get("rows", 0)


def _title(document: AudienceFileDocument) -> str:
    if document["status"] == F.CHECKING:
        return "Checking the rows"
    if document["status"] in (F.REFUSED, F.REMOVED):
        return labels.file_state(document)[0]
    return f"{document['good']:,} of {document.get('rows', 0):,} rows can be sent"


def _progress(document: AudienceFileDocument) -> dict[str, Any]:
    return {
        "progress_url": url_of(PROGRESS, document),
        "refresh_seconds": REFRESH_SECONDS,
        "checked": document["good"] + document["wrong"] + document["skipped"],
        "rows": document.get("rows", 0),
    }


def _marked_results(document: AudienceFileDocument) -> Iterator[str]:
    yield BYTE_ORDER_MARK
    yield from downloads.results(document)


def _download(
    request: HttpRequest,
    object_id: str,
    lines: Callable[[AudienceFileDocument], Iterator[str]],
    name: str,
    *,
    has_cells: bool,
) -> HttpResponseBase:
    document = opened(request, object_id)
    if isinstance(document, HttpResponse):
        return document
    if has_cells and not may_see_rows(request.user, document):
        raise PermissionDenied
    if document["status"] != F.CHECKED:
        raise Http404
    _record(request, document, f"Downloaded: {name} rows." if has_cells else "Downloaded: results.")
    file_name = f"file-{document['_id']}-{name}.csv"
    return StreamingHttpResponse(
        lines(document),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )


def _record(request: HttpRequest, document: AudienceFileDocument, message: str) -> None:
    name = f"{document['type']} {document['_id']}"
    record_change(request, AudienceFile, document["_id"], message, name=name)
