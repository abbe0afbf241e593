"""Preview of any row of a checked file, on each channel, as its broadcast would send it."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from access.clients.registry import TakenNameError
from domain.states import FileStatus, Priority
from domain.time import utc_now
from notifications.catalog import types
from notifications.content import rendering
from notifications.documents.catalog import NotificationTypeDocument
from notifications.documents.files import AudienceFileDocument
from notifications.files import preview as previews
from notifications.files.preview import RowPreview
from notifications.intake.requests import ContentRequest, NotificationRequest
from notifications.models.notification import SUBJECT_LENGTH

from ..sending.form import MAX_BODY
from ..sending.page import TAKEN
from ..sending.recipients import MAY_VIEW
from ..texts.labels import CHANNELS
from ..types.preview import channel_preview, preview_of
from ..widgets import columns
from ..widgets.panels import email_document
from .steps import (
    CHECK,
    CONFIRM,
    EMAIL,
    PREVIEW,
    caller,
    file_page,
    is_sent,
    may_see_rows,
    next_page,
    opened,
    url_of,
)
from .upload import file_types

MAX_NUMBER = 7
"""Digits of the number of a row."""
TURNED_OFF = "This type can't be sent to a file from the console any more. Nothing was sent."
NO_ROW = "The file has no row {}. Numbers are those of the spreadsheet."


class TextForm(forms.Form):
    """The text of a type without a template, the same for all rows."""

    subject = forms.CharField(
        required=False,
        max_length=SUBJECT_LENGTH,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )
    body = forms.CharField(
        label="Text",
        max_length=MAX_BODY,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 6}),
        error_messages={"required": "Enter the text."},
    )

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, use_required_attribute=False)

    def content(self) -> ContentRequest:
        """Return the text of a valid form."""
        given = self.cleaned_data
        return ContentRequest(
            subject=given["subject"] or None, body=given["body"].replace("\r\n", "\n")
        )


def checked_file(
    request: HttpRequest, object_id: str
) -> tuple[AudienceFileDocument, NotificationTypeDocument] | HttpResponse:
    """Return a checked file that isn't sent, with its type, or the response to another one."""
    document = opened(request, object_id)
    if isinstance(document, HttpResponse):
        return document
    config = types.find_type(document["type"])
    kind = types.read_type(document["type"])
    is_ready = document["status"] == FileStatus.CHECKED and not is_sent(document)
    if not is_ready or document["good"] == 0 or config is None or kind is None:
        return HttpResponseRedirect(next_page(document))
    if document["type"] not in {each.slug for each in file_types()}:
        messages.warning(request, TURNED_OFF)
        return HttpResponseRedirect(url_of(CHECK, document))
    return document, kind


def text_form(request: HttpRequest, kind: NotificationTypeDocument) -> TextForm | None:
    """Return the form of the text, or None for a type with a template."""
    if rendering.exists(kind["_id"], version=kind.get("template_version") or 0):
        return None
    return TextForm(request.POST if "body" in request.POST else None)


def preview(request: HttpRequest, object_id: str) -> HttpResponse:
    """Show the message of a row."""
    found = checked_file(request, object_id)
    if isinstance(found, HttpResponse):
        return found
    document, kind = found
    text = text_form(request, kind)
    notable = previews.notable_rows(document["_id"], document["check_number"])
    number = _number(request, default=notable.first or 0)
    problem, shown = "", None
    if text is None or text.is_valid():
        try:
            shown = _read(request, document, number, text)
        except TakenNameError as error:
            problem = TAKEN.format(error)
        else:
            problem = NO_ROW.format(number) if shown is None else ""
    return file_page(
        request,
        "preview.html",
        document,
        title="Preview",
        step=PREVIEW,
        type=kind,
        number=number,
        notable=[
            (label, row)
            for label, row in (
                ("Most text", notable.longest),
                ("Least text", notable.shortest),
                ("No language", notable.without_language),
            )
            if row is not None
        ],
        problem=problem,
        shown=shown,
        recipient=_recipient(request, document, shown),
        channels=_channels(shown, kind),
        preview=preview_of(()),
        text=text,
        # What has a text of its own is posted: it's too long for a URL.
        method="get" if text is None else "post",
        email_url=url_of(EMAIL, document),
        confirm_url=url_of(CONFIRM, document),
    )


def email(request: HttpRequest, object_id: str) -> HttpResponse:
    """Return the email of a row, for a frame of the preview. Raises Http404 without one."""
    found = checked_file(request, object_id)
    if isinstance(found, HttpResponse):
        return found
    document, kind = found
    text = text_form(request, kind)
    if request.method != "POST" or (text is not None and not text.is_valid()):
        raise Http404
    try:
        shown = _read(request, document, _number(request, default=0), text)
    except TakenNameError:
        raise Http404 from None
    for channel in shown.channels if shown is not None else ():
        if channel.message is not None and channel.message.html is not None:
            return email_document(channel.message.html)
    raise Http404


def _read(
    request: HttpRequest, document: AudienceFileDocument, number: int, text: TextForm | None
) -> RowPreview | None:
    shared = NotificationRequest(
        type=document["type"],
        priority=Priority.LOW.value,
        content=text.content() if text is not None else ContentRequest(),
    )
    return previews.preview_row(
        document,
        number,
        shared=shared,
        caller=caller(),
        shows_registry=request.user.has_perm(MAY_VIEW),
        now=utc_now(),
    )


def _number(request: HttpRequest, *, default: int) -> int:
    given = request.POST if request.method == "POST" else request.GET
    # A button's number is that of a row which the page has chosen.
    found = (number_in(given.get(name, "")) for name in ("chosen", "row"))
    return next((number for number in found if number is not None), default)


def number_in(text: str) -> int | None:
    """Return the number of a row that a text is, or None."""
    entered = text.strip()
    is_number = entered.isascii() and entered.isdigit() and len(entered) <= MAX_NUMBER
    return int(entered) if is_number else None


def _recipient(
    request: HttpRequest, document: AudienceFileDocument, shown: RowPreview | None
) -> str:
    if shown is None:
        return ""
    address = columns.address(shown.address, unmasked=may_see_rows(request.user, document))
    return " · ".join(each for each in (shown.user_id, address) if each)


def _channels(shown: RowPreview | None, kind: NotificationTypeDocument) -> list[dict[str, Any]]:
    return [
        {
            "shown": channel_preview(one.channel, one.message, kind) if one.message else None,
            "name": CHANNELS[one.channel],
            "icon": one.channel.spec.icon,
            "kind": one.channel.spec.preview,
            "problem": one.problem,
            "reason": one.not_sent_reason,
        }
        for one in (shown.channels if shown is not None else ())
    ]
