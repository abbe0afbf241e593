"""What each column of a file is, which numbers its phones are, and what happens to duplicates."""

from collections.abc import Sequence

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from domain.countries import COUNTRIES, country_name
from domain.states import Duplicates, FileStatus
from domain.time import utc_now
from notifications.actions.actions import InvalidStateError
from notifications.documents.files import AudienceFileDocument
from notifications.files import control, parts, type_data
from notifications.files.columns import IGNORED, PHONE
from notifications.files.parts import Head
from notifications.models import AudienceFile
from notifications.validation import InvalidRequestError

from ..widgets.actions import record_change
from . import labels
from .steps import (
    CHECK,
    COLUMNS,
    PROGRESS,
    REFRESH_SECONDS,
    file_page,
    may_see_rows,
    next_page,
    opened,
    url_of,
)

F = FileStatus
SAMPLES = 3
PHONES_LOOKED_AT = 100


def columns(request: HttpRequest, object_id: str) -> HttpResponse:
    """Show and store what the columns of a file are, and have its rows checked."""
    document = opened(request, object_id)
    if isinstance(document, HttpResponse):
        return document
    status = FileStatus(document["status"])
    if "sealed_at" in document or status in (F.UPLOADING, F.REFUSED, F.REMOVED):
        return HttpResponseRedirect(next_page(document))
    if status is F.READING:
        return file_page(
            request,
            "reading.html",
            document,
            title="Reading the file",
            step=COLUMNS,
            progress_url=url_of(PROGRESS, document),
            refresh_seconds=REFRESH_SECONDS,
        )
    head = parts.read_head(document["_id"])
    if head is None:
        return HttpResponseRedirect(url_of(CHECK, document))
    if request.method == "POST":
        return _store(request, document, head)
    found = control.column_problems(document, head)
    return _form_page(request, document, head, problems=[each.detail for each in found])


def _store(request: HttpRequest, document: AudienceFileDocument, head: Head) -> HttpResponse:
    targets = [request.POST.get(f"column-{index}", IGNORED) for index in range(len(head.header))]
    country = request.POST.get("country") or None
    given = request.POST.get("duplicates", "")
    duplicates = Duplicates(given) if given in labels.DUPLICATES else Duplicates.REFUSE
    is_same = (
        document["status"] == F.CHECKING
        and targets == document.get("columns")
        and duplicates == document["duplicates"]
        and country == document.get("country")
    )
    if is_same:
        return HttpResponseRedirect(url_of(CHECK, document))
    try:
        control.check(
            document, targets=targets, duplicates=duplicates, country=country, now=utc_now()
        )
    except InvalidRequestError as refused:
        problems = list(dict.fromkeys(each.detail for each in refused.problems))
        return _form_page(request, document, head, problems=problems)
    except InvalidStateError as refused:
        messages.warning(request, str(refused))
        return HttpResponseRedirect(next_page(document))
    name = f"{document['type']} {document['_id']}"
    record_change(request, AudienceFile, document["_id"], "Check begun.", name=name)
    return HttpResponseRedirect(url_of(CHECK, document))


def _form_page(
    request: HttpRequest, document: AudienceFileDocument, head: Head, *, problems: Sequence[str]
) -> HttpResponse:
    given = request.POST if request.method == "POST" else None
    data = type_data.read(document["type"])
    known = document.get("columns", [])
    chosen = [
        given.get(f"column-{index}", IGNORED)
        if given is not None
        else (known[index] if index < len(known) else IGNORED)
        for index in range(len(head.header))
    ]
    part = parts.read_rows(document["_id"], 0)
    rows = [row.cells for row in part.rows] if part is not None else []
    is_shown = may_see_rows(request.user, document)
    return file_page(
        request,
        "columns.html",
        document,
        title="What is in the columns?",
        step=COLUMNS,
        problems=problems,
        facts=_facts(document, head, is_shown=is_shown),
        columns=[
            {
                "index": index,
                "header": header or f"Column {index + 1}",
                "chosen": chosen[index],
                "groups": labels.target_choices(data, header, chosen=chosen[index]),
                "samples": _samples(rows, index) if is_shown else (),
            }
            for index, header in enumerate(head.header if is_shown else [""] * len(head.header))
        ],
        duplicates=[(each.value, label) for each, label in labels.DUPLICATES.items()],
        chosen_duplicates=given.get("duplicates") if given else document["duplicates"],
        countries=_countries(),
        chosen_country=given.get("country") if given else document.get("country", ""),
        lacks_sign=_lacks_sign(rows, chosen),
    )


def _facts(document: AudienceFileDocument, head: Head, *, is_shown: bool) -> list[tuple[str, str]]:
    facts = [
        ("File", head.name if is_shown else ""),
        ("Read as", labels.kind_of(document, head if is_shown else None)),
        ("Rows", f"{document.get('rows', 0):,}"),
    ]
    return [(label, value) for label, value in facts if value]


def _samples(rows: Sequence[Sequence[str]], index: int) -> list[str]:
    found = dict.fromkeys(row[index] for row in rows if row[index])
    return list(found)[:SAMPLES]


def _lacks_sign(rows: Sequence[Sequence[str]], chosen: Sequence[str]) -> bool:
    """Return whether a phone number lacks its country code, as after a spreadsheet."""
    if PHONE not in chosen:
        return False
    index = chosen.index(PHONE)
    return any(row[index] and not row[index].startswith("+") for row in rows[:PHONES_LOOKED_AT])


def _countries() -> list[tuple[str, str]]:
    named = [(code, country_name(code)) for code in COUNTRIES]
    return sorted(named, key=lambda country: country[1])
