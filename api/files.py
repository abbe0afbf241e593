"""Files of recipients: upload, check, results."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Annotated

import msgspec
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from msgspec import Meta

from access.clients.authentication import SafeWrite
from access.models import Scope
from domain.channels import Channel
from domain.states import Duplicates, FileStatus
from domain.tables.table import MAX_BYTES, TableFormat
from domain.time import utc_now
from notifications.actions.actions import InvalidStateError
from notifications.broadcasts import repository as broadcasts
from notifications.catalog.texts import total_price
from notifications.documents.files import AudienceFileDocument, MessagesTotal, RowProblem
from notifications.files import control, downloads, parts, repository
from notifications.files.checking import has_template
from notifications.files.columns import IGNORED
from notifications.files.control import NewFileRequest
from notifications.intake.requests import Caller
from notifications.models import AudienceFile
from notifyproject.platform import audit
from notifyproject.platform.audit import Unaudited

from .http import idempotency_header, paging
from .http.body import MAX_BYTES_BULK, read_request
from .http.fields import view_of
from .http.paths import found_or_404, object_id_or_404, object_id_parameter, path_parameter
from .http.problems import INVALID_STATE, NOT_FOUND
from .http.rendering import Response
from .http.requests import ClientRequest
from .openapi.operations import csv_download, operation

EXAMPLE_FILE_ID = "6745e3f09b1d4c2a7f3e8b72"
LIST = "files"
READ, WRITE = Scope.NOTIFICATIONS_READ, Scope.NOTIFICATIONS_WRITE
ID = object_id_parameter("file_id", example=EXAMPLE_FILE_ID)
NUMBER = path_parameter("number", "From 0", example="0", max_length=2, pattern="[0-9]{1,2}")
Target = Annotated[
    str,
    Meta(
        max_length=140,
        description="user_id, email, phone, name, locale, timezone, or data. and a variable.",
        examples=["email"],
    ),
]


class FileRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file to upload: CSV, TSV, or XLSX."""

    type: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=64,
            description="Slug of the type that its rows are checked for.",
            examples=["payment_confirmed"],
        ),
    ]
    name: Annotated[str, Meta(min_length=1, max_length=255, examples=["customers.csv"])]
    size: Annotated[int, Meta(description=f"Bytes: 1 to {MAX_BYTES}.", examples=[2_400])]


class FileChunkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the file's bytes."""

    content: Annotated[
        bytes,
        Meta(
            description=f"Base64. Of {repository.CHUNK_BYTES} bytes; of fewer in the last chunk.",
            examples=["ZW1haWwKYWRhQGV4YW1wbGUuY29tCg=="],
        ),
    ]


class FileCheckRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the rows are read."""

    columns: (
        Annotated[
            list[Target | None],
            Meta(
                max_length=60,
                description="What each column is, in their order; null: ignored. Omitted: as in "
                "the last file of the type with this header, or guessed.",
                examples=[["email", "data.amount", None]],
            ),
        ]
        | None
    ) = None
    duplicates: Annotated[
        Duplicates,
        Meta(
            description="Rows with the same recipient: the first or the last is sent, and the "
            "others are skipped; refuse: all but the first are wrong."
        ),
    ] = Duplicates.REFUSE
    country: (
        Annotated[
            str,
            Meta(
                min_length=2,
                max_length=2,
                description="Country of phone numbers without a +, which spreadsheets remove.",
                examples=["PT"],
            ),
        ]
        | None
    ) = None


class FileColumnView(msgspec.Struct, kw_only=True, frozen=True):
    """A column of a file."""

    header: Annotated[str, Meta(examples=["E-mail"])]
    target: Annotated[str | None, Meta(description="null: ignored.", examples=["email"])]


class RowProblemView(msgspec.Struct, kw_only=True, frozen=True):
    """A sentence about rows of a file."""

    code: Annotated[str, Meta(examples=["invalid_email"])]
    target: Annotated[
        str | None, Meta(description="What its column is; null: the row.", examples=["email"])
    ]
    detail: Annotated[str, Meta(examples=["Expected one address such as ada@example.com."])]
    count: Annotated[int, Meta(examples=[3])]
    rows: Annotated[
        list[int], Meta(description="Numbers of the first 50 rows.", examples=[[2, 17, 40]])
    ]


class FileMessagesView(msgspec.Struct, kw_only=True, frozen=True):
    """What a channel would send. Of a plan, later steps count, too."""

    channel: Annotated[Channel, Meta(examples=["email"])]
    messages: Annotated[int, Meta(examples=[115])]
    parts: Annotated[int | None, Meta(description="Of text messages.")] = None
    price: Annotated[str | None, Meta(description="Estimated.", examples=["4.14 EUR"])] = None
    unpriced: Annotated[int | None, Meta(description="Parts to countries without a price.")] = None


class ColumnProblemView(msgspec.Struct, kw_only=True, frozen=True):
    """Why the columns don't fit the type."""

    code: Annotated[str, Meta(examples=["missing_column"])]
    detail: Annotated[str, Meta(examples=["The type requires amount, which no column is."])]


class EarlierSendView(msgspec.Struct, kw_only=True, frozen=True):
    """A broadcast of a file with the same content."""

    broadcast_id: Annotated[str, Meta(examples=[EXAMPLE_FILE_ID])]
    sent_at: datetime


class FileView(msgspec.Struct, kw_only=True, frozen=True):
    """A file of recipients, and what its check found. Its content is kept for a week."""

    id: Annotated[str, Meta(examples=[EXAMPLE_FILE_ID])]
    status: Annotated[FileStatus, Meta(examples=["checked"])]
    type: Annotated[str, Meta(examples=["payment_confirmed"])]
    name: Annotated[
        str | None, Meta(description="null: removed with the content.", examples=["customers.csv"])
    ]
    size: Annotated[int, Meta(examples=[2_400])]
    chunk_bytes: Annotated[int, Meta(examples=[repository.CHUNK_BYTES])] = repository.CHUNK_BYTES
    missing_chunks: Annotated[list[int], Meta(examples=[[]])] = []
    format: TableFormat | None = None
    charset: Annotated[str | None, Meta(examples=["UTF-8"])] = None
    separator: Annotated[str | None, Meta(examples=[";"])] = None
    sheet: Annotated[str | None, Meta(description="The first visible sheet of an XLSX file.")] = (
        None
    )
    columns: list[FileColumnView]
    column_problems: Annotated[list[ColumnProblemView], Meta(examples=[[]])]
    duplicates: Duplicates
    country: str | None = None
    rows: Annotated[
        int | None, Meta(description="Without header and blank rows.", examples=[120])
    ] = None
    checked_rows: Annotated[int, Meta(description="Progress of the check.", examples=[120])]
    good: Annotated[int, Meta(description="Rows that a broadcast would send.", examples=[115])]
    wrong: Annotated[int, Meta(examples=[3])]
    skipped: Annotated[
        int,
        Meta(
            description="Rows whose recipients opted out, are suppressed, or can't be reached.",
            examples=[2],
        ),
    ]
    wrong_rows: list[RowProblemView]
    skipped_rows: Annotated[list[RowProblemView], Meta(examples=[[]])]
    doubtful_rows: Annotated[
        list[RowProblemView],
        Meta(description="Good rows that a limit or a country holds back now.", examples=[[]]),
    ]
    messages: Annotated[list[FileMessagesView], Meta(description="Of the good rows.")]
    sent_before: Annotated[
        list[EarlierSendView],
        Meta(description="Broadcasts of the same content, newest first.", examples=[[]]),
    ]
    broadcast_id: Annotated[
        str | None, Meta(description="The broadcast of the file, which has its ID.")
    ] = None
    failure_code: Annotated[str | None, Meta(description="Why it can't be read.")] = None
    failure_reason: str | None = None
    content_until: datetime
    checked_at: datetime | None = None
    created_at: datetime
    updated_at: datetime
    is_test: bool = False  # Created with a test key


class FileList(paging.PageView[FileView], kw_only=True, frozen=True):
    """A page of files. ``next`` and ``previous`` are values for the parameter ``cursor``."""


def file_view(document: AudienceFileDocument, *, is_listed: bool = False) -> FileView:
    """Return a stored file as the API shows it. In a list, it has no content and no problems."""
    head = None if is_listed else parts.read_head(document["_id"])
    columns = document.get("columns", []) if head is not None and head.header else []
    problems = [] if is_listed else document["problems"]
    wrong = [problem for problem in problems if not problem["is_skipped"]]
    skipped = [problem for problem in problems if problem["is_skipped"]]
    earlier = [] if is_listed else repository.sent_before(document)
    return view_of(
        FileView,
        document,
        id=str(document["_id"]),
        name=head.name or None if head is not None else None,
        sheet=head.sheet if head is not None else None,
        missing_chunks=[] if is_listed else control.missing_chunks(document),
        columns=[
            FileColumnView(header=header, target=target or None)
            for header, target in zip(head.header if head else (), columns, strict=False)
        ],
        column_problems=[
            ColumnProblemView(code=problem.code, detail=problem.detail)
            for problem in control.column_problems(document, head)
        ],
        checked_rows=document["good"] + document["wrong"] + document["skipped"],
        wrong_rows=_problem_views(wrong),
        skipped_rows=_problem_views(skipped),
        doubtful_rows=_problem_views([] if is_listed else document["doubts"]),
        messages=[
            _messages_view(Channel(channel), total, type_slug=document["type"])
            for channel, total in document["messages"].items()
        ],
        sent_before=[
            EarlierSendView(broadcast_id=str(broadcast_id), sent_at=at)
            for broadcast_id, at in earlier
        ],
        broadcast_id=str(document["_id"]) if "sealed_at" in document else None,
    )


def _problem_views(problems: list[RowProblem]) -> list[RowProblemView]:
    return [
        RowProblemView(
            code=problem["code"],
            target=problem["target"] or None,
            detail=problem["detail"],
            count=problem["count"],
            rows=problem["rows"],
        )
        for problem in sorted(problems, key=lambda problem: (-problem["count"], problem["code"]))
    ]


def _messages_view(channel: Channel, total: MessagesTotal, *, type_slug: str) -> FileMessagesView:
    # Without a template, what was checked is a placeholder of the broadcast's text.
    if not channel.pays_by_part or not has_template(type_slug):
        return FileMessagesView(channel=channel, messages=total["messages"])
    cost = total_price(total["units"])
    return FileMessagesView(
        channel=channel,
        messages=total["messages"],
        parts=cost.units,
        price=str(cost.price) if cost.price is not None else None,
        unpriced=sum(cost.unpriced.values()),
    )


_file_operation = partial(operation, scope=WRITE, parameters=(ID,), test_mode=SafeWrite.OWN)


@operation(
    scope=WRITE,
    request=FileRequest,
    response=FileView,
    status=202,
    problems=(INVALID_STATE,),
    parameters=(idempotency_header.parameter(required=True),),
    headers={202: ("Location",)},
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.CREATES,
)
def create_file(request: ClientRequest) -> Response:
    """Begin the upload of a file of recipients.

    Then put its chunks, in any order, and have it checked. What it contains is encrypted, and
    removed after a week; an upload that isn't checked, after one.
    """
    body = read_request(request, FileRequest)
    caller = Caller(
        client_id=request.client.id,
        request_id=request.request_id,
        idempotency_key=idempotency_header.required_key(request),
        is_test=request.client.is_test,
    )
    new = NewFileRequest(type=body.type, name=body.name, size=body.size)
    created = control.create(new, caller=caller, now=utc_now())
    view = file_view(created.document)
    return idempotency_header.created(
        request, view, new_id=view.id, is_replayed=created.is_replayed
    )


@operation(scope=READ, response=FileList, parameters=paging.PARAMETERS)
def list_files(request: ClientRequest) -> Response:
    """List files of recipients, newest first, without their contents and problems."""
    page_request = paging.parse_page_request(request.query_params, list_name=LIST)
    page = repository.page(
        client_id=request.client.id, limit=page_request.limit, cursor=page_request.cursor
    )
    results = [file_view(document, is_listed=True) for document in page.documents]
    links = paging.page_links(page, list_name=LIST, order=repository.NEWEST_FIRST)
    return Response(FileList(results=results, **links))


@operation(scope=READ, response=FileView, parameters=(ID,))
def get_file(request: ClientRequest, file_id: str) -> Response:
    """Get a file of recipients: its columns, its progress, and its problems by sentence."""
    return Response(file_view(_file_or_404(request, file_id)))


@operation(
    scope=WRITE,
    request=FileChunkRequest,
    response=FileView,
    max_bytes=MAX_BYTES_BULK,
    problems=(INVALID_STATE,),
    parameters=(ID, NUMBER),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.CREATES,
)
def put_file_chunk(request: ClientRequest, file_id: str, number: str) -> Response:
    """Upload a chunk of a file. Repeated, it is replaced; `missing_chunks` names the others."""
    body = read_request(request, FileChunkRequest, limit=MAX_BYTES_BULK)
    document = _file_or_404(request, file_id)
    if int(number) >= repository.chunk_count(document["size"]):
        raise NOT_FOUND.error()
    control.store_chunk(document, int(number), body.content, now=utc_now())
    return Response(file_view(document))


@_file_operation(
    request=FileCheckRequest,
    response=FileView,
    status=202,
    problems=(INVALID_STATE,),
)
def check_file(request: ClientRequest, file_id: str) -> Response:
    """Check all rows of a file, before anything is sent.

    In the background: the data against the type's schema, addresses, and what a broadcast would
    skip. GET returns the progress. A checked file can be checked again with other columns, until
    it is sent as the audience of a broadcast.
    """
    body = read_request(request, FileCheckRequest)
    document = _file_or_404(request, file_id)
    targets = body.columns
    changed = control.check(
        document,
        targets=None if targets is None else [target or IGNORED for target in targets],
        duplicates=body.duplicates,
        country=body.country,
        now=utc_now(),
    )
    _record(request, file_id, "Check begun.")
    return Response(file_view(changed), status=202)


@_file_operation(response=FileView, problems=(INVALID_STATE,))
def remove_file(request: ClientRequest, file_id: str) -> Response:
    """Remove what a file contains. Its counts stay.

    A file whose broadcast isn't over can't be removed: cancel the broadcast first.
    """
    document = _file_or_404(request, file_id)
    broadcast = broadcasts.get(document["_id"])
    if broadcast is not None and "finished_at" not in broadcast:
        raise InvalidStateError("Its broadcast isn't over. Cancel it first.")
    removed = control.remove(document, now=utc_now())
    _record(request, file_id, "Removed.")
    return Response(file_view(removed))


@csv_download(scope=READ, parameters=(ID,))
def get_file_wrong_rows(request: ClientRequest, file_id: str) -> HttpResponseBase:
    """Download the rows of a file that wouldn't be sent, as CSV with a column `problem`.

    Corrected, the file can be uploaded again as it is. A cell that a spreadsheet would take for a
    formula begins with an apostrophe, which an upload removes.
    """
    return _csv(_file_or_404(request, file_id), downloads.wrong_rows, name="wrong")


@csv_download(scope=READ, parameters=(ID,))
def get_file_results(request: ClientRequest, file_id: str) -> HttpResponseBase:
    """Download what became of each row of a file, as CSV.

    By the row's number: the ID of its notification, and its status, or why there is none.
    """
    return _csv(_file_or_404(request, file_id), downloads.results, name="results")


def _csv(
    document: AudienceFileDocument,
    lines: Callable[[AudienceFileDocument], Iterator[str]],
    *,
    name: str,
) -> StreamingHttpResponse:
    file_name = f"file-{document['_id']}-{name}.csv"
    return StreamingHttpResponse(
        lines(document),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{file_name}"'},
    )


def _file_or_404(request: ClientRequest, file_id: str) -> AudienceFileDocument:
    return found_or_404(repository.get(object_id_or_404(file_id), client_id=request.client.id))


def _record(request: ClientRequest, file_id: str, message: str) -> None:
    audit.record_client_action(
        request.client, model=AudienceFile, object_id=file_id, message=message
    )
