"""The signed-in user's own in-app alerts: operators without mail get them nowhere else."""

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from access.clients import registry
from domain.time import utc_now
from monitoring.alerts import operators
from notifications.documents.notification import NotificationDocument
from notifications.inbox import actions, feed
from notifications.inbox.feed import NEWEST_FIRST
from notifications.staff_messages import STAFF_PREFIX
from notifications.store.inbox import Inbox
from notifications.store.reading import content_of
from notifyproject.db import paging
from notifyproject.db.paging import InvalidCursorError

from .widgets.actions import require_post

PAGE, READ = "own-alerts", "own-alerts-read"
MAY_SEE = "analytics.view_incident"
PAGE_LENGTH = 50


def inbox_of(request: HttpRequest) -> Inbox:
    """Return the inbox to which alerts for the signed-in user go."""
    client_id = registry.system_client_id(now=utc_now())
    return Inbox(client_id=client_id, user_id=f"{STAFF_PREFIX}{request.user.get_username()}")


def show(request: HttpRequest) -> HttpResponse:
    """Show the alerts, the newest first. Raises PermissionDenied."""
    if not request.user.has_perm(MAY_SEE):
        raise PermissionDenied
    text, cursor = request.GET.get("cursor", ""), None
    if text:
        try:
            cursor = paging.decode_cursor(text, list_name=PAGE)
        except InvalidCursorError:
            return HttpResponseRedirect(reverse(PAGE))
    inbox = inbox_of(request)
    own = next((operator for operator in operators() if operator.user_id == inbox.user_id), None)
    found = feed.page(inbox, limit=PAGE_LENGTH, cursor=cursor)
    older = (
        paging.encode_cursor(
            paging.cursor_of_document(found.documents[-1], NEWEST_FIRST), list_name=PAGE
        )
        if found.has_next
        else ""
    )
    context = {
        **admin.site.each_context(request),
        "title": "My alerts",
        "alerts": [_row(document) for document in found.documents],
        "unread": feed.counts(inbox).unread,
        "older": older,
        "is_first": cursor is None,
        "is_notified": own is not None,
        "named": bool(settings.ALERT_RECIPIENTS),
        "email": own and own.email,
    }
    return TemplateResponse(request, "console/own_alerts.html", context)


def mark_read(request: HttpRequest) -> HttpResponse:
    """Mark the alerts as read; POST only."""
    if refused := require_post(request, allowed=request.user.has_perm(MAY_SEE)):
        return refused
    done = actions.mark_all_read(inbox=inbox_of(request), now=utc_now())
    if not done.is_complete:
        messages.info(request, f"{done.count:,} marked as read. Older ones are left.")
    return HttpResponseRedirect(reverse(PAGE))


def _row(document: NotificationDocument) -> dict[str, Any]:
    content = content_of(document)
    return {
        "subject": content.subject or "Alert",
        "body": content.body,
        "at": document["inbox_at"],
        "is_read": document["is_read"],
    }


urlpatterns = [
    path("", admin.site.admin_view(show), name=PAGE),
    path("read/", admin.site.admin_view(mark_read), name=READ),
]
