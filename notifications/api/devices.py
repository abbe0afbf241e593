"""The devices of an app's users. Each method reads, calls one service, and answers."""

from typing import Any, ClassVar

from msgspec import UNSET
from rest_framework.response import Response
from rest_framework.views import APIView

from access.models import Scope
from devices import presence, queries, status
from devices import registration as devices_registration
from devices.models import DeactivationReason
from devices.presence import Presence
from devices.status import Evidence
from devices.tokens import is_device_id
from domain.time import utc_now

from ..store import Document
from . import devices_list as lists
from .devices_answers import DeviceList, DeviceView, device_view
from .devices_requests import (
    DeviceChanges,
    DevicePreferencesRequest,
    DeviceRequest,
    HeartbeatRequest,
    description,
    preferences,
    registration,
)
from .parsing import T, check_values, convert, decode, read_body
from .problems import not_found
from .schema import describe, identifier

DEVICES = Scope.DEVICES_WRITE
BAD_BODY = (400, 413, 415, 422)
DEVICE_ID = identifier("device_id", "64 hex digits", pattern="[0-9a-f]{64}")


class Devices(APIView):
    """Registering one, and listing a user's."""

    scopes: ClassVar = {"PUT": DEVICES, "GET": DEVICES}

    @describe(
        operation="registerDevice",
        scope=DEVICES,
        request=DeviceRequest,
        response=DeviceView,
        problems=BAD_BODY,
    )
    def put(self, request: Any) -> Response:
        """Register a device by its token; one that was another user's leaves that user."""
        new = registration(_body(request, DeviceRequest))
        return _answer(devices_registration.register(new, now=utc_now()))

    @describe(
        operation="listDevices",
        scope=DEVICES,
        response=DeviceList,
        problems=(400, 422),
        parameters=lists.DESCRIBED,
    )
    def get(self, request: Any) -> Response:
        """List a user's devices, newest first."""
        asked = lists.parse(request.query_params)
        page = queries.page(
            user_id=asked.user_id, limit=asked.limit, after=asked.after, before=asked.before
        )
        states = presence.read([document["_id"] for document in page.documents])
        results = [device_view(one, states.get(one["_id"])) for one in page.documents]
        return Response(DeviceList(results=results, **lists.cursors(page)))


class OneDevice(APIView):
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
        return _answer(queries.one(_id(device_id)))

    @describe(
        operation="changeDevice",
        scope=DEVICES,
        request=DeviceChanges,
        response=DeviceView,
        problems=(*BAD_BODY, 404),
        parameters=(DEVICE_ID,),
    )
    def patch(self, request: Any, device_id: str) -> Response:
        """Change what is known of a device; with a new token the answer is the new device."""
        return _answer(_changed(_id(device_id), _body(request, DeviceChanges)))

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
        if not devices_registration.remove(device_id=_id(device_id)):
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
        problems=(*BAD_BODY, 404),
        parameters=(DEVICE_ID,),
    )
    def post(self, request: Any, device_id: str) -> Response:
        """Tell how a device is now. An answer that is not active means: register again."""
        device_id, body, now = _id(device_id), _body(request, HeartbeatRequest), utc_now()
        document = devices_registration.heartbeat(device_id=device_id, now=now)
        if document is None:
            raise not_found()
        told = Presence(
            online=body.online,
            app_foreground=body.app_foreground,
            notification_enabled=body.notification_enabled,
            last_active=now,
        )
        return Response(device_view(document, told if presence.store(device_id, told) else None))


class Preferences(APIView):
    """What a device wants to be told."""

    scopes: ClassVar = {"PUT": DEVICES}

    @describe(
        operation="setDevicePreferences",
        scope=DEVICES,
        request=DevicePreferencesRequest,
        response=DeviceView,
        problems=(*BAD_BODY, 404),
        parameters=(DEVICE_ID,),
    )
    def put(self, request: Any, device_id: str) -> Response:
        """Replace a device's preferences."""
        device_id, body = _id(device_id), _body(request, DevicePreferencesRequest)
        return _answer(
            devices_registration.set_preferences(
                device_id=device_id, preferences=preferences(body), now=utc_now()
            )
        )


def _body(request: Any, to: type[T]) -> T:
    raw = decode(read_body(request._request))
    check_values(raw)
    return convert(raw, to)


def _id(text: str) -> str:
    """Return the id of a device; raises Problem 404 for what cannot be one."""
    if not is_device_id(text):
        raise not_found()
    return text


def _answer(document: Document | None) -> Response:
    if document is None:
        raise not_found()
    return Response(device_view(document, presence.read([document["_id"]]).get(document["_id"])))


def _changed(device_id: str, body: DeviceChanges) -> Document | None:
    """Carry out what a body changes, each by a write of its own; all may be repeated."""
    now, told = utc_now(), description(body)
    if told and devices_registration.update(device_id=device_id, changes=told, now=now) is None:
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
    return queries.one(device_id)
