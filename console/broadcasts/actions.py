"""Pausing, resuming and cancelling a broadcast from the console, each recorded for the audit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from domain.states import BroadcastStatus
from domain.time import utc_now
from notifications.broadcasts import control, repository
from notifications.broadcasts.documents import Document
from notifications.models import Broadcast
from notifications.resend import actions

from ..notifications.actions import parse_id
from ..widgets import names
from ..widgets.actions import refusal
from .labels import audience_words, headline

QUESTION = "admin/notifications/broadcast/confirm.html"
LIST = "admin:notifications_broadcast_changelist"
PAGE = "admin:notifications_broadcast_change"
B = BroadcastStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Something staff may do to a broadcast."""

    name: str
    """Its place in URLs, and what its permission begins with."""
    button: str
    run: Callable[..., Document]
    of: frozenset[BroadcastStatus]
    """Where a broadcast stands that has something for it."""
    done: str
    recorded: str
    """What stands in the audit log."""
    consequence: str = ""
    """What is asked about first; without it, it is done at once."""

    @property
    def permission(self) -> str:
        """The permission it needs."""
        return f"notifications.{self.name}_broadcast"


PAUSE = Operation(
    name="pause",
    button="Pause",
    run=control.pause,
    of=frozenset({B.SCHEDULED, B.RUNNING}),
    done="Paused. What was accepted is still sent.",
    recorded="Paused.",
)
RESUME = Operation(
    name="resume",
    button="Resume",
    run=control.resume,
    of=frozenset({B.PAUSED}),
    done="Resumed: it goes on behind the last person who was looked at.",
    recorded="Resumed.",
)
CANCEL = Operation(
    name="cancel",
    button="Cancel…",
    run=control.cancel,
    of=frozenset({B.SCHEDULED, B.RUNNING, B.PAUSED, B.COMPLETED, B.FAILED}),
    done="Cancelling: nobody more is told, and what has not been sent is being withdrawn.",
    recorded="Cancelled.",
    consequence=(
        "Nobody more is told, and what has not been sent is withdrawn, for good. "
        "What is on its way goes out."
    ),
)
OPERATIONS = (PAUSE, RESUME, CANCEL)


def operate(admin: Any, request: HttpRequest, object_id: str, operation: Operation) -> HttpResponse:
    """Ask about one broadcast, or do it; POST only."""
    if refused := refusal(
        request,
        may=admin.has_view_permission(request) and request.user.has_perm(operation.permission),
    ):
        return refused
    document = find(object_id)
    if document is None:
        return not_there(request)
    if operation.consequence and request.POST.get("confirmed") != "yes":
        return _question(admin, request, document, operation)
    try:
        operation.run(document["_id"], now=utc_now())
    except actions.InvalidStateError as problem:
        messages.warning(request, f"It was left as it is: {problem}")
    else:
        _record(request, document, operation)
        messages.success(request, operation.done)
    return HttpResponseRedirect(reverse(PAGE, args=[document["_id"]]))


def find(object_id: str) -> Document | None:
    """Return the broadcast that a URL names, None if there is none."""
    broadcast_id = parse_id(object_id)
    return repository.one(broadcast_id) if broadcast_id else None


def not_there(request: HttpRequest) -> HttpResponse:
    """Lead to the list with a word, because there is no such broadcast."""
    messages.warning(request, "There is no such broadcast. It may have been purged.")
    return HttpResponseRedirect(reverse(LIST))


def _question(
    admin: Any, request: HttpRequest, document: Document, operation: Operation
) -> HttpResponse:
    context = {
        **admin.admin_site.each_context(request),
        "title": f"{operation.name.capitalize()}?",
        "opts": admin.opts,
        "operation": operation,
        "headline": headline(document),
        "type_name": names.of_types([document["type"]])[document["type"]],
        "audience": audience_words(document["audience"], document.get("topic")),
        "back": reverse(PAGE, args=[document["_id"]]),
    }
    request.current_app = admin.admin_site.name
    return TemplateResponse(request, QUESTION, context)


def _record(request: HttpRequest, document: Document, operation: Operation) -> None:
    LogEntry.objects.create(
        user_id=request.user.pk,
        content_type=ContentType.objects.get_for_model(Broadcast),
        object_id=str(document["_id"]),
        object_repr=f"{document['type']} {document['_id']}",
        action_flag=CHANGE,
        change_message=operation.recorded,
    )
