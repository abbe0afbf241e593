"""Suppressed addresses: list, add, lift."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar

import msgspec
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta
from rest_framework.response import Response
from rest_framework.views import APIView

from access.models import Scope
from domain import time
from domain.states import Channel
from domain.time import utc_now
from notifications.intake.requests import Timestamp
from notifications.validation import (
    InvalidAddressError,
    ProblemCollector,
    normalize_email,
    normalize_phone,
)
from recipients import suppressions
from recipients.addresses import ADDRESS_CHANNELS, EMAIL
from recipients.models import SuppressionReason
from recipients.suppressions import NEWEST_FIRST, RECIPIENT_REASONS

from .http import paging
from .http.body import BODY_ERRORS, check_values, convert, decode, read_body
from .http.paging import PageRequest
from .http.paths import path_parameter
from .http.problems import ApiError, not_found
from .http.query import reject_unknown
from .openapi.operations import describe
from .recipients.audit import record_lifting


class SuppressionView(msgspec.Struct, kw_only=True, frozen=True):
    """A reason why an address gets nothing more on a channel. There may be several for one."""

    channel: Channel
    address: str | None = None
    """null: of somebody who was erased. It is recognised, and no longer known."""
    reason: SuppressionReason
    source: str
    """Who said so: a provider's name, api, admin or one-click."""
    marketing_only: bool
    """True: receipts and codes still go."""
    created_at: datetime
    expires_at: datetime | None = None


class SuppressionList(msgspec.Struct, kw_only=True, frozen=True):
    """Part of a list. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[SuppressionView]
    next: str | None = None
    previous: str | None = None


class LiftResultView(msgspec.Struct, kw_only=True, frozen=True):
    """What no longer holds an address back, and what still does."""

    lifted: list[SuppressionReason]
    standing: list[SuppressionReason]


def suppression_view(document: Mapping[str, Any]) -> SuppressionView:
    """Return a stored suppression as it is shown to apps."""
    fields = {name: document.get(name) for name in SuppressionView.__struct_fields__}
    return msgspec.convert(fields, SuppressionView)


LIST = "suppressions"
REASONS = frozenset(reason.value for reason in SuppressionReason)
CHANNEL_FILTER = OpenApiParameter("channel", str, enum=list(ADDRESS_CHANNELS))
REASON_FILTER = OpenApiParameter("reason", str, enum=sorted(REASONS))
PARAMETERS = (CHANNEL_FILTER, REASON_FILTER, *paging.PARAMETERS)


class SuppressionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why an address gets nothing more. What stands already for this reason is never loosened."""

    reason: Annotated[str, Meta(extra_json_schema={"enum": sorted(REASONS)})] = (
        SuppressionReason.MANUAL.value
    )
    marketing_only: Annotated[bool, Meta(description="True: receipts and codes still go.")] = False
    expires_at: (
        Annotated[Timestamp, Meta(description="Until when, of a manual one; null: until lifted.")]
        | None
    ) = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSuppression:
    """A suppression to add."""

    channel: str
    address: str
    reason: SuppressionReason
    marketing_only: bool
    expires_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What part of which suppressions is asked for."""

    page: PageRequest
    channel: str | None
    reason: SuppressionReason | None


def new_suppression(
    channel: str, address: str, body: SuppressionRequest, *, now: datetime
) -> NewSuppression:
    """Return the suppression a body is; raises InvalidRequestError."""
    problems = ProblemCollector()
    normalized = _parse_address(channel, address, problems)
    if body.reason not in REASONS:
        problems.add("/reason", "unknown_reason", _expected(REASONS))
    expires_at = _parse_expiry(body, now, problems)
    problems.raise_if_any()
    return NewSuppression(
        channel=channel,
        address=normalized,
        reason=SuppressionReason(body.reason),
        marketing_only=body.marketing_only,
        expires_at=expires_at,
    )


def parse_list_request(query: QueryDict) -> ListRequest:
    """Return a checked list request; raises ApiError 400 or InvalidRequestError."""
    problems = ProblemCollector()
    page_request = paging.parse_page_request(
        query, list_name=LIST, problems=problems, extra_parameters=("channel", "reason")
    )
    channel = _parse_choice(query, "channel", ADDRESS_CHANNELS, problems)
    reason = _parse_choice(query, "reason", REASONS, problems)
    problems.raise_if_any()
    return ListRequest(
        page=page_request, channel=channel, reason=SuppressionReason(reason) if reason else None
    )


def parse_reason(query: QueryDict) -> SuppressionReason | None:
    """Return the reason that is to be lifted; None if none is named.

    Raises ApiError 400 or InvalidRequestError.
    """
    problems = ProblemCollector()
    reject_unknown(query, allowed={"reason"})
    reason = _parse_choice(query, "reason", REASONS, problems)
    problems.raise_if_any()
    return SuppressionReason(reason) if reason else None


def _parse_address(channel: str, address: str, problems: ProblemCollector) -> str:
    """Return the address of the path; what is wrong with it is told of the whole request."""
    if channel not in ADDRESS_CHANNELS:
        problems.add("", "unknown_channel", _expected(ADDRESS_CHANNELS))
        return address
    try:
        return normalize_email(address) if channel == EMAIL else normalize_phone(address)
    except InvalidAddressError as problem:
        code = "invalid_email" if channel == EMAIL else "invalid_phone"
        problems.add("", code, str(problem))
        return address


def _parse_expiry(
    body: SuppressionRequest, now: datetime, problems: ProblemCollector
) -> datetime | None:
    if body.expires_at is None:
        return None
    if body.reason != SuppressionReason.MANUAL:
        problems.add("/expires_at", "conflict", "Only a manual suppression is for a time.")
        return None
    try:
        expires_at = time.parse_timestamp(body.expires_at)
    except time.InvalidTimeError as problem:
        problems.add("/expires_at", problem.code, str(problem))
        return None
    if expires_at <= now:
        problems.add("/expires_at", "in_the_past", "It would be over before it begins.")
    return expires_at


def _parse_choice(
    query: QueryDict, name: str, choices: Collection[str], problems: ProblemCollector
) -> str | None:
    value = query.get(name)
    if value is not None and value not in choices:
        problems.add(f"/{name}", "unknown_value", _expected(choices))
        return None
    return value


def _expected(choices: Collection[str]) -> str:
    return f"Expected one of {', '.join(sorted(choices))}."


SUPPRESSIONS = Scope.SUPPRESSIONS_WRITE
CHANNEL = path_parameter(
    "channel", " or ".join(ADDRESS_CHANNELS), pattern=f"({'|'.join(ADDRESS_CHANNELS)})"
)
ADDRESS = path_parameter("address", "A mail address, or a number in E.164 form", max_length=320)
SOURCE = "api"


class Suppressions(APIView):
    """All of them."""

    scopes: ClassVar = {"GET": SUPPRESSIONS}

    @describe(
        operation="listSuppressions",
        scope=SUPPRESSIONS,
        response=SuppressionList,
        problems=(400, 422),
        parameters=PARAMETERS,
    )
    def get(self, request: Any) -> Response:
        """List suppressions, newest first."""
        list_request = parse_list_request(request.query_params)
        page = suppressions.page(
            channel=list_request.channel,
            reason=list_request.reason,
            limit=list_request.page.limit,
            cursor=list_request.page.cursor,
        )
        results = [suppression_view(document) for document in page.documents]
        cursors = paging.page_links(page, list_name=LIST, order=NEWEST_FIRST)
        return Response(SuppressionList(results=results, **cursors))


class AddressSuppressions(APIView):
    """Those of one address."""

    scopes: ClassVar = {"GET": SUPPRESSIONS, "PUT": SUPPRESSIONS, "DELETE": SUPPRESSIONS}

    @describe(
        operation="getSuppressions",
        scope=SUPPRESSIONS,
        response=SuppressionList,
        parameters=(CHANNEL, ADDRESS),
    )
    def get(self, request: Any, channel: str, address: str) -> Response:
        """List every reason why an address is held back; none: it is not."""
        if channel not in ADDRESS_CHANNELS:
            raise not_found()
        found = suppressions.list_for_address(channel=channel, address=address)
        return Response(SuppressionList(results=[suppression_view(one) for one in found]))

    @describe(
        operation="putSuppression",
        scope=SUPPRESSIONS,
        request=SuppressionRequest,
        response=SuppressionView,
        problems=BODY_ERRORS,
        parameters=(CHANNEL, ADDRESS),
    )
    def put(self, request: Any, channel: str, address: str) -> Response:
        """Send an address nothing more, or no marketing; the answer is what stands afterwards."""
        raw = decode(read_body(request._request))
        check_values(raw)
        now = utc_now()
        new = new_suppression(channel, address, convert(raw, SuppressionRequest), now=now)
        stored = suppressions.suppress(
            channel=new.channel,
            address=new.address,
            reason=new.reason,
            source=SOURCE,
            marketing_only=new.marketing_only,
            expires_at=new.expires_at,
            now=now,
        )
        return Response(suppression_view(stored))

    @describe(
        operation="liftSuppression",
        scope=SUPPRESSIONS,
        response=LiftResultView,
        problems=(400, 404, 409, 422),
        parameters=(CHANNEL, ADDRESS, REASON_FILTER),
    )
    def delete(self, request: Any, channel: str, address: str) -> Response:
        """Send to an address again. What the person wants is lifted only if `reason` names it."""
        named_reason = parse_reason(request.query_params)
        reasons = (
            [named_reason]
            if named_reason
            else [r for r in SuppressionReason if r not in RECIPIENT_REASONS]
        )
        lifted = suppressions.lift(channel=channel, address=address, reasons=reasons)
        remaining = suppressions.list_for_address(channel=channel, address=address)
        if not lifted:
            raise _not_lifted(named_reason, is_suppressed=bool(remaining))
        for reason in lifted:
            # The id names the address to nobody who does not have it.
            lifted_id = suppressions.suppression_id(channel, address, reason)
            record_lifting(request, lifted_id, f"Lifted: {reason.value} on {channel}.")
        remaining_reasons = [SuppressionReason(one["reason"]) for one in remaining]
        return Response(LiftResultView(lifted=list(lifted), standing=remaining_reasons))


def _not_lifted(named_reason: SuppressionReason | None, *, is_suppressed: bool) -> ApiError:
    if named_reason is None and is_suppressed:
        detail = "The person does not want it: name unsubscribed or complaint as the reason."
        return ApiError(status=409, code="persons_own_wish", detail=detail)
    return not_found()
