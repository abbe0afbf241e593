"""Recipients: register, read, erase, export; the notifications of one recipient."""

from typing import Any, ClassVar

from drf_spectacular.utils import OpenApiParameter
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from devices import presence
from domain.time import utc_now
from notifications.inbox import actions as inbox_actions
from notifications.resend import actions
from notifications.store import Inbox
from notifications.validation import ProblemCollector
from privacy import erasure, export
from privacy.export import NEWEST_FIRST
from recipients import registration

from ..devices.schemas import device_view
from ..http import paging
from ..http.body import BODY_ERRORS, check_values, convert, decode, read_body
from ..http.fields import UpdatedView
from ..http.paths import USER_ID, user_id_or_404
from ..http.problems import RETRY_SECONDS, not_found
from ..notifications.filters import list_parameters
from ..notifications.schemas import NotificationList, attempt_view, notification_view
from ..notifications.views import list_page
from ..openapi.operations import describe
from ..suppressions import suppression_view
from . import preferences, schemas
from .audit import record_erasure, record_export
from .preferences import PreferencesRequest
from .schemas import (
    ErasureView,
    ExportView,
    PreferencesView,
    RecipientRequest,
    RecipientView,
    preferences_view,
    recipient_view,
)

WRITE = Scope.RECIPIENTS_WRITE
LIST = "export"


class RecipientDetail(APIView):
    """A registered person."""

    scopes: ClassVar = {"GET": WRITE, "PUT": WRITE, "DELETE": WRITE}

    @describe(
        operation="getRecipient",
        scope=WRITE,
        response=RecipientView,
        problems=(404,),
        parameters=(USER_ID,),
    )
    def get(self, request: Any, user_id: str) -> Response:
        """Return a registered person."""
        return Response(recipient_view(_recipient_or_404(user_id)))

    @describe(
        operation="putRecipient",
        scope=WRITE,
        request=RecipientRequest,
        response=RecipientView,
        also_status=201,
        problems=(*BODY_ERRORS, 404),
        parameters=(USER_ID,),
    )
    def put(self, request: Any, user_id: str) -> Response:
        """Register a person, or make them what the body says; 201 for a new one."""
        body = convert(_read_json(request), RecipientRequest)
        recipient = schemas.parse_recipient(user_id_or_404(user_id), body)
        now = utc_now()
        stored = registration.register(recipient, now=now)
        if recipient.timezone is not None and not stored.is_new:
            actions.follow_time_zone(user_id=recipient.user_id, zone=recipient.timezone, now=now)
        return Response(recipient_view(stored.document), status=201 if stored.is_new else 200)

    @describe(
        operation="eraseRecipient",
        scope=WRITE,
        response=ErasureView,
        also_status=202,
        problems=(404,),
        parameters=(USER_ID,),
    )
    def delete(self, request: Any, user_id: str) -> Response:
        """Erase a person, registered or not; 202 with Retry-After if it has to be sent again."""
        user_id = user_id_or_404(user_id)
        result = erasure.erase(user_id, now=utc_now())
        if result.has_found_anything:
            record_erasure(request, user_id, _audit_message(result))
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


class Export(APIView):
    """All there is about a person."""

    scopes: ClassVar = {"GET": WRITE}

    @describe(
        operation="exportRecipient",
        scope=WRITE,
        response=ExportView,
        problems=(400, 404, 422),
        parameters=(
            USER_ID,
            paging.LIMIT,
            OpenApiParameter("cursor", str, description="next of another page."),
        ),
    )
    def get(self, request: Any, user_id: str) -> Response:
        """Return everything held about a person; of other apps' notifications only to an admin."""
        problems = ProblemCollector()
        page_request = paging.parse_page_request(
            request.query_params, list_name=LIST, problems=problems
        )
        problems.raise_if_any()
        user_id, all_clients = user_id_or_404(user_id), request.user.has_scope(Scope.ADMIN)
        data = export.export(
            user_id,
            client_id=None if all_clients else request.user.id,
            limit=page_request.limit,
            cursor=page_request.cursor,
        )
        if data.is_empty:
            raise not_found()
        record_export(request, user_id)
        return Response(_export_view(data, user_id=user_id, all_clients=all_clients))


class Preferences(APIView):
    """What a person wants."""

    scopes: ClassVar = {"GET": WRITE, "PUT": WRITE}

    @describe(
        operation="getPreferences",
        scope=WRITE,
        response=PreferencesView,
        problems=(404,),
        parameters=(USER_ID,),
    )
    def get(self, request: Any, user_id: str) -> Response:
        """Return what a registered person wants."""
        return Response(preferences_view(_recipient_or_404(user_id)))

    @describe(
        operation="putPreferences",
        scope=WRITE,
        request=PreferencesRequest,
        response=PreferencesView,
        problems=(*BODY_ERRORS, 404),
        parameters=(USER_ID,),
    )
    def put(self, request: Any, user_id: str) -> Response:
        """Replace what a registered person wants."""
        parsed = preferences.parse_preferences(_read_json(request))
        stored = registration.set_preferences(
            user_id=user_id_or_404(user_id),
            preferences=parsed.preferences,
            quiet_hours=parsed.quiet_hours,
            now=utc_now(),
        )
        if stored is None:
            raise not_found()
        return Response(preferences_view(stored))


def _read_json(request: Any) -> dict[str, Any]:
    raw = decode(read_body(request._request))
    check_values(raw)
    return raw


def _recipient_or_404(user_id: str) -> registration.Document:
    found = registration.get(user_id_or_404(user_id))
    if found is None:
        raise not_found()
    return found


def _audit_message(result: erasure.Erasure) -> str:
    extent = "Erased" if result.is_complete else "Erased in part"
    return (
        f"{extent}: {result.notifications} notifications, {result.devices} devices, "
        f"{result.topics} topics."
    )


def _export_view(data: export.Export, *, user_id: str, all_clients: bool) -> ExportView:
    states = presence.read([device["_id"] for device in data.devices])
    return ExportView(
        user_id=user_id,
        exported_at=utc_now(),
        of_all_apps=all_clients,
        person=recipient_view(data.person) if data.person else None,
        preferences=preferences_view(data.person) if data.person else None,
        devices=[device_view(device, states.get(device["_id"])) for device in data.devices],
        topics=list(data.topics),
        suppressions=[suppression_view(one) for one in data.suppressions],
        last_inbound_at=data.last_inbound_at,
        notifications=[notification_view(document) for document in data.notifications],
        attempts=[attempt_view(one) for one in data.attempts],
        next=paging.document_cursor(data.notifications[-1], list_name=LIST, order=NEWEST_FIRST)
        if data.has_more
        else None,
    )


class RecipientNotifications(APIView):
    """What one person was sent."""

    scopes: ClassVar = {"GET": Scope.RECIPIENTS_WRITE}

    @describe(
        operation="listRecipientNotifications",
        scope=Scope.RECIPIENTS_WRITE,
        response=NotificationList,
        problems=(400, 422),
        parameters=(USER_ID, *list_parameters(without=["user_id"])),
    )
    def get(self, request: Any, user_id: str) -> Response:
        """List a person's notifications, newest first."""
        return list_page(request, {"user_id": user_id})


class RecipientReadAll(APIView):
    """A person has seen everything."""

    scopes: ClassVar = {"POST": Scope.RECIPIENTS_WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="readAllRecipientNotifications",
        scope=Scope.RECIPIENTS_WRITE,
        response=UpdatedView,
        parameters=(USER_ID,),
    )
    def post(self, request: Any, user_id: str) -> Response:
        """Mark every in-app notification of a person as read."""
        count = inbox_actions.mark_all_read(inbox=Inbox(request.user.id, user_id), now=utc_now())
        return Response(UpdatedView(updated=count))
