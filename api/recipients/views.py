"""Recipients: register, read, erase, export; the notifications of one recipient."""

from functools import partial

from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from drf_spectacular.utils import OpenApiParameter

from access.clients.authentication import SafeWrite
from access.models import Scope
from devices import presence
from domain.time import utc_now
from notifications.actions import actions
from notifications.inbox import actions as inbox_actions
from notifications.store.inbox import Inbox
from notifications.validation import ProblemCollector
from notifyproject.platform import audit
from notifyproject.platform.audit import Unaudited
from privacy import erasure, export
from privacy.export import NEWEST_FIRST
from recipients import queries, registration
from recipients.documents import RecipientDocument
from recipients.models import Recipient
from recipients.registration import PROFILE_FIELDS

from ..devices.schemas import device_view
from ..http import paging
from ..http.body import read_json, read_request
from ..http.fields import UpdatedView
from ..http.paths import USER_ID, found_or_404, new_user_id, user_id_or_404
from ..http.problems import NOT_FOUND, RETRY_SECONDS
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..notifications.filters import list_parameters
from ..notifications.schemas import NotificationList, attempt_view, notification_views
from ..notifications.views import list_page
from ..openapi.operations import operation
from ..suppressions import suppression_view
from . import schemas
from .preferences import PreferencesRequest, parse_preferences
from .schemas import (
    ErasureView,
    ExportView,
    PreferencesView,
    RecipientList,
    RecipientRequest,
    RecipientView,
    preferences_view,
    recipient_view,
)

READ, WRITE = Scope.RECIPIENTS_READ, Scope.RECIPIENTS_WRITE
LIST, RECIPIENTS = "export", "recipients"


@operation(
    scope=READ,
    response=RecipientList,
    parameters=(
        OpenApiParameter("email", str),
        OpenApiParameter("phone", str, description="E.164"),
        *paging.PARAMETERS,
    ),
)
def list_recipients(request: ClientRequest) -> Response:
    """List the registered recipients by user ID.

    `email` and `phone` select the recipients with that address.
    """
    query, problems = request.query_params, ProblemCollector()
    page_request = paging.parse_page_request(query, list_name=RECIPIENTS, problems=problems)
    addresses = schemas.parse_address_filters(query, problems)
    problems.raise_if_any()
    page = queries.page(limit=page_request.limit, cursor=page_request.cursor, **addresses)
    results = [recipient_view(document) for document in page.documents]
    links = paging.page_links(page, list_name=RECIPIENTS, order=queries.BY_USER_ID)
    return Response(RecipientList(results=results, **links))


REGISTERED_FIELDS = (*PROFILE_FIELDS, "attributes", "quiet_hours")


@operation(scope=READ, response=RecipientView, parameters=(USER_ID,))
def get_recipient(_request: ClientRequest, user_id: str) -> Response:
    """Get a recipient."""
    return Response(recipient_view(_recipient_or_404(user_id)))


@operation(
    scope=WRITE,
    request=RecipientRequest,
    response=RecipientView,
    also_status=201,
    parameters=(USER_ID,),
)
def put_recipient(request: ClientRequest, user_id: str) -> Response:
    """Create or replace a recipient; 201 for a new one."""
    check = partial(schemas.parse_recipient, user_id)
    body = read_request(request, RecipientRequest, check=check)
    recipient = schemas.parse_recipient(new_user_id(user_id), body)
    now = utc_now()
    before = registration.get(recipient.user_id)
    stored = registration.register(recipient, now=now)
    # A registration that changes nothing, such as in a daily synchronization, isn't recorded.
    if change := audit.describe_change(before, stored.document, fields=REGISTERED_FIELDS):
        _record(request, user_id, change, flag=CHANGE if before else ADDITION)
    if recipient.timezone is not None and not stored.is_new:
        actions.follow_time_zone(user_id=recipient.user_id, zone=recipient.timezone, now=now)
    return Response(recipient_view(stored.document), status=201 if stored.is_new else 200)


@operation(
    scope=WRITE,
    response=ErasureView,
    also_status=202,
    headers={202: ("Retry-After",)},
    parameters=(USER_ID,),
)
def erase_recipient(request: ClientRequest, user_id: str) -> Response:
    """Erase a recipient, registered or not; 202 with Retry-After if the erasure isn't complete."""
    user_id = user_id_or_404(user_id)
    result = erasure.erase(user_id, now=utc_now())
    if result.has_found_anything:
        extent = "Erased" if result.is_complete else "Partially erased"
        message = (
            f"{extent}: {result.notifications} notifications, {result.devices} devices, "
            f"{result.topics} topics."
        )
        _record(request, user_id, message, flag=DELETION)
    answer = ErasureView(
        user_id=user_id,
        is_complete=result.is_complete,
        notifications=result.notifications,
        devices=result.devices,
        topics=result.topics,
    )
    if result.is_complete:
        return Response(answer)
    return Response(answer, status=202, headers={"Retry-After": str(RETRY_SECONDS)})


@operation(scope=WRITE, response=ExportView, parameters=(USER_ID, *paging.PARAMETERS))
def export_recipient(request: ClientRequest, user_id: str) -> Response:
    """Export all data of a recipient; other clients' notifications need the scope admin."""
    page_request = paging.parse_page_request(request.query_params, list_name=LIST)
    user_id, all_clients = user_id_or_404(user_id), request.client.has_scope(Scope.ADMIN)
    data = export.export(
        user_id,
        client_id=None if all_clients else request.client.id,
        limit=page_request.limit,
        cursor=page_request.cursor,
    )
    if data.is_empty:
        raise NOT_FOUND.error()
    _record(request, user_id, "Exported.")
    states = presence.read([device["_id"] for device in data.devices])
    view = ExportView(
        user_id=user_id,
        exported_at=utc_now(),
        of_all_apps=all_clients,
        person=recipient_view(data.recipient) if data.recipient else None,
        preferences=preferences_view(data.recipient) if data.recipient else None,
        devices=[device_view(device, states.get(device["_id"])) for device in data.devices],
        topics=list(data.topics),
        suppressions=[suppression_view(suppression) for suppression in data.suppressions],
        whatsapp_ids=list(data.whatsapp_ids),
        last_inbound_at=data.last_inbound_at,
        notifications=notification_views(data.notifications, shows_registry=True, now=utc_now()),
        attempts=[attempt_view(attempt) for attempt in data.attempts],
        next=paging.document_cursor(data.notifications[-1], list_name=LIST, order=NEWEST_FIRST)
        if data.has_more
        else None,
    )
    return Response(view)


@operation(scope=READ, response=PreferencesView, parameters=(USER_ID,))
def get_preferences(_request: ClientRequest, user_id: str) -> Response:
    """Get a recipient's preferences."""
    return Response(preferences_view(_recipient_or_404(user_id)))


@operation(scope=WRITE, request=PreferencesRequest, response=PreferencesView, parameters=(USER_ID,))
def put_preferences(request: ClientRequest, user_id: str) -> Response:
    """Change a recipient's preferences and quiet hours. What the body doesn't name stays."""
    changes = parse_preferences(read_json(request))
    stored = registration.set_preferences(
        user_id=user_id_or_404(user_id),
        changes=changes,
        now=utc_now(),
    )
    view = preferences_view(found_or_404(stored))
    _record(request, user_id, "Preferences changed.")
    return Response(view)


def _recipient_or_404(user_id: str) -> RecipientDocument:
    return found_or_404(registration.get(user_id_or_404(user_id)))


def _record(request: ClientRequest, user_id: str, message: str, *, flag: int = CHANGE) -> None:
    audit.record_client_action(
        request.client, model=Recipient, object_id=user_id, message=message, flag=flag
    )


@operation(
    scope=READ,
    response=NotificationList,
    parameters=(USER_ID, *list_parameters(without=["user_id"])),
)
def list_recipient_notifications(request: ClientRequest, user_id: str) -> Response:
    """List the notifications of a recipient, newest first unless `ordering` is given."""
    return list_page(request, {"user_id": user_id_or_404(user_id)})


@operation(
    scope=WRITE,
    response=UpdatedView,
    parameters=(USER_ID,),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.MARKS,
)
def read_all_recipient_notifications(request: ClientRequest, user_id: str) -> Response:
    """Mark all notifications that were sent to a recipient, on any channel, as read.

    At most 1,000 at once, the newest first, among up to 80,000 unread ones, sent or not. If
    `is_complete` is false, the same request continues, even if `updated` is 0.
    """
    done = inbox_actions.mark_all_read(
        inbox=Inbox(request.client.id, user_id_or_404(user_id)), now=request.now()
    )
    return Response(UpdatedView(updated=done.count, is_complete=done.is_complete))
