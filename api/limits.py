"""Limits for recipients: list, define, remove; and how much of them a recipient has used."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import msgspec
from django.contrib.admin.models import ADDITION, CHANGE, DELETION
from msgspec import Meta

from access.models import Scope
from domain.channels import Channel
from domain.limits import LimitUsage, Overflow
from domain.states import Category
from domain.time import utc_now
from notifications.catalog import limits
from notifications.catalog.limits import LimitRequest, StricterLimitRequest
from notifications.models import Limit
from notifications.store import limit_uses
from notifyproject.platform import audit
from recipients.models import Recipient

from .http.body import read_request
from .http.fields import TypeSlug, view_of
from .http.paths import USER_ID, found_or_404, path_parameter, user_id_or_404
from .http.problems import NOT_FOUND
from .http.rendering import Response
from .http.requests import ClientRequest
from .openapi.operations import operation

WRITE = Scope.LIMITS_WRITE
NAME = path_parameter("name", "The limit's name", example="weekly_marketing", max_length=64)


class LimitView(msgspec.Struct, kw_only=True, frozen=True):
    """A limit for each recipient."""

    name: Annotated[str, Meta(examples=["weekly_marketing"])]
    types: Annotated[list[TypeSlug], Meta(examples=[[]])]
    """If both types and categories are empty, all messages count."""
    categories: Annotated[list[Category], Meta(examples=[["marketing"]])]
    channels: Annotated[list[Channel], Meta(examples=[["email", "push", "whatsapp"]])]
    max: Annotated[int, Meta(examples=[3])]
    period_seconds: Annotated[int, Meta(examples=[604_800])]
    min_gap_seconds: Annotated[int, Meta(examples=[0])]
    overflow: Overflow
    created_at: datetime
    updated_at: datetime


class LimitList(msgspec.Struct, kw_only=True, frozen=True):
    """All limits, by name."""

    results: list[LimitView]


class RecipientLimitView(msgspec.Struct, kw_only=True, frozen=True):
    """How much of one limit a recipient has used."""

    name: Annotated[str, Meta(examples=["weekly_marketing"])]
    max: Annotated[int, Meta(examples=[3])]
    """As it is for this recipient."""
    period_seconds: Annotated[int, Meta(examples=[604_800])]
    min_gap_seconds: Annotated[int, Meta(examples=[0])]
    is_stricter: Annotated[bool, Meta(examples=[False])]
    """The recipient has own values."""
    used: Annotated[int, Meta(examples=[3])]
    """Messages sent within the period."""
    waiting: Annotated[int, Meta(examples=[1])]
    """Messages that wait until the limit allows them."""
    used_at: Annotated[list[datetime], Meta(examples=[[]])]
    next_at: datetime
    """When the limit allows another message; now, if it does already."""


class RecipientLimitList(msgspec.Struct, kw_only=True, frozen=True):
    """All limits by name, with a recipient's use of them."""

    results: list[RecipientLimitView]


@operation(scope=WRITE, response=LimitList)
def list_limits(_request: ClientRequest) -> Response:
    """List the limits by name."""
    return Response(LimitList(results=[_limit_view(limit) for limit in limits.read_limits()]))


@operation(scope=WRITE, response=LimitView, parameters=(NAME,))
def get_limit(_request: ClientRequest, name: str) -> Response:
    """Get a limit."""
    return Response(_limit_view(found_or_404(limits.read_limit(name))))


@operation(
    scope=WRITE, request=LimitRequest, response=LimitView, also_status=201, parameters=(NAME,)
)
def put_limit(request: ClientRequest, name: str) -> Response:
    """Create or replace a limit; 201 for a new one. It applies to the next message."""
    check = partial(limits.validate_limit, name)
    body = read_request(request, LimitRequest, check=check)
    before = limits.read_limit(name)
    fields = limits.validate_limit(name, body)
    is_new = limits.define_limit(name, fields, now=utc_now())
    document = found_or_404(limits.read_limit(name))
    message = audit.describe_change(before, document, fields=fields) or "Saved without changes."
    _record(request, name, message, flag=ADDITION if is_new else CHANGE)
    return Response(_limit_view(document), status=201 if is_new else 200)


@operation(scope=WRITE, response=None, status=204, parameters=(NAME,))
def remove_limit(request: ClientRequest, name: str) -> Response:
    """Remove a limit. Messages that it holds keep their time."""
    if not limits.remove_limit(name):
        raise NOT_FOUND.error()
    _record(request, name, "Removed.", flag=DELETION)
    return Response(status=204)


@operation(scope=Scope.RECIPIENTS_READ, response=RecipientLimitList, parameters=(USER_ID,))
def list_recipient_limits(_request: ClientRequest, user_id: str) -> Response:
    """List the limits with the use of a recipient, registered or not."""
    now, person = utc_now(), limits.person_of_user(user_id_or_404(user_id))
    found = limits.read_usage(limits.active_limits(), person=person, now=now)
    return Response(RecipientLimitList(results=[_usage_view(usage) for usage in found]))


@operation(
    scope=Scope.RECIPIENTS_WRITE,
    request=StricterLimitRequest,
    response=RecipientLimitView,
    parameters=(USER_ID, NAME),
)
def put_recipient_limit(request: ClientRequest, user_id: str, name: str) -> Response:
    """Set a recipient's own values for a limit. They apply if they are stricter."""
    body, user_id = read_request(request, StricterLimitRequest), user_id_or_404(user_id)
    own = {"min_gap_seconds": body.min_gap_seconds}
    if body.max is not None:
        own["max"] = body.max
    return _set_stricter(request, user_id, name, own)


@operation(scope=Scope.RECIPIENTS_WRITE, response=RecipientLimitView, parameters=(USER_ID, NAME))
def remove_recipient_limit(request: ClientRequest, user_id: str, name: str) -> Response:
    """Remove a recipient's own values for a limit."""
    return _set_stricter(request, user_id_or_404(user_id), name, None)


def _set_stricter(
    request: ClientRequest, user_id: str, name: str, own: Mapping[str, int] | None
) -> Response:
    limit = limits.limit_of(found_or_404(limits.read_limit(name)))
    now, person = utc_now(), limits.person_of_user(user_id)
    if limit_uses.set_stricter(name, person=person, user_id=user_id, own=own, now=now):
        text = "Own values removed" if own is None else "Own values set"
        audit.record_client_action(
            request.client,
            model=Recipient,
            object_id=user_id,
            message=f"{text} for the limit {name}.",
            flag=CHANGE,
        )
    [found] = limits.read_usage([limit], person=person, now=now)
    return Response(_usage_view(found))


def _usage_view(usage: LimitUsage) -> RecipientLimitView:
    return RecipientLimitView(
        name=usage.limit.name,
        max=usage.limit.maximum,
        period_seconds=int(usage.limit.period.total_seconds()),
        min_gap_seconds=int(usage.limit.min_gap.total_seconds()),
        is_stricter=usage.is_stricter,
        used=len(usage.uses),
        waiting=usage.waiting,
        used_at=list(usage.uses),
        next_at=usage.next_at,
    )


def _limit_view(document: Mapping[str, Any]) -> LimitView:
    return view_of(LimitView, {**document, "name": document["_id"]})


def _record(request: ClientRequest, name: str, message: str, *, flag: int) -> None:
    audit.record_client_action(
        request.client, model=Limit, object_id=name, message=message, flag=flag
    )
