"""The Graph API's answers: acceptances, and its error envelope."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

import msgspec

from ...outcomes import Outcome
from ...responses import ProviderResponse
from .. import network_faults
from ..base import IncomingRequest
from .errors import Fault
from .outcomes import EMPTY, ERRORS, HELD, NO_CODE, NOT_JSON, UNKNOWN_CODE, UNKNOWN_REFUSAL
from .validation import whatsapp_id

JSON = {"Content-Type": "application/json; charset=UTF-8"}
OLD_SUBCODE = 2494010
"""The subcode in every WhatsApp error of versions before 16."""
LAST_WITH_SUBCODE = 15
LOWEST_ERROR_STATUS = HTTPStatus.MULTIPLE_CHOICES
TOKEN_PREFIX = "EAA"
_UNKNOWN: Mapping[str, Any] = {
    "message": "(#139999) Something nobody has heard of",
    "type": "OAuthException",
    "code": 139999,
    "error_data": {"messaging_product": "whatsapp", "details": "New in this version."},
}


@dataclass(frozen=True, slots=True)
class GraphError:
    """An error of the Graph API, such as a refused token or an unknown ID."""

    code: int
    status: int
    message: str
    subcode: int | None = None
    kind: str = "OAuthException"


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


def unknown_object(name: str) -> GraphError:
    """Return the error for an ID that is unknown or not visible to the token."""
    return GraphError(
        100,
        subcode=33,
        status=400,
        kind="GraphMethodException",
        message=f"Unsupported post request. Object with ID '{name}' does not exist, cannot be "
        "loaded due to missing permissions, or does not support this operation. Please read the "
        "Graph API documentation at https://developers.facebook.com/docs/graph-api",
    )


def fault_response(found: Fault, *, version: int) -> ProviderResponse:
    """Return an error of a message as an HTTP response."""
    details = found.details or found.kind.details
    error = {
        "message": f"(#{found.code}) {found.kind.title}",
        "type": "OAuthException",
        "code": found.code,
        "error_data": {"messaging_product": "whatsapp", "details": details},
    }
    if version <= LAST_WITH_SUBCODE:
        error["error_subcode"] = OLD_SUBCODE
    return error_response(error, status=found.kind.status)


def graph_error_response(found: GraphError) -> ProviderResponse:
    """Return an error of the Graph API as an HTTP response."""
    error = {"message": found.message, "type": found.kind, "code": found.code}
    if found.subcode is not None:
        error["error_subcode"] = found.subcode
    return error_response(error, status=found.status)


def acceptance(outcome: Outcome, body: Mapping[str, Any], message_id: str) -> ProviderResponse:
    """Return the 200 for a message, with a message status if it is a template message."""
    if outcome.name == EMPTY:
        return success({})
    if outcome.name == NOT_JSON:
        html = {"Content-Type": "text/html"}
        return ProviderResponse(status=200, body=b"<html></html>", headers=html)
    message = {"id": message_id}
    if body.get("type") == "template":
        is_held = outcome.name == HELD
        message["message_status"] = "held_for_quality_assessment" if is_held else "accepted"
    answer = {
        "messaging_product": "whatsapp",
        "contacts": [{"input": body["to"], "wa_id": whatsapp_id(body["to"])}],
        "messages": [message],
    }
    return replace(success(answer), mode=outcome.mode)


def success(body: Any) -> ProviderResponse:
    """Return a 200 with a JSON body."""
    return ProviderResponse(status=200, body=msgspec.json.encode(body), headers=JSON)


def error_response(error: Mapping[str, Any], *, status: int) -> ProviderResponse:
    """Return a response with an error in the Graph API's format."""
    trace = {"fbtrace_id": f"A{secrets.token_urlsafe(16)}"}
    headers = {**JSON, "WWW-Authenticate": f'OAuth "Facebook Platform" "{error.get("type")}"'}
    return ProviderResponse(
        status=status, body=msgspec.json.encode({"error": {**error, **trace}}), headers=headers
    )


def check_token(incoming: IncomingRequest) -> GraphError | None:
    """Return the error of a request's access token; None if the token is accepted."""
    key = incoming.bearer_token()
    if not key:
        return _MISSING
    return REFUSED_TOKENS.get(key) if key.startswith(TOKEN_PREFIX) else _UNREADABLE


def for_outcome(outcome: Outcome, *, version: int, pause: int) -> ProviderResponse:
    """Return the answer for an outcome with an error status."""
    code = ERRORS.get(outcome.name)
    if code is not None:
        reply = fault_response(Fault(code), version=version)
        if outcome.status == HTTPStatus.TOO_MANY_REQUESTS == reply.status:
            return replace(reply, headers={**reply.headers, "Retry-After": str(pause)})
        return replace(reply, status=outcome.status)
    responses = {
        "expired-token": graph_error_response(EXPIRED),
        NO_CODE: error_response({"message": "An error", "type": "OAuthException"}, status=400),
        UNKNOWN_CODE: error_response(_UNKNOWN, status=400),
        UNKNOWN_REFUSAL: error_response(_UNKNOWN, status=403),
    }
    return network_faults.proxy_response(outcome, "/messages") or responses[outcome.name]
