"""The upload of a file. A script sends its chunks; without it, the form sends the whole file."""

import re
from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.models import ADDITION
from django.core.files.uploadedfile import UploadedFile
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.utils.crypto import get_random_string
from unfold.widgets import UnfoldAdminSelectWidget

from access.clients import registry
from access.clients.registry import TakenNameError
from domain.states import Duplicates, FileStatus
from domain.tables.table import MAX_BYTES, MAX_COLUMNS, MAX_ROWS
from domain.time import utc_now
from notifications.actions.actions import InvalidStateError
from notifications.catalog import types
from notifications.catalog.types import TypeConfig
from notifications.documents.files import AudienceFileDocument
from notifications.files import control, parts, repository
from notifications.files.control import NewFileRequest
from notifications.models import AudienceFile
from notifications.validation import InvalidRequestError

from ..sending.form import sendable_types
from ..sending.page import TAKEN
from ..widgets import names
from ..widgets.actions import parse_id, record_change, require_post
from ..widgets.links import MAY_SEND_FILE
from . import labels
from .steps import (
    CHUNK,
    COLUMNS,
    UPLOAD,
    caller,
    file_page,
    may_see_rows,
    next_page,
    opened,
    require_permission,
    url_of,
)

_NUMBER = re.compile(r"[0-9]{1,2}")
SHOWN_FILES = 20
MAX_NAME = 255
HELP = (
    f"CSV, TSV, or XLSX, up to {MAX_BYTES // 2**20} MB, {MAX_ROWS:,} rows, and {MAX_COLUMNS} "
    "columns. The first row names the columns. Of a workbook, the first sheet is read."
)
JSON, FORM = "application/json", "multipart/form-data"
NOT_A_FORM = "A chunk is the whole body of its request, not a field of a form."
NO_FILE = "Choose a file. Without scripts, it may have up to 2 MB."
OTHER_FILE = "This file has {:,} bytes, and the one that was begun has {:,}. Choose the same file."


class UploadForm(forms.Form):
    """The type of the messages, and what a script says of the file before it sends it."""

    type = forms.ChoiceField(
        label="What do you want to send?",
        widget=UnfoldAdminSelectWidget,
        error_messages={"required": "Choose what to send."},
    )
    name = forms.CharField(required=False, max_length=MAX_NAME, widget=forms.HiddenInput)
    size = forms.IntegerField(required=False, widget=forms.HiddenInput)
    again = forms.CharField(required=False, max_length=24, widget=forms.HiddenInput)
    """The file of which this one is a correction."""

    def __init__(self, data: Any = None, **options: Any) -> None:
        super().__init__(data, use_required_attribute=False, **options)
        found = file_types()
        choices = [(config.slug, config.name) for config in found]
        blank = [] if len(found) == 1 else [("", "Choose")]
        self.fields["type"].choices = [*blank, *choices]


def file_types() -> list[TypeConfig]:
    """Return the types that staff may send to a file, by name.

    A reminder isn't one of them: it needs the time of an event, which the pages don't ask for.
    """
    return [
        config
        for config in sendable_types()
        if config.notify_before is None and not types.sensitive_variables(config.slug)
    ]


def start(request: HttpRequest) -> HttpResponse:
    """Show the form of a new file with the latest ones, and begin or store an upload."""
    require_permission(request)
    if request.method == "POST":
        return _create(request)
    again = _find_earlier(request.GET.get("again", ""))
    known = again["type"] if again is not None else request.GET.get("type", "")
    initial = {"type": known, "again": str(again["_id"]) if again is not None else ""}
    return _start_page(request, UploadForm(initial=initial))


def _create(request: HttpRequest) -> HttpResponse:
    form, content = UploadForm(request.POST), request.FILES.get("file")
    if form.is_valid():
        given = form.cleaned_data
        is_scripted = content is None and given["size"] is not None
        name, size = (given["name"], given["size"]) if is_scripted else ("", 0)
        if content is not None:
            name, size = (content.name or "")[:MAX_NAME], content.size or 0
        if content is None and not is_scripted:
            form.add_error(None, NO_FILE)
        else:
            new = NewFileRequest(type=given["type"], name=name, size=size)
            try:
                created = control.create(
                    new,
                    # An upload that is begun twice is of no harm: nobody checks the other one.
                    caller=caller(key=f"console-file-{get_random_string(20)}"),
                    uploaded_by=str(request.user.pk),
                    now=utc_now(),
                )
            except InvalidRequestError as refused:
                for problem in refused.problems:
                    form.add_error(None, problem.detail)
            except InvalidStateError as refused:
                form.add_error(None, str(refused))
            except TakenNameError as error:
                form.add_error(None, TAKEN.format(error))
            else:
                return _begun(request, created.document, content, again=given["again"])
    if JSON in request.headers.get("Accept", ""):
        found = [text for texts in form.errors.values() for text in texts]
        return JsonResponse({"problems": found}, status=422)
    return _start_page(request, form)


def _begun(
    request: HttpRequest,
    document: AudienceFileDocument,
    content: UploadedFile | None,
    *,
    again: str,
) -> HttpResponse:
    """Answer the script how to continue, or store the file that came with the form."""
    if content is None:
        return _state(document)
    _store(document, content)
    return _check(request, document, again=again)


def _store(document: AudienceFileDocument, content: UploadedFile) -> None:
    for number in range(repository.chunk_count(document["size"])):
        chunk = content.read(repository.CHUNK_BYTES)
        control.store_chunk(document, number, chunk, now=utc_now())


def upload(request: HttpRequest, object_id: str) -> HttpResponse:
    """Continue an upload that stopped, and begin the check once it is complete."""
    document = opened(request, object_id)
    if isinstance(document, HttpResponse):
        return document
    if document["status"] != FileStatus.UPLOADING:
        return HttpResponseRedirect(next_page(document))
    problem = ""
    if request.method == "POST":
        content = request.FILES.get("file")
        if content is not None and content.size == document["size"]:
            _store(document, content)
        elif content is not None:
            problem = OTHER_FILE.format(content.size, document["size"])
        if not control.missing_chunks(document):
            return _check(request, document, again=request.POST.get("again", ""))
        problem = problem or NO_FILE
    return file_page(
        request,
        "upload.html",
        document,
        title="Continue the upload",
        step=COLUMNS,
        problem=problem,
        state=_state_of(document),
        type_name=names.type_names([document["type"]])[document["type"]],
    )


def chunk(request: HttpRequest, object_id: str) -> HttpResponse:
    """Store a chunk of an upload, which is the request's body; POST only."""
    if refused := require_post(request, allowed=request.user.has_perm(MAY_SEND_FILE)):
        return refused
    document = opened(request, object_id)
    if isinstance(document, HttpResponse):
        raise Http404
    if request.content_type == FORM:
        # Its body is read by then, as that of a form.
        return JsonResponse({"problems": [NOT_A_FORM]}, status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    number = request.GET.get("number", "")
    if not _NUMBER.fullmatch(number) or int(number) >= repository.chunk_count(document["size"]):
        raise Http404
    try:
        control.store_chunk(document, int(number), request.body, now=utc_now())
    except InvalidRequestError as refusal:
        found = [problem.detail for problem in refusal.problems]
        return JsonResponse({"problems": found}, status=422)
    except InvalidStateError as refusal:
        return JsonResponse({"problems": [str(refusal)]}, status=409)
    return JsonResponse({})


def _state(document: AudienceFileDocument) -> JsonResponse:
    return JsonResponse(_state_of(document))


def _state_of(document: AudienceFileDocument) -> dict[str, Any]:
    """Return how a script continues an upload."""
    return {
        "url": url_of(UPLOAD, document),
        "chunk_url": url_of(CHUNK, document),
        "chunk_bytes": repository.CHUNK_BYTES,
        "missing": control.missing_chunks(document),
        "size": document["size"],
    }


def _check(request: HttpRequest, document: AudienceFileDocument, *, again: str) -> HttpResponse:
    """Have a complete upload read, with the choices of the file that it corrects."""
    earlier = _find_earlier(again)
    duplicates = Duplicates(earlier["duplicates"]) if earlier else Duplicates.REFUSE
    try:
        control.check(
            document,
            targets=None,
            duplicates=duplicates,
            country=earlier.get("country") if earlier else None,
            now=utc_now(),
        )
    except InvalidStateError as refused:
        messages.warning(request, str(refused))
    else:
        name = f"{document['type']} {document['_id']}"
        record_change(request, AudienceFile, document["_id"], "Uploaded.", name=name, flag=ADDITION)
    return HttpResponseRedirect(url_of(COLUMNS, document))


def _find_earlier(text: str) -> AudienceFileDocument | None:
    file_id, client_id = parse_id(text), registry.find_client(registry.CONSOLE_CLIENT)
    if file_id is None or client_id is None:
        return None
    return repository.get(file_id, client_id=client_id)


def _start_page(request: HttpRequest, form: UploadForm) -> HttpResponse:
    client_id = registry.find_client(registry.CONSOLE_CLIENT)
    found = (
        repository.page(client_id=client_id, limit=SHOWN_FILES).documents
        if client_id is not None
        else ()
    )
    known = names.type_names({document["type"] for document in found})
    return file_page(
        request,
        "start.html",
        title="Send to a file",
        step=COLUMNS,
        form=form,
        has_types=bool(file_types()),
        file_help=HELP,
        files=[
            {
                "at": document["created_at"],
                "type": known[document["type"]],
                "name": _name_of(document) if may_see_rows(request.user, document) else "",
                "rows": document.get("rows"),
                "state": labels.file_state(document),
                "url": next_page(document),
            }
            for document in found
        ],
    )


def _name_of(document: AudienceFileDocument) -> str:
    head = parts.read_head(document["_id"])
    return head.name if head is not None else ""
