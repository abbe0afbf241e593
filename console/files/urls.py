"""The URLs of files of recipients."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path

from ..widgets.links import START_FILE
from . import check, columns, confirm, preview, rows, steps, upload
from .steps import next_page, opened


def resume(request: HttpRequest, object_id: str) -> HttpResponse:
    """Lead to the page on which a file continues."""
    document = opened(request, object_id)
    if isinstance(document, HttpResponse):
        return document
    return HttpResponseRedirect(next_page(document))


PAGES = {
    "": (resume, steps.OPEN),
    "upload/": (upload.upload, steps.UPLOAD),
    "chunk/": (upload.chunk, steps.CHUNK),
    "columns/": (columns.columns, steps.COLUMNS),
    "check/": (check.check, steps.CHECK),
    "progress/": (check.progress, steps.PROGRESS),
    "wrong.csv": (check.wrong_rows, steps.WRONG_ROWS),
    "remove/": (check.remove, steps.REMOVE),
    "preview/": (preview.preview, steps.PREVIEW),
    "email/": (preview.email, steps.EMAIL),
    "confirm/": (confirm.confirm, steps.CONFIRM),
    "rows/": (rows.rows, steps.ROWS),
    "results.csv": (check.results, steps.RESULTS),
}
"""The pages of one file."""
urlpatterns = [
    path("", admin.site.admin_view(upload.start), name=START_FILE),
    *(
        path(f"<str:object_id>/{end}", admin.site.admin_view(view), name=name)
        for end, (view, name) in PAGES.items()
    ),
]
