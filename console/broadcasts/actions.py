"""Pause, resume, and cancel a broadcast, and ask for its approval."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html

from access import actors
from domain.states import BroadcastStatus
from domain.time import utc_now
from notifications.actions import actions
from notifications.broadcasts import approvals, control, repository
from notifications.documents.broadcasts import BroadcastDocument
from notifications.models import Broadcast

from ..widgets import names
from ..widgets.actions import (
    ask,
    is_confirmed,
    not_found,
    parse_id,
    record_change,
    require_post,
)
from ..widgets.links import BROADCAST
from .labels import audience_label, summarize

LIST = "admin:notifications_broadcast_changelist"
B = BroadcastStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastAction:
    """An action of staff on a broadcast."""

    name: str  # Segment in URLs, and beginning of the permission's name
    button: str
    run: Callable[..., BroadcastDocument]
    statuses: frozenset[BroadcastStatus]
    success_message: str
    audit_message: str
    has_author: bool = False  # Whether it makes the user one of the authors
    consequence: str = ""  # Text of the confirmation; if empty, none is shown

    @property
    def permission(self) -> str:
        """The required permission."""
        return f"notifications.{self.name}_broadcast"


BROADCAST_ACTIONS = (
    BroadcastAction(
        name="pause",
        button="Pause",
        run=control.pause,
        statuses=frozenset({B.SCHEDULED, B.RUNNING}),
        success_message="Paused. Existing notifications are still sent.",
        audit_message="Paused.",
    ),
    BroadcastAction(
        name="resume",
        button="Resume",
        run=control.resume,
        statuses=frozenset({B.PAUSED}),
        success_message="Resumed",
        audit_message="Resumed.",
    ),
    BroadcastAction(
        name="submit",
        button="Ask for approval",
        run=approvals.submit,
        statuses=frozenset({B.DRAFT, B.EXPIRED}),
        success_message="Approvers are told. You are one of its authors now, and can't approve it.",
        audit_message="Submitted for approval.",
        has_author=True,
    ),
    BroadcastAction(
        name="cancel",
        button="Cancel…",
        run=control.cancel,
        statuses=frozenset(B) - {B.CANCELLING, B.CANCELLED},
        success_message="Cancelling pending notifications",
        audit_message="Cancelled.",
        consequence="Permanently stops the broadcast and cancels pending notifications. Sends in "
        "progress complete.",
    ),
)


def run_action(
    admin: Any, request: HttpRequest, object_id: str, action: BroadcastAction
) -> HttpResponse:
    """Run an action on one broadcast, after its confirmation if any; POST only."""
    document = posted_about(admin, request, object_id, permission=action.permission)
    if isinstance(document, HttpResponse):
        return document
    back = reverse(BROADCAST, args=[document["_id"]])
    if action.consequence and not is_confirmed(request):
        type_name = names.type_names([document["type"]])[document["type"]]
        audience = audience_label(document["audience"], document.get("topic"))
        return ask(
            admin,
            request,
            question=f"{action.name.capitalize()} this broadcast?",
            consequences=(
                format_html(
                    "<strong>{}</strong> to {}. {}.",
                    type_name,
                    audience.lower(),
                    summarize(document),
                ),
                action.consequence,
            ),
            button="Cancel notifications",
            back=back,
        )
    try:
        by = {"by": actors.staff_actor(request.user.pk)} if action.has_author else {}
        action.run(document["_id"], now=utc_now(), **by)
    except actions.InvalidStateError as problem:
        messages.warning(request, f"No change: {problem}")
    else:
        name = f"{document['type']} {document['_id']}"
        record_change(request, Broadcast, document["_id"], action.audit_message, name=name)
        messages.success(request, action.success_message)
    return HttpResponseRedirect(back)


def posted_about(
    admin: Any, request: HttpRequest, object_id: str, *, permission: str
) -> BroadcastDocument | HttpResponse:
    """Return the broadcast that a POST is about, or the response to what isn't one or not allowed.

    Raises PermissionDenied.
    """
    allowed = admin.has_view_permission(request) and request.user.has_perm(permission)
    if refused := require_post(request, allowed=allowed):
        return refused
    return find_broadcast(object_id) or not_found(request, "Broadcast", LIST)


def find_broadcast(object_id: str) -> BroadcastDocument | None:
    """Return the broadcast with an ID from a URL, or None."""
    broadcast_id = parse_id(object_id)
    return repository.get(broadcast_id) if broadcast_id else None
