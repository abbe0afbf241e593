"""Suppressed addresses: list, add, lift."""

from datetime import datetime
from typing import Annotated

import msgspec
from django.contrib.admin.models import ADDITION, DELETION
from drf_spectacular.utils import OpenApiParameter
from msgspec import Meta

from access.models import Scope
from domain import time
from domain.addresses import InvalidAddressError, trim
from domain.channels import ADDRESS_CHANNELS, Channel
from domain.time import utc_now
from notifications.intake.requests import Timestamp
from notifications.validation import ProblemCollector, enum_of
from notifyproject.platform import audit
from recipients import suppressions
from recipients.documents import SuppressionDocument
from recipients.models import Suppression, SuppressionReason
from recipients.suppressions import NEWEST_FIRST, RECIPIENT_REASONS

from .http import paging
from .http.body import read_request
from .http.fields import view_of
from .http.paths import path_parameter
from .http.problems import NOT_FOUND, RECIPIENT_OPTED_OUT
from .http.query import one_of, parse_choice
from .http.rendering import Response
from .http.requests import ClientRequest
from .openapi.operations import operation


class SuppressionView(msgspec.Struct, kw_only=True, frozen=True):
    """A suppression of an address on a channel. An address has one for each reason."""

    channel: Channel
    address: Annotated[str | None, Meta(examples=["ada@example.com"])] = None
    """null: the recipient was erased. Only a digest of the address is kept."""
    reason: Annotated[SuppressionReason, Meta(examples=["manual"])]
    source: Annotated[str, Meta(examples=["api"])]
    """A provider's name, api, admin or one-click."""
    marketing_only: bool
    """True: blocks marketing only."""
    created_at: datetime
    expires_at: datetime | None = None


class SuppressionList(msgspec.Struct, kw_only=True, frozen=True):
    """A page of suppressions. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[SuppressionView]
    next: paging.NextCursor = None
    previous: str | None = None


class LiftResultView(msgspec.Struct, kw_only=True, frozen=True):
    """The suppressions of an address that were lifted, and those that remain."""

    lifted: Annotated[list[SuppressionReason], Meta(examples=[["manual"]])]
    standing: Annotated[list[SuppressionReason], Meta(examples=[[]])]


def suppression_view(document: SuppressionDocument) -> SuppressionView:
    """Return a stored suppression as the API shows it."""
    return view_of(SuppressionView, document)


LIST = "suppressions"
REASONS = frozenset(reason.value for reason in SuppressionReason)
CHANNEL_FILTER = OpenApiParameter("channel", str, enum=list(ADDRESS_CHANNELS))
REASON_FILTER = OpenApiParameter("reason", str, enum=sorted(REASONS))
PARAMETERS = (CHANNEL_FILTER, REASON_FILTER, *paging.PARAMETERS)


class SuppressionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A suppression. An existing one for the same reason is never weakened."""

    reason: Annotated[str, enum_of(sorted(REASONS)), Meta(examples=["manual"])] = (
        SuppressionReason.MANUAL.value
    )
    marketing_only: Annotated[bool, Meta(description="True: blocks marketing only.")] = False
    expires_at: (
        Annotated[Timestamp, Meta(description="For manual ones only; null: until lifted.")] | None
    ) = None


def _parse_address(channel: str, address: str, problems: ProblemCollector) -> str:
    """Return the normalized address of the path. Its problems have an empty pointer."""
    if channel not in ADDRESS_CHANNELS:
        problems.add("", "unknown_channel", one_of(ADDRESS_CHANNELS))
        return address
    kind = Channel(channel).address_kind
    try:
        return kind.normalize(address)
    except InvalidAddressError as problem:
        problems.add("", f"invalid_{kind.field}", str(problem))
        return address


def _parse_expiry(
    body: SuppressionRequest, now: datetime, problems: ProblemCollector
) -> datetime | None:
    if body.expires_at is None:
        return None
    if body.reason != SuppressionReason.MANUAL:
        problems.add("/expires_at", "conflict", "Only manual suppressions can expire.")
        return None
    try:
        expires_at = time.parse_timestamp(body.expires_at)
    except time.InvalidTimeError as problem:
        problems.add("/expires_at", problem.code, str(problem))
        return None
    if expires_at <= now:
        problems.add("/expires_at", "in_the_past", "`expires_at` must be in the future.")
    return expires_at


SUPPRESSIONS = Scope.SUPPRESSIONS_WRITE
CHANNEL = path_parameter(
    "channel",
    " or ".join(ADDRESS_CHANNELS),
    example=ADDRESS_CHANNELS[0],
    pattern=f"({'|'.join(ADDRESS_CHANNELS)})",
)
ADDRESS = path_parameter(
    "address",
    " or ".join(dict.fromkeys(c.address_kind.name for c in ADDRESS_CHANNELS)).capitalize(),
    example="ada@example.com",
    max_length=320,
)


@operation(scope=SUPPRESSIONS, response=SuppressionList, parameters=PARAMETERS)
def list_suppressions(request: ClientRequest) -> Response:
    """List suppressions, newest first."""
    problems = ProblemCollector()
    query = request.query_params
    page_request = paging.parse_page_request(query, list_name=LIST, problems=problems)
    channel = parse_choice("channel", ADDRESS_CHANNELS, query, problems)
    reason = parse_choice("reason", REASONS, query, problems)
    problems.raise_if_any()
    page = suppressions.page(
        channel=channel,
        reason=SuppressionReason(reason) if reason else None,
        limit=page_request.limit,
        cursor=page_request.cursor,
    )
    results = [suppression_view(document) for document in page.documents]
    cursors = paging.page_links(page, list_name=LIST, order=NEWEST_FIRST)
    return Response(SuppressionList(results=results, **cursors))


@operation(scope=SUPPRESSIONS, response=SuppressionList, parameters=(CHANNEL, ADDRESS))
def get_suppressions(_request: ClientRequest, channel: str, address: str) -> Response:
    """List the suppressions of an address; an empty list if it isn't suppressed."""
    if channel not in ADDRESS_CHANNELS:
        raise NOT_FOUND.error()
    found = suppressions.find_by_address(channel=channel, address=trim(address))
    return Response(
        SuppressionList(results=[suppression_view(suppression) for suppression in found])
    )


@operation(
    scope=SUPPRESSIONS,
    request=SuppressionRequest,
    response=SuppressionView,
    parameters=(CHANNEL, ADDRESS),
)
def put_suppression(request: ClientRequest, channel: str, address: str) -> Response:
    """Suppress an address; returns the resulting suppression."""
    now = utc_now()
    body = read_request(request, SuppressionRequest)
    problems = ProblemCollector()
    normalized = _parse_address(channel, address, problems)
    if body.reason not in REASONS:
        problems.add("/reason", "unknown_reason", one_of(REASONS))
    expires_at = _parse_expiry(body, now, problems)
    problems.raise_if_any()
    stored = suppressions.suppress(
        channel=channel,
        address=normalized,
        reason=SuppressionReason(body.reason),
        source="api",
        marketing_only=body.marketing_only,
        expires_at=expires_at,
        now=now,
    )
    scope = "marketing" if stored["marketing_only"] else "everything"
    message = f"Suppressed for {scope}: {body.reason} on {channel}."
    _record(request, stored["_id"], message, flag=ADDITION)
    return Response(suppression_view(stored))


@operation(
    scope=SUPPRESSIONS,
    response=LiftResultView,
    problems=(RECIPIENT_OPTED_OUT,),
    parameters=(CHANNEL, ADDRESS, REASON_FILTER),
)
def lift_suppression(request: ClientRequest, channel: str, address: str) -> Response:
    """Lift the suppressions of an address. Those set by the recipient require `reason`."""
    problems = ProblemCollector()
    reason = parse_choice("reason", REASONS, request.query_params, problems)
    problems.raise_if_any()
    named_reason = SuppressionReason(reason) if reason else None
    by_others = [reason for reason in SuppressionReason if reason not in RECIPIENT_REASONS]
    reasons = [named_reason] if named_reason else by_others
    lifted = suppressions.lift(channel=channel, address=address, reasons=reasons)
    remaining = suppressions.find_by_address(channel=channel, address=address)
    if not lifted:
        has_opted_out = named_reason is None and remaining
        raise (RECIPIENT_OPTED_OUT if has_opted_out else NOT_FOUND).error()
    for reason in lifted:
        lifted_id = suppressions.suppression_id(channel, address, reason)
        _record(request, lifted_id, f"Lifted: {reason.value} on {channel}.", flag=DELETION)
    remaining_reasons = [SuppressionReason(suppression["reason"]) for suppression in remaining]
    return Response(LiftResultView(lifted=list(lifted), standing=remaining_reasons))


def _record(request: ClientRequest, suppression_id: str, message: str, *, flag: int) -> None:
    # The ID is a digest: the audit log holds no address.
    audit.record_client_action(
        request.client, model=Suppression, object_id=suppression_id, message=message, flag=flag
    )
