"""Addresses that get nothing more. Each method reads, calls one service, and answers."""

from typing import Any, ClassVar

from rest_framework.response import Response
from rest_framework.views import APIView

from access.models import Scope
from domain.time import utc_now
from recipients import suppressions
from recipients.addresses import ADDRESSED
from recipients.models import SuppressionReason
from recipients.suppressions import NEWEST_FIRST, PERSONS_OWN

from . import paging
from . import suppressions_requests as requests
from .parsing import check_values, convert, decode, read_body
from .problems import Problem, not_found
from .recipients_audit import record_lifting
from .schema import describe, identifier
from .suppressions_answers import LiftedView, SuppressionList, SuppressionView, suppression_view
from .suppressions_requests import SuppressionRequest

SUPPRESSIONS = Scope.SUPPRESSIONS_WRITE
BAD_BODY = (400, 413, 415, 422)
CHANNEL = identifier("channel", " or ".join(ADDRESSED), pattern=f"({'|'.join(ADDRESSED)})")
ADDRESS = identifier("address", "A mail address, or a number in E.164 form", at_most=320)
SOURCE = "api"


class Suppressions(APIView):
    """All of them."""

    scopes: ClassVar = {"GET": SUPPRESSIONS}

    @describe(
        operation="listSuppressions",
        scope=SUPPRESSIONS,
        response=SuppressionList,
        problems=(400, 422),
        parameters=requests.DESCRIBED,
    )
    def get(self, request: Any) -> Response:
        """List suppressions, newest first."""
        wanted = requests.list_request(request.query_params)
        page = suppressions.page(
            channel=wanted.channel,
            reason=wanted.reason,
            limit=wanted.asked.limit,
            place=wanted.asked.place,
        )
        results = [suppression_view(document) for document in page.documents]
        cursors = paging.cursors(page, of=requests.LIST, order=NEWEST_FIRST)
        return Response(SuppressionList(results=results, **cursors))


class OneAddress(APIView):
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
        if channel not in ADDRESSED:
            raise not_found()
        found = suppressions.of_address(channel=channel, address=address)
        return Response(SuppressionList(results=[suppression_view(one) for one in found]))

    @describe(
        operation="putSuppression",
        scope=SUPPRESSIONS,
        request=SuppressionRequest,
        response=SuppressionView,
        problems=BAD_BODY,
        parameters=(CHANNEL, ADDRESS),
    )
    def put(self, request: Any, channel: str, address: str) -> Response:
        """Send an address nothing more, or no marketing; the answer is what stands afterwards."""
        raw = decode(read_body(request._request))
        check_values(raw)
        now = utc_now()
        new = requests.new(channel, address, convert(raw, SuppressionRequest), now=now)
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
        response=LiftedView,
        problems=(400, 404, 409, 422),
        parameters=(CHANNEL, ADDRESS, requests.REASON_FILTER),
    )
    def delete(self, request: Any, channel: str, address: str) -> Response:
        """Send to an address again. What the person wants is lifted only if `reason` names it."""
        named = requests.named_reason(request.query_params)
        reasons = [named] if named else [r for r in SuppressionReason if r not in PERSONS_OWN]
        lifted = suppressions.lift(channel=channel, address=address, reasons=reasons)
        left = suppressions.of_address(channel=channel, address=address)
        if not lifted:
            raise _not_lifted(named, is_held_back=bool(left))
        for reason in lifted:
            # The id names the address to nobody who does not have it.
            lifted_id = suppressions.suppression_id(channel, address, reason)
            record_lifting(request, lifted_id, f"Lifted: {reason.value} on {channel}.")
        standing = [SuppressionReason(one["reason"]) for one in left]
        return Response(LiftedView(lifted=list(lifted), standing=standing))


def _not_lifted(named: SuppressionReason | None, *, is_held_back: bool) -> Problem:
    if named is None and is_held_back:
        detail = "The person does not want it: name unsubscribed or complaint as the reason."
        return Problem(status=409, code="persons_own_wish", detail=detail)
    return not_found()
