"""The recipient's browsers, which get pushes without an app: registered with an inbox token."""

from contextlib import suppress
from typing import Annotated

import msgspec
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from msgspec import UNSET, Meta, UnsetType

from access.clients.inbox_tokens import InboxUser
from devices import push_keys, queries, registration, status
from devices.models import DeactivationReason, Device, Platform
from devices.registration import OtherKindError, Registration, TokenInUseError, id_of
from devices.status import Evidence
from devices.tokens import is_device_id
from domain.time import utc_now
from notifications.validation import ProblemCollector
from notifyproject.platform import audit

from ..devices.browsers import (
    PushSubscriptionRequest,
    RegisteredBrowser,
    parse_subscription,
    registered_browser,
)
from ..devices.views import DEVICE_ID
from ..http.body import read_request
from ..http.fields import DeviceId, Language, TimeZoneName, check_language, check_time_zone
from ..http.problems import NOT_FOUND
from ..http.rendering import Response
from ..http.requests import InboxRequest
from ..openapi.operations import operation

RECORDED_FIELDS = ("user_id", "platform", "is_active", "device_model")
UNKNOWN_TO_PAGES = ("app_version", "os_version")
"""What an app's server may have registered, and a page says nothing of."""


class InboxPushView(msgspec.Struct, kw_only=True, frozen=True):
    """What a page needs in order to subscribe a browser."""

    application_server_key: str | None = None
    """The service's newest key, in base64url. null: web push isn't configured."""


class InboxBrowserRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A browser to register for the recipient."""

    subscription: PushSubscriptionRequest
    replaces: DeviceId | UnsetType = UNSET
    """The device of an earlier subscription of this browser."""
    device_model: Annotated[str, Meta(max_length=120, examples=["Firefox on Linux"])] | None = None
    language: Language | None = None
    timezone: TimeZoneName | None = None


@operation(scope=None, response=InboxPushView)
def get_inbox_push(_request: InboxRequest) -> Response:
    """Get the key with which a page subscribes a browser. It changes when the key is rotated."""
    return Response(InboxPushView(application_server_key=push_keys.application_server_key()))


@operation(scope=None, request=InboxBrowserRequest, response=RegisteredBrowser)
def register_inbox_browser(request: InboxRequest) -> Response:
    """Register a browser for the recipient. Pages do so at each visit."""
    body = read_request(request, InboxBrowserRequest, check=_registration)
    user, now = request.inbox_user, utc_now()
    new = _registration(body, user_id=user.user_id)
    device_id = id_of(new.token)
    before = queries.get(device_id)
    if not isinstance(body.replaces, UnsetType):
        earlier = queries.current(body.replaces)
        if earlier is not None and earlier["user_id"] == user.user_id:
            # It may be of the browser's earlier user: the registration below moves it.
            with suppress(TokenInUseError, OtherKindError):
                registration.replace_token(
                    device_id=earlier["_id"], user_id=user.user_id, token=new.token, now=now
                )
    stored = registration.register(new, kept=UNKNOWN_TO_PAGES, now=now)
    if change := audit.describe_change(before, stored, fields=RECORDED_FIELDS):
        _record(user, device_id, change, flag=CHANGE if before else ADDITION)
    return Response(registered_browser(stored))


@operation(scope=None, response=None, status=204, parameters=(DEVICE_ID,))
def remove_inbox_browser(request: InboxRequest, device_id: str) -> Response:
    """Turn push off for one of the recipient's browsers; idempotent, also if there is none."""
    if not is_device_id(device_id):
        raise NOT_FOUND.error()
    user, now = request.inbox_user, utc_now()
    document = queries.current(device_id)
    if (
        document is None
        or document["user_id"] != user.user_id
        or document.get("subscription") is None
    ):
        return Response(status=204)
    is_changed = status.deactivate(
        device_ids=[document["_id"]],
        reason=DeactivationReason.BY_USER,
        evidence=Evidence(at=now, source="api"),
        now=now,
    )
    if is_changed:
        _record(user, document["_id"], "Push turned off.", flag=DELETION)
    return Response(status=204)


def _registration(body: InboxBrowserRequest, *, user_id: str = "") -> Registration:
    problems = ProblemCollector()
    subscription = parse_subscription(body.subscription, problems, at="/subscription")
    for name in ("device_model", "language", "timezone"):
        problems.check_one_line(getattr(body, name), f"/{name}")
    if not isinstance(body.replaces, UnsetType) and not is_device_id(body.replaces):
        problems.add("/replaces", "invalid_id", "Expected the ID of a device.")
    # As for apps: an operating system has zones and languages of its own.
    unknown = ProblemCollector()
    language = check_language(body.language, "/language", unknown)
    timezone = check_time_zone(body.timezone, "/timezone", unknown)
    left_out = {problem.pointer for problem in unknown.problems}
    problems.raise_if_any()
    return Registration(
        user_id=user_id,
        token=subscription or "",
        platform=Platform.WEB,
        device_model=body.device_model,
        language=None if "/language" in left_out else language,
        timezone=None if "/timezone" in left_out else timezone,
    )


def _record(user: InboxUser, device_id: str, message: str, *, flag: int) -> None:
    audit.record(
        by=user.client_id,
        model=Device,
        object_id=device_id,
        name=device_id,
        message=f"By the recipient: {message}",
        flag=flag,
    )
