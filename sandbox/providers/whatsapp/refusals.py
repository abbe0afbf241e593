"""The refusals of magic numbers and magic access tokens."""

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus

from ...outcomes import Outcome
from ...responses import ProviderResponse
from .. import network_faults
from ..base import IncomingRequest
from . import answers
from .answers import GraphError
from .errors import Fault
from .outcomes import ERRORS, NO_CODE, UNKNOWN_CODE

LOWEST_ERROR_STATUS = HTTPStatus.MULTIPLE_CHOICES
TOKEN_PREFIX = "EAA"
EXPIRED = GraphError(
    190,
    subcode=463,
    status=401,
    message="Error validating access token: Session has expired on Thursday, 01-Jan-26 00:00:00 "
    "PST. The current time is Friday, 02-Jan-26 00:00:00 PST.",
)
REFUSED_TOKENS: Mapping[str, GraphError] = {
    "EAAexpired": EXPIRED,
    "EAArevoked": GraphError(
        190,
        subcode=460,
        status=401,
        message="Error validating access token: The session has been invalidated because the user "
        "changed their password or Facebook has changed the session for security reasons.",
    ),
    "EAAnoscope": GraphError(10, 403, "(#10) Application does not have permission for this action"),
}
"""Refused access tokens. All others that begin with ``EAA`` are accepted."""
_UNREADABLE = GraphError(190, 401, "Invalid OAuth access token - Cannot parse access token")
_MISSING = GraphError(0, 401, "AuthException")


def check_token(incoming: IncomingRequest) -> GraphError | None:
    """Return the error of an access token; None if it is accepted."""
    key = incoming.bearer_token()
    if not key:
        return _MISSING
    return REFUSED_TOKENS.get(key) if key.startswith(TOKEN_PREFIX) else _UNREADABLE


def for_outcome(outcome: Outcome, *, version: int, pause: int) -> ProviderResponse:
    """Return the answer of an outcome that is no acceptance."""
    code = ERRORS.get(outcome.name)
    if code is not None:
        return _for_code(outcome, code, version=version, pause=pause)
    responses = {
        "expired-token": answers.graph_error_response(EXPIRED),
        NO_CODE: answers.error_response(
            {"message": "An error", "type": "OAuthException"}, status=400
        ),
        UNKNOWN_CODE: answers.error_response(
            {
                "message": "(#139999) Something nobody has heard of",
                "type": "OAuthException",
                "code": 139999,
                "error_data": {"messaging_product": "whatsapp", "details": "New in this version."},
            },
            status=400,
        ),
        network_faults.BAD_GATEWAY.name: network_faults.bad_gateway(),
    }
    return responses.get(outcome.name) or network_faults.redirect("/messages")


def _for_code(outcome: Outcome, code: int, *, version: int, pause: int) -> ProviderResponse:
    reply = answers.fault_response(Fault(code), version=version)
    if outcome.status == HTTPStatus.TOO_MANY_REQUESTS == reply.status:
        return replace(reply, headers={**reply.headers, "Retry-After": str(pause)})
    return replace(reply, status=outcome.status)
