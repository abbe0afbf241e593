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
from ..widgets.actions import require_post
from .labels import audience_label, summarize

CONFIRMATION_TEMPLATE = "admin/notifications/broadcast/confirm.html"
LIST = "admin:notifications_broadcast_changelist"
PAGE = "admin:notifications_broadcast_change"
B = BroadcastStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastAction:
    """Something staff may do to a broadcast."""

    name: str
    """Its place in URLs, and what its permission begins with."""
    button: str
    run: Callable[..., Document]
    statuses: frozenset[BroadcastStatus]
    """Where a broadcast stands that has something for it."""
    success_message: str
    audit_message: str
    """What stands in the audit log."""
    consequence: str = ""
    """What is asked about first; without it, it is done at once."""

    @property
    def permission(self) -> str:
        """The permission it needs."""
        return f"notifications.{self.name}_broadcast"


PAUSE = BroadcastAction(
    name="pause",
    button="Pause",
    run=control.pause,
    statuses=frozenset({B.SCHEDULED, B.RUNNING}),
    success_message="Paused. What was accepted is still sent.",
    audit_message="Paused.",
)
RESUME = BroadcastAction(
    name="resume",
    button="Resume",
    run=control.resume,
    statuses=frozenset({B.PAUSED}),
    success_message="Resumed: it goes on behind the last person who was looked at.",
    audit_message="Resumed.",
)
CANCEL = BroadcastAction(
    name="cancel",
    button="Cancel…",
    run=control.cancel,
    statuses=frozenset({B.SCHEDULED, B.RUNNING, B.PAUSED, B.COMPLETED, B.FAILED}),
    success_message="Cancelling: nobody more is told, and what has not been sent is being withdrawn.",
    audit_message="Cancelled.",
    consequence=(
        "Nobody more is told, and what has not been sent is withdrawn, for good. "
        "What is on its way goes out."
    ),
)
BROADCAST_ACTIONS = (PAUSE, RESUME, CANCEL)


def run_action(
    admin: Any, request: HttpRequest, object_id: str, action: BroadcastAction
) -> HttpResponse:
    """Ask about one broadcast, or do it; POST only."""
    if refused := require_post(
        request,
        allowed=admin.has_view_permission(request) and request.user.has_perm(action.permission),
    ):
        return refused
    document = find_broadcast(object_id)
    if document is None:
        return not_found(request)
    if action.consequence and request.POST.get("confirmed") != "yes":
        return _confirmation_page(admin, request, document, action)
    try:
        action.run(document["_id"], now=utc_now())
    except actions.InvalidStateError as problem:
        messages.warning(request, f"It was left as it is: {problem}")
    else:
        _record(request, document, action)
        messages.success(request, action.success_message)
    return HttpResponseRedirect(reverse(PAGE, args=[document["_id"]]))


def find_broadcast(object_id: str) -> Document | None:
    """Return the broadcast that a URL names, None if there is none."""
    broadcast_id = parse_id(object_id)
    return repository.get(broadcast_id) if broadcast_id else None


def not_found(request: HttpRequest) -> HttpResponse:
    """Lead to the list with a word, because there is no such broadcast."""
    messages.warning(request, "There is no such broadcast. It may have been purged.")
    return HttpResponseRedirect(reverse(LIST))


def _confirmation_page(
    admin: Any, request: HttpRequest, document: Document, action: BroadcastAction
) -> HttpResponse:
    context = {
        **admin.admin_site.each_context(request),
        "title": f"{action.name.capitalize()}?",
        "opts": admin.opts,
        "action": action,
        "headline": summarize(document),
        "type_name": names.type_names([document["type"]])[document["type"]],
        "audience": audience_label(document["audience"], document.get("topic")),
        "back": reverse(PAGE, args=[document["_id"]]),
    }
    request.current_app = admin.admin_site.name
    return TemplateResponse(request, CONFIRMATION_TEMPLATE, context)


def _record(request: HttpRequest, document: Document, action: BroadcastAction) -> None:
    LogEntry.objects.create(
        user_id=request.user.pk,
        content_type=ContentType.objects.get_for_model(Broadcast),
        object_id=str(document["_id"]),
        object_repr=f"{document['type']} {document['_id']}",
        action_flag=CHANGE,
        change_message=action.audit_message,
    )
