"""The confirmation: how many get what and when. It makes the broadcast of a file, once."""

import re
from dataclasses import replace
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.models import ADDITION
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from access import actors
from access.actors import Actor
from access.clients.registry import TakenNameError
from domain.states import BroadcastStatus
from domain.time import utc_now
from notifications.broadcasts import creation, repository
from notifications.broadcasts import preview as broadcast_preview
from notifications.broadcasts.preview import BroadcastPreview
from notifications.broadcasts.requests import AudienceRequest, BroadcastRequest
from notifications.content.properties import with_offset
from notifications.documents.catalog import NotificationTypeDocument
from notifications.documents.files import AudienceFileDocument
from notifications.files import parts
from notifications.intake.requests import ContentRequest
from notifications.models import Broadcast
from notifications.models.broadcasts import NAME_LENGTH
from notifications.validation import InvalidRequestError

from ..sending.fields import MAX_TIME
from ..sending.form import LATER, NO_TIME, NOW
from ..sending.page import CHANGED, TAKEN, version_of
from ..widgets.actions import record_change
from ..widgets.formats import duration
from . import labels
from .check import is_mostly_right
from .preview import TextForm, checked_file, text_form
from .steps import CONFIRM, PREVIEW, ROWS, caller, file_page, may_see_rows, url_of

SEND = "send"
"""The step of the button; another POST shows the page."""
SPREADS = (1_800, 3_600, 7_200, 14_400, 28_800, 86_400)
"""In seconds."""
TYPED_FROM = 1_000
"""Messages above which their number is typed."""
MAX_TYPED = 20
LOCAL = "local"
PACES = [
    ("", "All at once"),
    *((str(seconds), f"Spread over {duration(seconds)}") for seconds in SPREADS),
    (LOCAL, "At an hour of each recipient's day"),
]
INPUTS = {"/scheduled_at": "at", "/name": "name"}
"""Inputs of the fields of a request."""
SENT = "Sent to a file from the console."
RECHECKED = "The file was checked again meanwhile. Look at what was found."
ALREADY = "This file is being sent already, or has been. Nothing was sent twice."
_DIGITS = re.compile(r"[^0-9]")


class ConfirmForm(forms.Form):
    """When the messages are sent, and what the person confirms."""

    when = forms.ChoiceField(
        choices=[(NOW, "Now"), (LATER, "At a time")],
        initial=NOW,
        widget=UnfoldAdminSelectWidget,
        label="Send",
    )
    at = forms.CharField(
        required=False,
        max_length=MAX_TIME,
        label="Time",
        help_text="In UTC.",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )
    pace = forms.ChoiceField(
        choices=PACES, required=False, widget=UnfoldAdminSelectWidget, label="Pace"
    )
    hour = forms.ChoiceField(
        choices=[(str(hour), f"{hour:02}:00") for hour in range(24)],
        required=False,
        initial="9",
        widget=UnfoldAdminSelectWidget,
        label="Hour",
        help_text="In UTC for recipients without a time zone.",
    )
    name = forms.CharField(
        required=False,
        max_length=NAME_LENGTH,
        label="Name",
        help_text="What you call it, without personal data. Optional.",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )
    without_wrong = forms.BooleanField(required=False)
    typed = forms.CharField(
        required=False,
        max_length=MAX_TYPED,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "inputmode": "numeric"}),
    )

    version = forms.CharField(required=False)
    """Of the template that was previewed."""
    check = forms.CharField(required=False)
    """The number of the check that was seen."""

    def __init__(
        self, data: Any = None, *, document: AudienceFileDocument, kind: NotificationTypeDocument
    ) -> None:
        initial = {"without_wrong": is_mostly_right(document)}
        super().__init__(data, initial=initial, use_required_attribute=False)
        self.document, self.kind = document, kind
        self.fields["at"].widget.input_type = "datetime-local"
        self.fields["without_wrong"].label = f"Send without the {document['wrong']:,} wrong rows"
        self.fields["typed"].label = f"Type {document['good']:,} to send this many messages"

    @property
    def has_wrong(self) -> bool:
        """Whether the file has wrong rows."""
        return self.document["wrong"] > 0

    @property
    def is_typed(self) -> bool:
        """Whether the number of messages is typed."""
        return self.document["good"] > TYPED_FROM

    def clean(self) -> dict[str, Any]:
        """Check what the person confirms."""
        given: dict[str, Any] = self.cleaned_data
        if given.get("when") == LATER and not given.get("at") and "at" not in self.errors:
            self.add_error("at", NO_TIME)
        if self.has_wrong and not given.get("without_wrong"):
            self.add_error("without_wrong", "Choose this, or correct the wrong rows first.")
        is_wrong = _DIGITS.sub("", given.get("typed", "")) != str(self.document["good"])
        if self.is_typed and is_wrong:
            self.add_error("typed", f"Type {self.document['good']:,}.")
        if given.get("version") != version_of(self.kind):
            self.add_error(None, CHANGED)
        elif given.get("check") != str(self.document["check_number"]):
            self.add_error(None, RECHECKED)
        return given

    def request(self, *, source: str, content: ContentRequest) -> BroadcastRequest:
        """Return the broadcast of a valid form."""
        given = self.cleaned_data
        is_later, pace = given["when"] == LATER, given["pace"]
        return BroadcastRequest(
            name=given["name"] or None,
            type=self.document["type"],
            audience=AudienceRequest(
                file=str(self.document["_id"]), skip_wrong_rows=self.has_wrong
            ),
            source=source,
            content=content,
            scheduled_at=with_offset(given["at"].strip()) if is_later else None,
            spread=int(pace) if pace.isdigit() else None,
            local_hour=int(given["hour"]) if pace == LOCAL and given["hour"] else None,
        )

    def show(self, refused: InvalidRequestError) -> None:
        """Add the problems of a refused request to their inputs."""
        for problem in refused.problems:
            self.add_error(INPUTS.get(problem.pointer), problem.detail)


def confirm(request: HttpRequest, object_id: str) -> HttpResponse:
    """Show what would be sent, and send it."""
    found = checked_file(request, object_id)
    if isinstance(found, HttpResponse):
        return found
    document, kind = found
    text = text_form(request, kind)
    if text is not None and not text.is_valid():
        return HttpResponseRedirect(url_of(PREVIEW, document))
    is_confirmed = request.POST.get("step") == SEND
    form = ConfirmForm(request.POST if is_confirmed else None, document=document, kind=kind)
    if form.is_valid():
        return _send(request, document, kind, form, text)
    return _page(request, document, kind, form, text)


def _send(
    request: HttpRequest,
    document: AudienceFileDocument,
    kind: NotificationTypeDocument,
    form: ConfirmForm,
    text: TextForm | None,
) -> HttpResponse:
    asked = form.request(source=str(request.user.pk), content=_content(text))
    try:
        created = creation.create(
            asked,
            caller=caller(),
            author=_authors(request, document),
            file_check=document["check_number"],
            now=utc_now(),
        )
    except InvalidRequestError as refused:
        if repository.get(document["_id"]) is not None:
            messages.info(request, ALREADY)
            return HttpResponseRedirect(url_of(ROWS, document))
        form.show(refused)
    except TakenNameError as error:
        form.add_error(None, TAKEN.format(error))
    else:
        new = created.document
        name = f"{new['type']} {new['_id']}"
        record_change(request, Broadcast, new["_id"], SENT, name=name, flag=ADDITION)
        is_asked = new["status"] == BroadcastStatus.AWAITING_APPROVAL
        done = "Approvers are told. Nothing is sent before." if is_asked else "Accepted."
        messages.success(request, done)
        return HttpResponseRedirect(url_of(ROWS, document))
    return _page(request, document, kind, form, text)


def _authors(request: HttpRequest, document: AudienceFileDocument) -> Actor:
    """Return who sends the file, known also as who uploaded it: neither approves it."""
    sender = actors.staff_actor(request.user.pk)
    uploaded_by = document.get("uploaded_by")
    if uploaded_by is None:
        return sender
    return replace(sender, keys=sender.keys | actors.staff_actor(uploaded_by).keys)


def _content(text: TextForm | None) -> ContentRequest:
    return text.content() if text is not None else ContentRequest()


def _page(
    request: HttpRequest,
    document: AudienceFileDocument,
    kind: NotificationTypeDocument,
    form: ConfirmForm,
    text: TextForm | None,
) -> HttpResponse:
    head = parts.read_head(document["_id"])
    name = head.name if head is not None and may_see_rows(request.user, document) else ""
    effect = _effect(request, document, form, text)
    return file_page(
        request,
        "confirm.html",
        document,
        title=f"Send {document['good']:,} messages",
        step=CONFIRM,
        type=kind,
        form=form,
        text=text,
        effect=effect,
        # What the check counted of a text that is written now is that of a placeholder.
        facts=_facts(document, kind, effect, name=name, is_priced=text is None),
        version=version_of(kind),
        preview_url=url_of(PREVIEW, document),
        button=_button(effect, document),
    )


def _effect(
    request: HttpRequest, document: AudienceFileDocument, form: ConfirmForm, text: TextForm | None
) -> BroadcastPreview | None:
    """Return what a broadcast would do now; None if it would be refused, with the reasons."""
    asked = BroadcastRequest(
        type=document["type"],
        audience=AudienceRequest(file=str(document["_id"]), skip_wrong_rows=True),
        source=str(request.user.pk),
        content=_content(text),
    )
    try:
        return broadcast_preview.preview(asked, caller=caller(), now=utc_now())
    except InvalidRequestError as refused:
        problems = [problem.detail for problem in refused.problems]
    except TakenNameError as error:
        problems = [TAKEN.format(error)]
    if not form.is_bound:
        messages.warning(request, " ".join(problems))
    return None


def _facts(
    document: AudienceFileDocument,
    kind: NotificationTypeDocument,
    effect: BroadcastPreview | None,
    *,
    name: str,
    is_priced: bool,
) -> list[tuple[str, str]]:
    facts = [
        ("Type", kind["name"]),
        ("File", name),
        ("Messages", f"{document['good']:,}"),
        ("Wrong rows, not sent", f"{document['wrong']:,}" if document["wrong"] else ""),
        ("Skipped rows", f"{document['skipped']:,}" if document["skipped"] else ""),
        *labels.messages_by_channel(document, is_priced=is_priced),
    ]
    if effect is not None:
        about = "" if effect.sampled >= document["good"] else "about "
        facts += [
            (f"Beyond the limit {one.limit.name}", f"{about}{effect.estimate(one.recipients):,}")
            for one in effect.limits
            if one.recipients
        ]
    return [(label, value) for label, value in facts if value]


def _button(effect: BroadcastPreview | None, document: AudienceFileDocument) -> str:
    if effect is not None and effect.needs_approval:
        return "Ask for approval"
    return f"Send {document['good']:,} messages"
