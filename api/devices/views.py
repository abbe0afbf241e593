"""Devices: register, change, heartbeat, preferences, receipts."""

from dataclasses import dataclass
from typing import Any, ClassVar

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from msgspec import UNSET
from rest_framework.response import Response
from rest_framework.views import APIView

from access.clients.authentication import SafeWrite
from access.models import Scope
from devices import presence, queries, status
from devices import registration as devices_registration
from devices.models import DeactivationReason
from devices.presence import Presence
from devices.queries import NEWEST_FIRST, Position
from devices.status import Evidence
from devices.tokens import is_device_id
from domain.time import utc_now
from notifications.models.notification import USER_ID_LENGTH
from notifications.receipts import device_receipts
from notifications.store import Document
from notifications.validation import ProblemCollector
from notifyproject.db.paging import Page

from ..http import paging
from ..http.body import BODY_ERRORS, T, check_values, convert, decode, read_body
from ..http.paths import path_parameter
from ..http.problems import not_found
from ..http.query import reject_unknown
from ..openapi.operations import describe
from .schemas import (
    DeviceChanges,
    DeviceList,
    DevicePreferencesRequest,
    DeviceReceiptRequest,
    DeviceRequest,
    DeviceView,
    HeartbeatRequest,
    device_changes,
    device_view,
    parse_preferences,
    parse_receipt,
    registration,
)

LIST = "device"
PARAMETER_NAMES = ("user_id", *paging.PARAMETER_NAMES)
PARAMETERS = (
    OpenApiParameter("user_id", str, required=True, description="Whose devices."),
    *paging.PARAMETERS,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What part of whose list is asked for."""

    user_id: str
    limit: int
    after: Position | None = None
    before: Position | None = None


def parse_list_request(query: QueryDict) -> ListRequest:
    """Return a checked list request.

    Raises ApiError 400 for a parameter nobody knows, one given twice, or a cursor that is not ours;
    InvalidRequestError for a value that cannot be.
    """
    reject_unknown(query, allowed=PARAMETER_NAMES)
    problems = ProblemCollector()
    user_id = query.get("user_id", "")
    if not user_id:
        problems.add("/user_id", "required", "Whose devices? Give a user_id.")
    elif "\x00" in user_id or len(user_id) > USER_ID_LENGTH:
        problems.add("/user_id", "invalid", "Not a value of this parameter.")
    limit = paging.parse_limit(query, problems)
    problems.raise_if_any()
    after, before = paging.parse_cursors(query, list_name=LIST, position_type=Position)
    return ListRequest(user_id=user_id, limit=limit, after=after, before=before)


def cursors(page: Page) -> dict[str, str | None]:
    """Return the cursors to the neighbouring pages."""
    return paging.page_links(page, list_name=LIST, order=NEWEST_FIRST)


DEVICES = Scope.DEVICES_WRITE
DEVICE_ID = path_parameter("device_id", "64 hex digits", pattern="[0-9a-f]{64}")


class Devices(APIView):
    """Registering one, and listing a user's."""

    scopes: ClassVar = {"PUT": DEVICES, "GET": DEVICES}

    @describe(
        operation="registerDevice",
        scope=DEVICES,
        request=DeviceRequest,
        response=DeviceView,
        problems=BODY_ERRORS,
    )
    def put(self, request: Any) -> Response:
        """Register a device by its token; one that was another user's leaves that user."""
        new = registration(_read_body(request, DeviceRequest))
        return _device_response(devices_registration.register(new, now=utc_now()))

    @describe(
        operation="listDevices",
        scope=DEVICES,
        response=DeviceList,
        problems=(400, 422),
        parameters=PARAMETERS,
    )
    def get(self, request: Any) -> Response:
        """List a user's devices, newest first."""
        list_request = parse_list_request(request.query_params)
        page = queries.page(
            user_id=list_request.user_id,
            limit=list_request.limit,
            after=list_request.after,
            before=list_request.before,
        )
        states = presence.read([document["_id"] for document in page.documents])
        results = [device_view(one, states.get(one["_id"])) for one in page.documents]
        return Response(DeviceList(results=results, **cursors(page)))


class DeviceDetail(APIView):
    """One of them."""

    scopes: ClassVar = {"GET": DEVICES, "PATCH": DEVICES, "DELETE": DEVICES}

    @describe(
        operation="getDevice",
        scope=DEVICES,
        response=DeviceView,
        problems=(404,),
        parameters=(DEVICE_ID,),
    )
    def get(self, request: Any, device_id: str) -> Response:
        """Return a device."""
        return _device_response(queries.get(_device_id_or_404(device_id)))

    @describe(
        operation="changeDevice",
        scope=DEVICES,
        request=DeviceChanges,
        response=DeviceView,
        problems=(*BODY_ERRORS, 404),
        parameters=(DEVICE_ID,),
    )
    def patch(self, request: Any, device_id: str) -> Response:
        """Change what is known of a device; with a new token the answer is the new device."""
        return _device_response(
            _apply_changes(_device_id_or_404(device_id), _read_body(request, DeviceChanges))
        )

    @describe(
        operation="removeDevice",
        scope=DEVICES,
        response=None,
        status=204,
        problems=(404,),
        parameters=(DEVICE_ID,),
    )
    def delete(self, request: Any, device_id: str) -> Response:
        """Forget a device and its token."""
        if not devices_registration.remove(device_id=_device_id_or_404(device_id)):
            raise not_found()
        return Response(status=204)


class Heartbeat(APIView):
    """An app that is awake."""

    scopes: ClassVar = {"POST": DEVICES}

    @describe(
        operation="deviceHeartbeat",
        scope=DEVICES,
        request=HeartbeatRequest,
        response=DeviceView,
        problems=(*BODY_ERRORS, 404),
        parameters=(DEVICE_ID,),
    )
    def post(self, request: Any, device_id: str) -> Response:
        """Tell how a device is now. An answer that is not active means: register again."""
        device_id, body, now = (
            _device_id_or_404(device_id),
            _read_body(request, HeartbeatRequest),
            utc_now(),
        )
        document = devices_registration.heartbeat(device_id=device_id, now=now)
        if document is None:
            raise not_found()
        state = Presence(
            online=body.online,
            app_foreground=body.app_foreground,
            notification_enabled=body.notification_enabled,
            last_active=now,
        )
        return Response(device_view(document, state if presence.store(device_id, state) else None))


class Preferences(APIView):
    """What a device wants to be told."""

    scopes: ClassVar = {"PUT": DEVICES}

    @describe(
        operation="setDevicePreferences",
        scope=DEVICES,
        request=DevicePreferencesRequest,
        response=DeviceView,
        problems=(*BODY_ERRORS, 404),
        parameters=(DEVICE_ID,),
    )
    def put(self, request: Any, device_id: str) -> Response:
        """Replace a device's preferences."""
        device_id, body = (
            _device_id_or_404(device_id),
            _read_body(request, DevicePreferencesRequest),
        )
        return _device_response(
            devices_registration.set_preferences(
                device_id=device_id, preferences=parse_preferences(body), now=utc_now()
            )
        )


def _read_body(request: Any, structure: type[T]) -> T:
    raw = decode(read_body(request._request))
    check_values(raw)
    return convert(raw, structure)


def _device_id_or_404(text: str) -> str:
    """Return the id of a device; raises ApiError 404 for what cannot be one."""
    if not is_device_id(text):
        raise not_found()
    return text


def _device_response(document: Document | None) -> Response:
    if document is None:
        raise not_found()
    return Response(device_view(document, presence.read([document["_id"]]).get(document["_id"])))


def _apply_changes(device_id: str, body: DeviceChanges) -> Document | None:
    """Carry out what a body changes, each by a write of its own; all may be repeated."""
    now, changes = utc_now(), device_changes(body)
    if (
        changes
        and devices_registration.update(device_id=device_id, changes=changes, now=now) is None
    ):
        return None
    if body.device_token is not UNSET:
        renewed = devices_registration.replace_token(
            device_id=device_id, token=body.device_token, now=now
        )
        if renewed is None:
            return None
        device_id = renewed["_id"]
    if body.is_active is True:
        status.reactivate(device_id=device_id, now=now)
    elif body.is_active is False:
        status.deactivate(
            device_ids=[device_id],
            reason=DeactivationReason.BY_USER,
            evidence=Evidence(at=now, source="api"),
            now=now,
        )
    return queries.get(device_id)


class DeviceReceipts(APIView):
    """A push that came, or was opened."""

    scopes: ClassVar = {"POST": Scope.DEVICES_WRITE}
    test_mode: ClassVar = {"POST": SafeWrite.OWN}

    @describe(
        operation="reportDeviceReceipt",
        scope=Scope.DEVICES_WRITE,
        request=DeviceReceiptRequest,
        response=None,
        status=204,
        problems=(*BODY_ERRORS, 404),
        parameters=(DEVICE_ID,),
    )
    def post(self, request: Any, device_id: str) -> Response:
        """Tell that a push reached a device or was opened there; again changes nothing."""
        if not is_device_id(device_id):
            raise not_found()
        raw = decode(read_body(request._request))
        check_values(raw)
        receipt = parse_receipt(convert(raw, DeviceReceiptRequest))
        try:
            device_receipts.apply_device_receipt(
                device_id=device_id,
                notification_id=receipt.notification_id,
                client_id=request.user.id,
                event=receipt.event,
                now=utc_now(),
            )
        except device_receipts.NotPushedError:
            raise not_found() from None
        return Response(status=204)
