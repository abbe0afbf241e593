"""Devices: register, change, heartbeat, preferences, receipts."""

from collections.abc import Mapping, Sequence

import msgspec
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from drf_spectacular.utils import OpenApiParameter
from msgspec import UNSET

from access.clients.authentication import SafeWrite
from access.models import Scope
from devices import presence, queries, registration, status
from devices.documents import DeviceDocument
from devices.models import DeactivationReason, Device
from devices.presence import Presence
from devices.queries import NEWEST_FIRST
from devices.registration import DESCRIPTIVE_FIELDS, Credential, id_of
from devices.status import Evidence
from devices.tokens import is_device_id
from domain.time import utc_now
from monitoring import rollup_state
from notifications.models.notification import USER_ID_LENGTH
from notifications.receipts import device_receipts
from notifications.validation import FieldProblem, ProblemCollector
from notifyproject.platform import audit
from notifyproject.platform.audit import Unaudited

from ..http import paging
from ..http.body import read_request
from ..http.paths import found_or_404, path_parameter
from ..http.problems import NOT_FOUND, validation_failed
from ..http.query import INVALID_VALUE
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..openapi.operations import operation
from .browsers import (
    BrowserRequest,
    PushSubscriptionRequest,
    RegisteredBrowser,
    registered_browser,
    subscription_in,
)
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
    parse_registration,
)

LIST = "device"
REGISTERED_FIELDS = ("user_id", "platform", "is_active", *DESCRIPTIVE_FIELDS)
PARAMETERS = (
    OpenApiParameter("user_id", str, required=True, description="The devices' user."),
    *paging.PARAMETERS,
)


DEVICES = Scope.DEVICES_WRITE
DEVICE_ID = path_parameter(
    "device_id", "64 hex digits", example="9f2c" * 16, pattern="[0-9a-f]{64}"
)


@operation(scope=DEVICES, request=DeviceRequest, response=DeviceView, also_status=201)
def register_device(request: ClientRequest) -> Response:
    """Register a device by its token, or a browser by its subscription; 201 for a new one.

    A known one moves to the given user.
    """
    new, warnings = parse_registration(
        read_request(request, DeviceRequest, check=parse_registration)
    )
    before = queries.get(id_of(new.token))
    stored = registration.register(new, now=utc_now())
    # Apps register at each start. A registration that changes nothing isn't recorded.
    if change := audit.describe_change(before, stored, fields=REGISTERED_FIELDS):
        _record(request, stored["_id"], change, flag=CHANGE if before else ADDITION)
    return _device_response(stored, code=200 if before else 201, warnings=warnings)


@operation(scope=DEVICES, response=DeviceList, parameters=PARAMETERS)
def list_devices(request: ClientRequest) -> Response:
    """List the devices of a user, newest first."""
    query, problems = request.query_params, ProblemCollector()
    user_id = query.get("user_id", "")
    if not user_id.strip():
        problems.add("/user_id", "required", "`user_id` is required.")
    elif "\x00" in user_id or len(user_id) > USER_ID_LENGTH:
        problems.add("/user_id", "invalid", INVALID_VALUE)
    page_request = paging.parse_page_request(query, list_name=LIST, problems=problems)
    problems.raise_if_any()
    page = queries.page(user_id=user_id, limit=page_request.limit, cursor=page_request.cursor)
    states = presence.read([document["_id"] for document in page.documents])
    results = [device_view(device, states.get(device["_id"])) for device in page.documents]
    cursors = paging.page_links(page, list_name=LIST, order=NEWEST_FIRST)
    return Response(DeviceList(results=results, **cursors))


@operation(scope=DEVICES, response=DeviceView, parameters=(DEVICE_ID,))
def get_device(_request: ClientRequest, device_id: str) -> Response:
    """Get a device."""
    return _device_response(queries.get(_device_id_or_404(device_id)))


@operation(scope=DEVICES, request=DeviceChanges, response=DeviceView, parameters=(DEVICE_ID,))
def change_device(request: ClientRequest, device_id: str) -> Response:
    """Change a device; with a new token, returns the new device.

    The new device has the data and the state of this one: one that its user signed out stays
    inactive until it is registered, or `is_active` is true. This device's ID leads to the new one.
    """
    device_id = _device_id_or_404(device_id)
    body = read_request(request, DeviceChanges, check=device_changes)
    fields, credential, warnings = device_changes(body)
    changed = found_or_404(_apply_changes(device_id, body, fields, credential))
    given = [name for name in body.__struct_fields__ if getattr(body, name) is not UNSET]
    _record(request, device_id, f"Changed: {', '.join(given) or 'nothing'}.")
    return _device_response(changed, warnings=warnings)


@operation(scope=DEVICES, response=None, status=204, parameters=(DEVICE_ID,))
def remove_device(request: ClientRequest, device_id: str) -> Response:
    """Delete a device. Also deletes its token."""
    device_id = _device_id_or_404(device_id)
    # Also what replaced it: the app that removes it may not know the newer ID.
    document = queries.current(device_id)
    ids = {device_id} if document is None else {device_id, document["_id"]}
    if not sum(registration.remove(device_id=device_id) for device_id in ids):
        raise NOT_FOUND.error()
    _record(request, device_id, "Deleted.", flag=DELETION)
    return Response(status=204)


@operation(
    scope=DEVICES,
    request=HeartbeatRequest,
    response=DeviceView,
    parameters=(DEVICE_ID,),
    unaudited=Unaudited.MARKS,
)
def device_heartbeat(request: ClientRequest, device_id: str) -> Response:
    """Report a device's presence.

    If the response has `is_active` false, register the device again.
    """
    device_id, now = _device_id_or_404(device_id), utc_now()
    body = read_request(request, HeartbeatRequest)
    document = found_or_404(registration.heartbeat(device_id=device_id, now=now))
    state = Presence(**msgspec.structs.asdict(body), last_active=now)
    is_stored = presence.store(document["_id"], state)
    return Response(device_view(document, state if is_stored else None))


@operation(
    scope=DEVICES, request=DevicePreferencesRequest, response=DeviceView, parameters=(DEVICE_ID,)
)
def set_device_preferences(request: ClientRequest, device_id: str) -> Response:
    """Change a device's preferences. What the body doesn't name stays."""
    device_id = _device_id_or_404(device_id)
    changes = parse_preferences(
        read_request(request, DevicePreferencesRequest, check=parse_preferences)
    )
    stored = found_or_404(
        registration.set_preferences(device_id=device_id, changes=changes, now=utc_now())
    )
    _record(request, stored["_id"], "Preferences changed.")
    return _device_response(stored)


@operation(
    scope=DEVICES,
    request=PushSubscriptionRequest,
    response=RegisteredBrowser,
    parameters=(DEVICE_ID,),
    unaudited=Unaudited.MARKS,
)
def replace_device_subscription(request: BrowserRequest, device_id: str) -> Response:
    """Replace a browser's subscription after the browser has; returns the new device.

    The service worker does so with the token that the registration returned.
    """
    device_id = _device_id_or_404(device_id)
    if (browser := request.browser) and browser.notification_id is not None:
        raise NOT_FOUND.error()
    new = subscription_in(read_request(request, PushSubscriptionRequest, check=subscription_in))
    owner = None
    if browser is not None:
        owner = found_or_404(queries.get(device_id))["user_id"]
        if not browser.renews_for(owner):
            # Somebody else has registered the browser since.
            raise NOT_FOUND.error()
    changed = _replace_token(device_id, new, user_id=owner, pointer="/endpoint")
    return Response(registered_browser(found_or_404(changed)))


def _device_id_or_404(text: str) -> str:
    if not is_device_id(text):
        raise NOT_FOUND.error()
    return text


def _device_response(
    found: DeviceDocument | None, *, code: int = 200, warnings: Sequence[FieldProblem] = ()
) -> Response:
    document = found_or_404(found)
    state = presence.read([document["_id"]]).get(document["_id"])
    return Response(device_view(document, state, warnings=warnings), status=code)


def _record(request: ClientRequest, device_id: str, message: str, *, flag: int = CHANGE) -> None:
    audit.record_client_action(
        request.client, model=Device, object_id=device_id, message=message, flag=flag
    )


def _apply_changes(
    device_id: str,
    body: DeviceChanges,
    changes: Mapping[str, str | None],
    credential: Credential | None,
) -> DeviceDocument | None:
    """Apply each change by an idempotent write; return the device, or None if it's missing."""
    now = utc_now()
    if credential is not None:
        field = "/device_token" if isinstance(credential, str) else "/subscription"
        renewed = _replace_token(device_id, credential, pointer=field)
    else:
        renewed = queries.current(device_id)
    if renewed is None:
        return None
    device_id = renewed["_id"]
    if changes and registration.update(device_id=device_id, changes=changes, now=now) is None:
        return None
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


def _replace_token(
    device_id: str, credential: Credential, *, user_id: str | None = None, pointer: str
) -> DeviceDocument | None:
    """Make a new device of a new credential, as registration does. Raises ApiError 422.

    ``pointer`` is where the request has the credential.
    """
    try:
        return registration.replace_token(
            device_id=device_id, user_id=user_id, token=credential, now=utc_now()
        )
    except registration.TokenInUseError:
        detail = "Registered for another user. Register the device with PUT /devices."
        problem = FieldProblem(pointer, "token_in_use", detail)
    except registration.OtherKindError:
        detail = "An app's device and a browser's don't replace each other."
        problem = FieldProblem(pointer, "other_kind", detail)
    raise validation_failed([problem])


@operation(
    scope=DEVICES,
    request=DeviceReceiptRequest,
    response=None,
    status=204,
    parameters=(DEVICE_ID,),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.MARKS,
)
def report_device_receipt(request: BrowserRequest, device_id: str) -> Response:
    """Report that a push was delivered or opened; idempotent.

    A browser's service worker reports with the token that the push had in its data.
    """
    device_id = _device_id_or_404(device_id)
    notification_id, event = parse_receipt(
        read_request(request, DeviceReceiptRequest, check=parse_receipt)
    )
    if (browser := request.browser) and browser.notification_id != str(notification_id):
        raise NOT_FOUND.error()
    now = utc_now()
    applied = device_receipts.apply_device_receipt(
        device_id=device_id,
        notification_id=notification_id,
        client_id=None if browser else request.client.id,
        event=event,
        now=now,
    )
    if applied.attempted_at is not None:
        rollup_state.mark_attempt_changed(applied.attempted_at, now=now)
    return Response(status=204)
