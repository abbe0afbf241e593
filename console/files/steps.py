"""What the pages of a file share: which file a URL means, who may see its rows, and the steps."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from access.clients import registry
from domain.states import FileStatus
from domain.time import utc_now
from notifications.broadcasts import repository as broadcasts
from notifications.documents.files import AudienceFileDocument
from notifications.files import repository
from notifications.intake.requests import Caller
from recipients.masking import can_see_addresses

from ..widgets.actions import not_found, parse_id
from ..widgets.links import FILE_ROWS, MAY_SEND_FILE, START_FILE

F = FileStatus
UPLOAD, CHUNK, COLUMNS, CHECK = (
    "send-file-upload",
    "send-file-chunk",
    "send-file-columns",
    "send-file-check",
)
PREVIEW, EMAIL, CONFIRM, ROWS = (
    "send-file-preview",
    "send-file-email",
    "send-file-confirm",
    FILE_ROWS,
)
PROGRESS, WRONG_ROWS, RESULTS = "send-file-progress", "send-file-wrong-rows", "send-file-results"
REMOVE, OPEN = "send-file-remove", "send-file-open"
STEPS: Mapping[str, str] = {
    COLUMNS: "File and columns",
    CHECK: "Check",
    PREVIEW: "Preview",
    CONFIRM: "Send",
}
REFRESH_SECONDS = 1


def require_permission(request: HttpRequest) -> None:
    """Raise PermissionDenied for a user who may not send to a file."""
    if not request.user.has_perm(MAY_SEND_FILE):
        raise PermissionDenied


def opened(request: HttpRequest, object_id: str) -> AudienceFileDocument | HttpResponse:
    """Return the file in a URL, or the response to one that isn't the console's.

    Raises PermissionDenied.
    """
    require_permission(request)
    file_id, client_id = parse_id(object_id), registry.find_client(registry.CONSOLE_CLIENT)
    found = repository.get(file_id, client_id=client_id) if file_id and client_id else None
    return found or not_found(request, "File", START_FILE)


def may_see_rows(user: Any, document: AudienceFileDocument) -> bool:
    """Return whether a user may see what a file contains: their own, or with whole addresses."""
    return document.get("uploaded_by") == str(user.pk) or can_see_addresses(user)


def is_sent(document: AudienceFileDocument) -> bool:
    """Return whether a file has a broadcast."""
    return "sealed_at" in document and broadcasts.get(document["_id"]) is not None


def caller(*, key: str | None = None) -> Caller:
    """Return the console as a client. Raises TakenNameError."""
    return Caller(client_id=registry.console_client_id(now=utc_now()), idempotency_key=key)


def url_of(name: str, document: AudienceFileDocument) -> str:
    """Return the URL of a page of a file."""
    return reverse(name, args=[document["_id"]])


def next_page(document: AudienceFileDocument) -> str:
    """Return the URL of the page on which a file continues."""
    if "sealed_at" in document:
        return url_of(ROWS, document)
    match FileStatus(document["status"]):
        case F.UPLOADING:
            return url_of(UPLOAD, document)
        case F.READING | F.UNMAPPED:
            return url_of(COLUMNS, document)
        case F.CHECKING | F.CHECKED | F.REMOVED | F.REFUSED:
            return url_of(CHECK, document)


def file_page(
    request: HttpRequest,
    template: str,
    document: AudienceFileDocument | None = None,
    *,
    title: str,
    step: str = "",
    **context: Any,
) -> TemplateResponse:
    """Return a page of a file within the console's frame."""
    frame = admin.site.each_context(request)
    return TemplateResponse(
        request,
        f"console/files/{template}",
        {
            **frame,
            "title": title,
            "document": document,
            "file_id": document["_id"] if document is not None else "",
            "steps": _steps(document, step),
            "may_see_rows": document is not None and may_see_rows(request.user, document),
            **context,
        },
    )


def _steps(document: AudienceFileDocument | None, current: str) -> Sequence[Mapping[str, Any]]:
    """Return the steps with links to those that can be opened."""
    urls: dict[str, str] = {}
    if document is not None and not is_sent(document):
        status, has_good = document["status"], document["good"] > 0
        reached = {
            COLUMNS: status in (F.UNMAPPED, F.CHECKING, F.CHECKED),
            CHECK: status in (F.CHECKING, F.CHECKED),
            PREVIEW: status == F.CHECKED and has_good,
        }
        urls = {name: url_of(name, document) for name, is_open in reached.items() if is_open}
    return [
        {"title": title, "url": urls.get(name, ""), "is_current": name == current}
        for name, title in STEPS.items()
    ]
