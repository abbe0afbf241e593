"""The page of one notification."""

from datetime import datetime
from typing import Any

from bson import ObjectId
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications import queries
from notifications.models import Notification
from notifications.resend.assessment import assess_risks
from notifications.resend.retries import liftable_channels, retry_choices
from notifications.store import Document, is_content_removed
from notifyproject.platform import tracing
from recipients.masking import can_reveal_addresses, can_see_addresses

from ..texts.labels import CHANNELS, notification_state
from ..widgets import columns, names, panels
from ..widgets.actions import not_found, parse_id, record_change, render_page
from ..widgets.links import NOTIFICATION, NOTIFICATIONS, RECIPIENT
from . import presentation
from .actions import (
    LIFT_AND_RESEND,
    RESCHEDULE,
    RESEND,
    RESTORE,
    RETRY,
    STAFF_ACTIONS,
    StaffAction,
)
from .summary import summarize

TIMES = (
    ("Created", "created_at"),
    ("Scheduled", "scheduled_at"),
    ("Expires", "expires_at"),
    ("Sent", "sent_at"),
    ("Read", "read_at"),
    ("Failed", "failed_at"),
    ("Deleted by its client", "deleted_at"),
    ("Content removed", "content_removed_at"),
    ("Purged on", "purge_at"),
)


def show(
    admin: Any, request: HttpRequest, object_id: str, *, is_revealed: bool = False
) -> HttpResponse:
    """Show one notification, with recorded unmasked addresses if ``is_revealed``."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    notification_id = parse_id(object_id)
    document = queries.get(notification_id=notification_id) if notification_id else None
    if document is None:
        return not_found(request, "Notification", NOTIFICATIONS)
    if is_revealed:
        name = f"{document['type']} {document['_id']}"
        record_change(request, Notification, document["_id"], "Revealed addresses.", name=name)
    context = _context(request, document, unmasked=is_revealed or can_see_addresses(request.user))
    return render_page(
        admin, request, "console/notifications/page.html", **context, is_revealed=is_revealed
    )


def _context(request: HttpRequest, document: Document, *, unmasked: bool) -> dict[str, Any]:
    now = utc_now()
    retry_refusal = retry_choices([document], now=now)[document["_id"]].refusal(None)
    may_lift = LIFT_AND_RESEND.is_permitted(request.user) and not is_content_removed(document)
    risks = {channel: risk for (_, channel), risk in assess_risks([document], now=now).items()}
    status, color = notification_state(document["status"], document["delivery"], now=now)
    type_name = names.type_names([document["type"]])[document["type"]]
    # The breadcrumbs show the text of this object: the type's name and the ID.
    original = Notification(pk=document["_id"], type=type_name)
    return {
        "title": str(original),
        "original": original,
        "document": document,
        "type_name": type_name,
        "status": status,
        "color": color,
        "deleted_chip": columns.deleted_chip() if document.get("deleted_at") else "",
        "may_restore": _is_restorable(document) and request.user.has_perm(RESTORE),
        "test_chip": columns.test_chip() if document.get("is_test") else "",
        "headline": summarize(document, now=now),
        "actions": _available_actions(request, document, now, can_retry=retry_refusal is None),
        "retry_refusal": retry_refusal,
        "cards": presentation.cards(document, risks, unmasked=unmasked, now=now),
        "lift": LIFT_AND_RESEND,
        "liftable_channels": [
            CHANNELS[channel]
            for channel in (liftable_channels(document, now=now) if may_lift else ())
        ],
        "timeline": presentation.timeline(
            queries.attempts_with_receipts(document), unmasked=unmasked
        ),
        "errors": presentation.errors(document, unmasked=unmasked),
        "shown": presentation.render_content(document),
        "contact": presentation.contact(document, unmasked=unmasked),
        "variables": presentation.variables(document, unmasked=unmasked),
        "facts": _facts(document),
        "times": panels.times(document, TIMES),
        "resent_from": _link(document.get("resent_from")),
        "resent_as": [_link(resend_id) for resend_id in document["resent_as"]],
        "recipient_url": reverse(RECIPIENT, args=[quote(document["user_id"])])
        if document.get("user_id") and request.user.has_perm("recipients.view_recipient")
        else None,
        "may_reveal": not unmasked and can_reveal_addresses(request.user),
        "audit": panels.audit_log(Notification, document["_id"]),
    }


def _available_actions(
    request: HttpRequest, document: Document, now: datetime, *, can_retry: bool
) -> list[StaffAction]:
    """Return the actions, the most useful first: what waits needs no resend."""
    if not document["is_active"]:
        return []
    is_removed = is_content_removed(document)
    is_waiting = any(d["status"] == DeliveryStatus.PENDING for d in document["delivery"])
    available = [
        action
        for action in STAFF_ACTIONS
        if action is not LIFT_AND_RESEND
        and action.is_permitted(request.user)
        and not (is_removed and action.shows_resend_risk)
        and (action is RESEND or any(action.applies_to(d, now=now) for d in document["delivery"]))
    ]
    later = [RESCHEDULE, RESEND] if is_waiting else []
    if not can_retry:
        later.append(RETRY)
    first = [one for one in available if one not in later]
    return [*first, *(one for one in later if one in available)]


def _is_restorable(document: Document) -> bool:
    return document.get("deleted_at") is not None and document.get("erased_at") is None


def _facts(document: Document) -> list[tuple[str, str]]:
    client_id, content = document["client_id"], document["content"]
    template, version = content.get("template_id"), content.get("template_version")
    facts = (
        ("ID", str(document["_id"])),
        ("Client", names.client_names([client_id])[client_id]),
        ("Category", document["category"]),
        ("Priority", document["priority"]),
        ("Entity ID", document.get("entity_id")),
        ("External ID", document.get("external_id")),
        ("Source", document.get("source")),
        ("Idempotency key", document.get("idempotency_key")),
        ("Request ID", document.get("request_id")),
        ("Trace ID", tracing.trace_id(document.get("traceparent"))),
        ("Template", f"{template}, version {version}" if template and version else template),
    )
    return [(label, value) for label, value in facts if value]


def _link(notification_id: ObjectId | None) -> dict[str, str] | None:
    if notification_id is None:
        return None
    return {"id": str(notification_id), "url": reverse(NOTIFICATION, args=[notification_id])}
