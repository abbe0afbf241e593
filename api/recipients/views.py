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
    PersonRequest,
    PersonView,
    PreferencesView,
    person_view,
    preferences_view,
)

PEOPLE = Scope.RECIPIENTS_WRITE
LIST = "export"


class RecipientDetail(APIView):
    """A registered person."""

    scopes: ClassVar = {"GET": PEOPLE, "PUT": PEOPLE, "DELETE": PEOPLE}

    @describe(
        operation="getRecipient",
        scope=PEOPLE,
        response=PersonView,
        problems=(404,),
        parameters=(USER_ID,),
    )
    def get(self, request: Any, user_id: str) -> Response:
        """Return a registered person."""
        return Response(person_view(_person(user_id)))

    @describe(
        operation="putRecipient",
        scope=PEOPLE,
        request=PersonRequest,
        response=PersonView,
        or_else=201,
        problems=(*BODY_ERRORS, 404),
        parameters=(USER_ID,),
    )
    def put(self, request: Any, user_id: str) -> Response:
        """Register a person, or make them what the body says; 201 for a new one."""
        body = convert(_body(request), PersonRequest)
        person = schemas.person(user_id_or_404(user_id), body)
        now = utc_now()
        stored = registration.register(person, now=now)
        if person.timezone is not None and not stored.is_new:
            actions.follow_time_zone(user_id=person.user_id, zone=person.timezone, now=now)
        return Response(person_view(stored.document), status=201 if stored.is_new else 200)

    @describe(
        operation="eraseRecipient",
        scope=PEOPLE,
        response=ErasureView,
        or_else=202,
        problems=(404,),
        parameters=(USER_ID,),
    )
    def delete(self, request: Any, user_id: str) -> Response:
        """Erase a person, registered or not; 202 with Retry-After if it has to be sent again."""
        user_id = user_id_or_404(user_id)
        erased = erasure.erase(user_id, now=utc_now())
        if erased.has_found_anything:
            record_erasure(request, user_id, _audit_message(erased))
        answer = ErasureView(
            user_id=user_id,
            is_complete=erased.is_complete,
            notifications=erased.notifications,
            devices=erased.devices,
            topics=erased.topics,
        )
        if erased.is_complete:
            return Response(answer)
        return Response(answer, status=202, headers={"Retry-After": str(RETRY_SECONDS)})


class Export(APIView):
    """All there is about a person."""

    scopes: ClassVar = {"GET": PEOPLE}

    @describe(
        operation="exportRecipient",
        scope=PEOPLE,
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
        asked = paging.parse(request.query_params, of=LIST, problems=problems)
        problems.raise_if_any()
        user_id, of_all = user_id_or_404(user_id), request.user.may(Scope.ADMIN)
        held = export.export(
            user_id,
            client_id=None if of_all else request.user.id,
            limit=asked.limit,
            cursor=asked.place,
        )
        if held.is_empty:
            raise not_found()
        record_export(request, user_id)
        return Response(_exported(held, user_id=user_id, of_all=of_all))


class Preferences(APIView):
    """What a person wants."""

    scopes: ClassVar = {"GET": PEOPLE, "PUT": PEOPLE}

    @describe(
        operation="getPreferences",
        scope=PEOPLE,
        response=PreferencesView,
        problems=(404,),
        parameters=(USER_ID,),
    )
    def get(self, request: Any, user_id: str) -> Response:
        """Return what a registered person wants."""
        return Response(preferences_view(_person(user_id)))

    @describe(
        operation="putPreferences",
        scope=PEOPLE,
        request=PreferencesRequest,
        response=PreferencesView,
        problems=(*BODY_ERRORS, 404),
        parameters=(USER_ID,),
    )
    def put(self, request: Any, user_id: str) -> Response:
        """Replace what a registered person wants."""
        wanted = preferences.preferences(_body(request))
        stored = registration.set_preferences(
            user_id=user_id_or_404(user_id),
            preferences=wanted.preferences,
            quiet_hours=wanted.quiet_hours,
            now=utc_now(),
        )
        if stored is None:
            raise not_found()
        return Response(preferences_view(stored))


def _body(request: Any) -> dict[str, Any]:
    raw = decode(read_body(request._request))
    check_values(raw)
    return raw


def _person(user_id: str) -> registration.Document:
    found = registration.get(user_id_or_404(user_id))
    if found is None:
        raise not_found()
    return found


def _audit_message(erased: erasure.Erasure) -> str:
    whole = "Erased" if erased.is_complete else "Erased in part"
    return (
        f"{whole}: {erased.notifications} notifications, {erased.devices} devices, "
        f"{erased.topics} topics."
    )


def _exported(held: export.Export, *, user_id: str, of_all: bool) -> ExportView:
    states = presence.read([device["_id"] for device in held.devices])
    return ExportView(
        user_id=user_id,
        exported_at=utc_now(),
        of_all_apps=of_all,
        person=person_view(held.person) if held.person else None,
        preferences=preferences_view(held.person) if held.person else None,
        devices=[device_view(device, states.get(device["_id"])) for device in held.devices],
        topics=list(held.topics),
        suppressions=[suppression_view(one) for one in held.suppressions],
        last_inbound_at=held.last_inbound_at,
        notifications=[notification_view(document) for document in held.notifications],
        attempts=[attempt_view(one) for one in held.attempts],
        next=paging.cursor(held.notifications[-1], of=LIST, order=NEWEST_FIRST)
        if held.has_more
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
