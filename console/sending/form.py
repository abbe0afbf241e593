"""The form of one message: recipient, texts or data, and time; and the request that it makes."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from django import forms
from django.urls import reverse
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from domain.channels import Channel
from domain.states import SchemaMode
from notifications import validation
from notifications.catalog import types
from notifications.catalog.types import TypeConfig
from notifications.content import rendering
from notifications.content.properties import with_offset
from notifications.content.reminders import EVENT_VARIABLES
from notifications.documents.catalog import NotificationTypeDocument
from notifications.intake.requests import NotificationRequest
from notifications.models.notification import SUBJECT_LENGTH
from notifications.validation import (
    FieldProblem,
    InvalidRequestError,
    ProblemCollector,
    pointer_name,
)

from ..texts.labels import CHANNELS
from . import fields, recipients
from .fields import OMITTED, PREFIX
from .recipients import Target, UnclearRecipientError

MAX_RECIPIENT = 320
MAX_BODY = 100_000
NOW, LATER = "now", "later"
UTC, OWN_ZONE = "utc", "recipient"
NO_TIME = "Enter the time, such as 2026-12-01T09:00, or send it now."
UNREACHABLE = "This recipient has no address for the type's channels: {}."
NO_TEXT = "Enter the text."
NO_ZONE = "The recipient has no time zone. Enter the time in UTC."
WRONG_FORM = "This has the wrong form or length."
_REFUSED_AT = re.compile(r" - at `\$(.*)`\Z", re.DOTALL)
"""The place in msgspec's message of what a structure refuses."""
_PLACES = {
    "user_id": "recipient",
    "recipient": "recipient",
    "scheduled_at": "at",
    "scheduled_local": "at",
    "event_at": "event_at",
}
"""The input for the first token of a problem's pointer."""


def sendable_types() -> list[TypeConfig]:
    """Return the types of which staff may send one message, by name."""
    found = (config for config in types.active_types() if config.is_sendable_by_staff)
    return sorted(found, key=lambda config: config.name.casefold())


class MessageForm(forms.Form):
    """The inputs of one message of a type."""

    recipient = forms.CharField(
        required=False,
        max_length=MAX_RECIPIENT,
        help_text="A user ID, a name, an email address, or a phone number with its country code.",
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "off", "spellcheck": "false", "list": "offered"}
        ),
    )
    when = forms.ChoiceField(
        choices=[(NOW, "Now"), (LATER, "At a time")],
        initial=NOW,
        widget=UnfoldAdminSelectWidget,
        label="Send",
    )
    at = forms.CharField(
        required=False,
        max_length=fields.MAX_TIME,
        label="Time",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )
    zone = forms.ChoiceField(
        choices=[(UTC, "UTC"), (OWN_ZONE, "The recipient's time zone")],
        initial=UTC,
        label="Time zone",
        widget=UnfoldAdminSelectWidget,
    )

    def __init__(
        self, data: Any = None, *, document: NotificationTypeDocument, user: Any, **options: Any
    ) -> None:
        super().__init__(data, use_required_attribute=False, **options)
        self.document, self.user = document, user
        self.target: Target | None = None
        self.choices: tuple[Target, ...] = ()
        """Recipients that the text may mean, if there are several."""
        self.fields["at"].widget.input_type = "datetime-local"
        self.fields["recipient"].widget.attrs |= {
            "hx-post": reverse("send-one-offered"),
            "hx-trigger": "input changed delay:250ms",
            "hx-target": "#offered",
            "hx-params": "recipient,csrfmiddlewaretoken",
        }
        version = document.get("template_version") or 0
        self.has_template = rendering.exists(document["_id"], version=version)
        self.fields.update(self._own_fields())

    def _own_fields(self) -> Iterator[tuple[str, forms.Field]]:
        if not self.has_template:
            subject = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})
            yield (
                "subject",
                forms.CharField(required=False, max_length=SUBJECT_LENGTH, widget=subject),
            )
            body = UnfoldAdminTextareaWidget(attrs={"rows": 6})
            yield (
                "body",
                forms.CharField(label="Text", required=False, max_length=MAX_BODY, widget=body),
            )
        if self.document.get("notify_before_seconds"):
            widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})
            widget.input_type = "datetime-local"
            note = "In UTC. The reminder is sent before it, in place of the time below."
            event = fields.TimeField(
                label="Time of the event", required=False, help_text=note, widget=widget
            )
            yield "event_at", event
        yield from fields.fields_of(self.document)

    @property
    def message_fields(self) -> list[Any]:
        """The inputs of the message itself."""
        others = {"recipient", "when", "at", "zone"}
        return [self[name] for name in self.fields if name not in others]

    def clean(self) -> dict[str, Any]:
        """Find the recipient, and check that a later time is given."""
        given: dict[str, Any] = self.cleaned_data
        if "recipient" in given:
            try:
                self.target = recipients.find_target(
                    given["recipient"], meant=self._meant(), user=self.user
                )
            except UnclearRecipientError as error:
                self.choices = tuple(error.choices)
                self.add_error("recipient", str(error))
        if given.get("when") == LATER and not given.get("at") and "at" not in self.errors:
            self.add_error("at", NO_TIME)
        return given

    def _meant(self) -> str:
        """Return the chosen one of several recipients, if it was chosen for the present text."""
        sent = self.data.get("recipient", "").strip()
        is_same = sent == self.data.get("meant_for", "").strip()
        return self.data.get("meant", "") if is_same else ""

    def request(self) -> NotificationRequest:
        """Return the request of a valid form, as the API would. Raises InvalidRequestError."""
        given, target = self.cleaned_data, self.target
        if target is None:
            raise AssertionError("a valid form has a recipient")
        content = {
            "subject": given.get("subject") or None,
            "body": (given.get("body") or "").replace("\r\n", "\n") or None,
        }
        event_at = given.get("event_at", OMITTED)
        value = {
            "type": self.document["_id"],
            "user_id": target.user_id,
            "recipient": {"email": target.email, "phone": target.phone},
            "source": str(self.user.pk),
            "content": content,
            "data": self._data(),
            "event_at": None if event_at is OMITTED else event_at,
            **_times(given),
        }
        problems = ProblemCollector()
        validation.check_storable(value, "", problems, in_data=False)
        problems.raise_if_any()
        try:
            return msgspec.convert(value, NotificationRequest, strict=True)
        except msgspec.ValidationError as error:
            place = _REFUSED_AT.search(str(error))
            pointer = place[1].replace(".", "/") if place else ""
            problem = FieldProblem(pointer, "wrong_type", WRONG_FORM)
            raise InvalidRequestError([problem]) from error

    def find_mismatches(self) -> list[FieldProblem]:
        """Return where the data of an invalid form differs from the schema, to show all at once."""
        config = types.find_type(self.document["_id"])
        schema = config.schema if config else None
        if schema is None or schema.mode is not SchemaMode.REJECT or not self.has_template:
            return []
        has_event = self.cleaned_data.get("event_at", OMITTED) is not OMITTED
        by_event = {f"/data/{name}" for name in EVENT_VARIABLES} if has_event else set()
        return [
            problem
            for problem in schema.find_mismatches(self._data())
            if problem.pointer not in by_event
            and not self.has_error(self._input_of(problem.pointer) or "")
        ]

    def _data(self) -> dict[str, Any]:
        return {
            name.removeprefix(PREFIX): value
            for name, value in self.cleaned_data.items()
            if name.startswith(PREFIX) and value is not OMITTED
        }

    def show(self, problems: Sequence[FieldProblem]) -> None:
        """Add the problems of a refused request to their inputs."""
        channels = [CHANNELS[Channel(name)] for name in self.document["channels"]]
        for problem in problems:
            name = self._input_of(problem.pointer)
            label = self[name].label if name else ""
            self.add_error(name, _worded(problem, label, channels=channels))

    def _input_of(self, pointer: str) -> str | None:
        first, _, rest = pointer.removeprefix("/").partition("/")
        if first == "data":
            variable = pointer_name(rest.split("/")[0])
            name = f"{PREFIX}{variable}"
            if variable in EVENT_VARIABLES and name not in self.fields:
                name = "event_at"
        elif first == "content":
            name = rest.split("/")[0]
        else:
            name = _PLACES.get(first, "")
        return name if name in self.fields else None

    @property
    def meant(self) -> str:
        """The choice of the recipient: whom the text means, or whom a link to the form means."""
        return self.target.key if self.target else self.initial.get("meant", "")

    def hidden(self) -> list[tuple[str, str]]:
        """Return name and text of each input, to send the same form again."""
        shown = [
            (name, str(self[name].value() or ""))
            for name in self.fields
            if self[name].value() not in (None, "")
        ]
        # From the preview on, the text means the recipient that the preview showed.
        return [*shown, ("meant", self.meant), ("meant_for", self.data.get("recipient", ""))]


def _times(given: Mapping[str, Any]) -> dict[str, Any]:
    if given["when"] == NOW:
        return {}
    at = given["at"].strip()
    if given["zone"] == OWN_ZONE:
        return {"scheduled_local": {"at": at}}
    return {"scheduled_at": with_offset(at)}


def _worded(problem: FieldProblem, label: str, *, channels: Sequence[str]) -> str:
    """Return a problem in the words of the form."""
    first, *path = problem.pointer.removeprefix("/").split("/")
    if first == "data" and len(path) > 1:
        return f"At {'/'.join(path[1:])}: {problem.detail}"
    if first == "data" and problem.code == "missing_variable":
        return f"Enter {label[:1].lower()}{label[1:]}."
    if problem.pointer == "/scheduled_local/timezone" and problem.code == "required":
        return NO_ZONE
    if problem.pointer == "/content/body" and problem.code == "required":
        return NO_TEXT
    if problem.pointer == "/recipient" and problem.code == "no_address":
        return UNREACHABLE.format(", ".join(channels))
    return problem.detail
