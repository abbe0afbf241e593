"""Notifications: create, list, get, delete, preview, attempts, read, cancel, retry, resend."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bson import ObjectId
from django.contrib.admin.models import CHANGE, DELETION
from msgspec import structs

from access.clients.authentication import SafeWrite
from access.models import APIClient, Scope
from domain import time
from domain.channels import Channel
from domain.states import NotificationStatus
from notifications import queries
from notifications.actions import actions
from notifications.catalog import types
from notifications.documents.notification import NotificationDocument
from notifications.inbox import actions as inbox_actions
from notifications.intake import acceptance as intake_acceptance
from notifications.intake import preview, replacement
from notifications.intake.acceptance import Acceptance
from notifications.intake.requests import Caller, NotificationRequest
from notifications.models import Notification
from notifications.validation import FieldProblem, ProblemCollector, is_all, parse_channels
from notifyproject.platform import audit, tracing
from notifyproject.platform.audit import Unaudited

from ..http import idempotency_header
from ..http.body import has_body, read_request
from ..http.paths import NOTIFICATION_ID, found_or_404, object_id_or_404
from ..http.problems import (
    ALREADY_CANCELLED,
    ALREADY_NOTIFIED,
    ALREADY_SENDING,
    ALREADY_SENT,
    CONTENT_REMOVED,
    INVALID_STATE,
    NOT_FOUND,
    RECIPIENT_SUPPRESSED,
    SENSITIVE_DATA_DESTROYED,
    validation_failed,
)
from ..http.query import FIELDS, parse_fields, select_fields
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..openapi.operations import operation
from . import expansion, filters
from .expansion import EXPAND
from .filters import list_parameters
from .schemas import (
    AcceptedNotificationView,
    AttemptList,
    CancelledView,
    CancelRequest,
    ChannelsRequest,
    ExpandedNotificationView,
    NotificationList,
    NotificationView,
    PreviewView,
    RescheduleRequest,
    accepted_view,
    attempt_view,
    notification_views,
    preview_view,
)

READ, WRITE = Scope.NOTIFICATIONS_READ, Scope.NOTIFICATIONS_WRITE
REPEAT_PROBLEMS = (INVALID_STATE, SENSITIVE_DATA_DESTROYED, CONTENT_REMOVED)
_channels_operation = partial(
    operation,
    request=ChannelsRequest,
    response=NotificationView,
    is_body_required=False,
    parameters=(NOTIFICATION_ID,),
)


def notification_or_404(request: ClientRequest, notification_id: str) -> NotificationDocument:
    """Return one of the client's notifications. Raises ApiError 404."""
    return found_or_404(
        queries.get(notification_id=object_id_or_404(notification_id), client_id=request.client.id)
    )


def view_for(request: ClientRequest, document: NotificationDocument) -> NotificationView:
    """Return a notification with the recipient data that the client may read."""
    (view,) = notification_views(
        [document], shows_registry=_shows_registry(request), now=request.now()
    )
    return view


def _shows_registry(request: ClientRequest) -> bool:
    return request.client.has_scope(Scope.RECIPIENTS_READ)


@operation(
    scope=WRITE,
    request=NotificationRequest,
    response=AcceptedNotificationView,
    status=202,
    problems=(ALREADY_NOTIFIED,),
    parameters=(idempotency_header.parameter(required=False),),
    headers={202: ("Location",)},
    test_mode=SafeWrite.MARKED,
    unaudited=Unaudited.CREATES,
    relies_on_copies=True,
)
def create_notification(request: ClientRequest) -> Response:
    """Create a notification."""
    caller = _caller(request, idempotency_key=idempotency_header.optional_key(request))
    body = _read_notification(request, caller)
    acceptance = intake_acceptance.accept(body, caller=caller, now=request.now())
    return _accepted(request, acceptance)


@operation(
    scope=WRITE,
    request=NotificationRequest,
    response=AcceptedNotificationView,
    status=202,
    problems=(
        ALREADY_NOTIFIED,
        ALREADY_SENDING,
        ALREADY_SENT,
        ALREADY_CANCELLED,
        INVALID_STATE,
    ),
    parameters=(idempotency_header.IN_PATH,),
    headers={202: ("Location",)},
    test_mode=SafeWrite.MARKED,
    relies_on_copies=True,
)
def put_notification(request: ClientRequest, key: str) -> Response:
    """Replace the notification with this idempotency key, or create it.

    It keeps its `id`. The body is that of `POST /notifications`, and nothing of the earlier request
    remains. Repeating a request has no second effect. Once sending has begun, nothing changes: 409
    `already_sending`, `already_sent`, or `already_cancelled`, with its `notification_id`.
    """
    key = idempotency_header.key_in_path(key)
    caller = _caller(request)
    body = _read_notification(request, caller)
    acceptance = replacement.put(body, key=key, caller=caller, now=request.now())
    if "replaced" in acceptance.document and not acceptance.is_replayed:
        _record(request, acceptance.document["_id"], "Replaced.")
    return _accepted(request, acceptance)


def _caller(request: ClientRequest, *, idempotency_key: str | None = None) -> Caller:
    client = request.client
    return Caller(
        client_id=client.id,
        request_id=request.request_id,
        traceparent=tracing.traceparent(),
        idempotency_key=idempotency_key,
        is_test=client.is_test,
        may_ignore_limits=client.has_scope(Scope.LIMITS_IGNORE),
        may_send_critical=client.has_scope(Scope.NOTIFICATIONS_CRITICAL),
    )


def _accepted(request: ClientRequest, acceptance: Acceptance) -> Response:
    tracing.annotate({"notify.notification.id": str(acceptance.document["_id"])})
    shows_registry = _shows_registry(request)
    view = accepted_view(acceptance, shows_registry=shows_registry, now=request.now())
    return idempotency_header.created(
        request, view, new_id=view.id, is_replayed=acceptance.is_replayed
    )


def _read_notification(request: ClientRequest, caller: Caller) -> NotificationRequest:
    def check(body: NotificationRequest) -> None:
        intake_acceptance.check(body, caller=caller, now=request.now())

    return read_request(request, NotificationRequest, check=check)


@operation(scope=READ, response=NotificationList, parameters=list_parameters())
def list_notifications(request: ClientRequest) -> Response:
    """List notifications, newest first unless `ordering` is given."""
    return list_page(request, {})


@operation(
    scope=READ, response=ExpandedNotificationView, parameters=(NOTIFICATION_ID, FIELDS, EXPAND)
)
def get_notification(request: ClientRequest, notification_id: str) -> Response:
    """Get a notification."""
    query, problems = request.query_params, ProblemCollector()
    fields = parse_fields(query, NotificationView, problems)
    wanted = expansion.parse(request, problems)
    problems.raise_if_any()
    document = notification_or_404(request, notification_id)
    carriers = [id_ for delivery in document["delivery"] if (id_ := delivery.get("carried_by"))]
    statuses = queries.statuses(carriers) if carriers else None
    (view,) = _sparse_views(request, [document], fields, carrier_statuses=statuses)
    lists = expansion.expanded(document, wanted)
    if fields is not None:
        return Response({**view, **lists})
    return Response(ExpandedNotificationView(**structs.asdict(view), **lists))


@operation(
    scope=WRITE,
    response=None,
    status=204,
    parameters=(NOTIFICATION_ID,),
    test_mode=SafeWrite.OWN,
)
def delete_notification(request: ClientRequest, notification_id: str) -> Response:
    """Delete a notification and cancel its pending deliveries; idempotent.

    It leaves lists and the inbox; `GET` shows it with `is_active` false. Its record stays until its
    retention ends, and still prevents a second notification for the same entity.
    """
    found = object_id_or_404(notification_id)
    try:
        actions.delete(notification_id=found, client_id=request.client.id, now=request.now())
    except LookupError:
        raise NOT_FOUND.error() from None
    _record(request, found, "Deleted.", flag=DELETION)
    return Response(status=204)


@operation(scope=READ, response=AttemptList, parameters=(NOTIFICATION_ID,))
def list_attempts(request: ClientRequest, notification_id: str) -> Response:
    """List the attempts of a notification, oldest first."""
    attempts = queries.attempts_with_receipts(notification_or_404(request, notification_id))
    return Response(AttemptList(results=[attempt_view(attempt) for attempt in attempts]))


def list_page(request: ClientRequest, fixed: dict[str, Any]) -> Response:
    """Return a page of notifications; the query can't set the ``fixed`` filters."""
    list_request = filters.parse_list_request(
        request.query_params, client_id=request.client.id, fixed=fixed
    )
    page = queries.page(
        list_request.filters,
        ordering=list_request.ordering,
        limit=list_request.limit,
        cursor=list_request.cursor,
    )
    results = _sparse_views(request, page.documents, list_request.fields)
    return Response(NotificationList(results=results, **filters.cursors(page, list_request)))


def _sparse_views(
    request: ClientRequest,
    documents: Sequence[NotificationDocument],
    fields: frozenset[str] | None,
    *,
    carrier_statuses: Mapping[ObjectId, NotificationStatus] | None = None,
) -> list[Any]:
    views = notification_views(
        documents,
        carrier_statuses=carrier_statuses,
        shows_registry=_shows_registry(request),
        has_can_retry=fields is None or "can_retry" in fields,
        now=request.now(),
    )
    return [select_fields(view, fields) for view in views]


_mark_operation = operation(
    scope=WRITE,
    response=NotificationView,
    parameters=(NOTIFICATION_ID,),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.MARKS,
)


@_mark_operation
def read_notification(request: ClientRequest, notification_id: str) -> Response:
    """Mark a notification as read, whatever its channels; idempotent.

    Its in-app delivery becomes `read` as well.
    """
    return _mark(inbox_actions.mark_read_by_client, request, notification_id)


@_mark_operation
def unread_notification(request: ClientRequest, notification_id: str) -> Response:
    """Mark a notification as unread; deliveries keep their status. Idempotent."""
    return _mark(inbox_actions.mark_unread_by_client, request, notification_id)


def _mark(
    action: inbox_actions.MarkAction, request: ClientRequest, notification_id: str
) -> Response:
    marked = action(
        client_id=request.client.id,
        notification_id=object_id_or_404(notification_id),
        now=request.now(),
    )
    return Response(view_for(request, marked))


@_mark_operation
def ack_notification(request: ClientRequest, notification_id: str) -> Response:
    """Record that the recipient acted on a notification; idempotent.

    Later steps of its plan aren't sent.
    """
    return _mark(inbox_actions.mark_acted, request, notification_id)


@operation(scope=WRITE, request=CancelRequest, response=CancelledView, test_mode=SafeWrite.OWN)
def cancel_notifications(request: ClientRequest) -> Response:
    """Cancel the pending deliveries of every notification of an entity; idempotent.

    For example once an invoice is paid: no later step and no scheduled reminder is sent.
    """
    body = read_request(request, CancelRequest)
    problems = ProblemCollector()
    for field in ("entity_id", "type", "user_id"):
        if (text := getattr(body, field)) is not None:
            problems.check_one_line(text, f"/{field}")
    problems.raise_if_any()
    try:
        cancelled = actions.cancel_entity(
            client_id=request.client.id,
            entity_id=body.entity_id,
            type_name=body.type,
            user_id=body.user_id,
            reason="Cancelled by the client.",
            now=request.now(),
        )
    except types.UnknownTypeError:
        raise validation_failed([FieldProblem("/type", "unknown_type", "Unknown type.")]) from None
    audit.record_client_action(
        request.client,
        model=APIClient,
        object_id=str(request.client.id),
        message=f"Cancelled {cancelled} of its notifications of {body.entity_id}.",
        flag=CHANGE,
    )
    return Response(CancelledView(cancelled=cancelled))


@_channels_operation(scope=WRITE, problems=(INVALID_STATE,), test_mode=SafeWrite.OWN)
def cancel_notification(request: ClientRequest, notification_id: str) -> Response:
    """Cancel the pending deliveries of a notification."""
    document = notification_or_404(request, notification_id)
    channels = _requested_channels(request)
    cancelled = actions.cancel(
        notification_id=document["_id"],
        channels=channels,
        reason="Cancelled by the client.",
        now=request.now(),
    )
    _record(request, document["_id"], f"Cancelled: {_names_of(channels)}.")
    return Response(view_for(request, cancelled))


@_channels_operation(
    scope=WRITE,
    status=202,
    problems=(*REPEAT_PROBLEMS, RECIPIENT_SUPPRESSED),
    test_mode=SafeWrite.OWN,
)
def retry_notification(request: ClientRequest, notification_id: str) -> Response:
    """Retry the failed deliveries of a notification.

    Failed deliveries get all their retries again. A delivery that waits for a retry is sent now. A
    suppressed one is sent if it can reach the recipient by now.
    `can_retry` of the notification says in advance whether a retry is possible.

    409 `recipient_suppressed`: the address bounced or is suppressed, or the recipient opted out.
    409 `sensitive_data_destroyed`: its sensitive data, such as a code, is destroyed when all
    deliveries have ended. 409 `content_removed`: retention removed its content.
    """
    return _send_again(actions.retry, request, notification_id, done="Retried")


@_channels_operation(
    scope=Scope.NOTIFICATIONS_RESEND,
    status=202,
    problems=REPEAT_PROBLEMS,
    test_mode=SafeWrite.MARKED,
)
def resend_notification(request: ClientRequest, notification_id: str) -> Response:
    """Resend a notification as a new one.

    409 `sensitive_data_destroyed`: its sensitive data, such as a code, is destroyed when all
    deliveries have ended. 409 `content_removed`: retention removed its content.
    """
    return _send_again(actions.resend, request, notification_id, done="Resent")


@operation(
    scope=WRITE,
    request=RescheduleRequest,
    response=NotificationView,
    problems=(INVALID_STATE,),
    parameters=(NOTIFICATION_ID,),
    test_mode=SafeWrite.OWN,
)
def reschedule_notification(request: ClientRequest, notification_id: str) -> Response:
    """Reschedule a notification that hasn't been attempted.

    A ttl counts from the new time. An expires_at stays: the new time must be before it.
    """
    document = notification_or_404(request, notification_id)
    body = read_request(request, RescheduleRequest)
    try:
        rescheduled = actions.reschedule(
            notification_id=document["_id"],
            requested_time=time.parse_timestamp(body.scheduled_at),
            now=request.now(),
        )
    except time.InvalidTimeError as error:
        raise validation_failed([FieldProblem("/scheduled_at", error.code, str(error))]) from None
    _record(request, document["_id"], "Rescheduled.")
    return Response(view_for(request, rescheduled))


def _send_again(
    action: Callable[..., NotificationDocument],
    request: ClientRequest,
    notification_id: str,
    *,
    done: str,
) -> Response:
    document = notification_or_404(request, notification_id)
    channels = _requested_channels(request)
    again = action(notification_id=document["_id"], channels=channels, now=request.now())
    _record(request, document["_id"], f"{done}: {_names_of(channels)}.")
    return Response(view_for(request, again), status=202)


def _names_of(channels: Sequence[Channel] | None) -> str:
    return "all channels" if channels is None else ", ".join(channels)


def _record(
    request: ClientRequest, notification_id: ObjectId, message: str, *, flag: int = CHANGE
) -> None:
    audit.record_client_action(
        request.client,
        model=Notification,
        object_id=str(notification_id),
        message=message,
        flag=flag,
    )


def _requested_channels(request: ClientRequest) -> list[Channel] | None:
    """Return the channels in an action's optional body; None for all channels."""
    if not has_body(request._request):
        return None
    names = read_request(request, ChannelsRequest).channels
    if names is None or is_all(names):
        return None
    problems = ProblemCollector()
    channels = parse_channels(names, problems=problems, takes_all=True)
    problems.raise_if_any()
    return channels


@operation(
    scope=WRITE,
    request=NotificationRequest,
    response=PreviewView,
    test_mode=SafeWrite.NOTHING,
    unaudited=Unaudited.NOTHING,
)
def preview_notification(request: ClientRequest) -> Response:
    """Validate a notification and render it for every channel; nothing is stored or sent."""
    caller = Caller(
        client_id=request.client.id,
        request_id=request.request_id,
        may_ignore_limits=request.client.has_scope(Scope.LIMITS_IGNORE),
        may_send_critical=request.client.has_scope(Scope.NOTIFICATIONS_CRITICAL),
    )
    body = _read_notification(request, caller)
    shows_registry = _shows_registry(request)
    rendered = preview.preview(
        body, caller=caller, shows_registry=shows_registry, now=request.now()
    )
    return Response(preview_view(rendered, shows_registry=shows_registry))
