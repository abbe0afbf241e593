"""Twilio's responses: the message resource, and its errors."""

import base64
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from typing import Any

import msgspec

from ...credentials import TwilioAccount
from ...outcomes import Outcome
from ...responses import ProviderResponse
from .. import network_faults, segments
from ..base import IncomingRequest
from .errors import HELP, KINDS
from .outcomes import EMPTY, ERROR_IN_200, ERRORS, NO_CODE, NOT_JSON, UNKNOWN_CODE

JSON = {"Content-Type": "application/json;charset=utf-8"}
VERSION = "2010-04-01"
REFUSED_ACCOUNTS: Mapping[str, int] = {"ACrevoked": 20003, "ACsuspended": 20005}
"""Accounts all of whose requests are refused, with the code."""
TRIAL_ACCOUNT = "ACtrial"
VERIFIED_NUMBER = "+447700900000"
"""The only number to which a trial account may send."""
_UNKNOWN = {"code": 29999, "message": "Something nobody has heard of", "status": 400}


def check_account(incoming: IncomingRequest, sid: str, *, account: TwilioAccount) -> int | None:
    """Return the code of the error of a request's credentials; None if they are accepted."""
    if sid in REFUSED_ACCOUNTS:
        return REFUSED_ACCOUNTS[sid]
    user, password = _basic_credentials(incoming)
    tokens = {sid: account.auth_token, account.api_key: account.api_secret}
    if not password or tokens.get(user) != password:
        return 20003
    return None if sid in (account.account_sid, TRIAL_ACCOUNT) else 20404


def _basic_credentials(incoming: IncomingRequest) -> tuple[str, str]:
    scheme, _, token = incoming.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, _, password = base64.b64decode(token, validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return user, password


def error(code: int, *, to: str = "") -> ProviderResponse:
    """Return an error as an HTTP response."""
    kind = KINDS[code]
    body = {
        "code": code,
        "message": kind.text.format(to=to),
        "more_info": HELP.format(code=code),
        "status": kind.status,
    }
    return _response(body, status=kind.status)


def acceptance(
    outcome: Outcome, form: Mapping[str, str], sid: str, *, account_sid: str, now: datetime
) -> ProviderResponse:
    """Return the 201 for a message."""
    if outcome.name == EMPTY:
        return _response({}, status=201)
    if outcome.name == NOT_JSON:
        html = {"Content-Type": "text/html"}
        return ProviderResponse(status=201, body=b"<html></html>", headers=html)
    return _response(
        resource(form, sid, account_sid=account_sid, now=now), status=201, mode=outcome.mode
    )


def resource(
    form: Mapping[str, str], sid: str, *, account_sid: str, now: datetime
) -> dict[str, Any]:
    """Return a new message. One by a messaging service has no sender, and so no segments yet."""
    service, path = form.get("MessagingServiceSid"), f"/{VERSION}/Accounts/{account_sid}/Messages"
    created = format_datetime(now)
    return {
        "account_sid": account_sid,
        "api_version": VERSION,
        "body": form["Body"],
        "date_created": created,
        "date_sent": None,
        "date_updated": created,
        "direction": "outbound-api",
        "error_code": None,
        "error_message": None,
        "from": None if service else form["From"],
        "messaging_service_sid": service,
        "num_media": "0",
        "num_segments": "0" if service else str(segments.count(form["Body"])),
        "price": None,
        "price_unit": "USD",
        "sid": sid,
        "status": "accepted" if service else "queued",
        "subresource_uris": {"media": f"{path}/{sid}/Media.json"},
        "to": form["To"],
        "uri": f"{path}/{sid}.json",
    }


def page(account_sid: str) -> ProviderResponse:
    """Return an empty page of messages."""
    path = f"/{VERSION}/Accounts/{account_sid}/Messages.json?PageSize=1&Page=0"
    body = {
        "end": 0,
        "first_page_uri": path,
        "messages": [],
        "next_page_uri": None,
        "page": 0,
        "page_size": 1,
        "previous_page_uri": None,
        "start": 0,
        "uri": path,
    }
    return _response(body, status=200)


def for_outcome(outcome: Outcome, *, path: str, to: str) -> ProviderResponse:
    """Return the answer for an outcome that isn't an acceptance."""
    code = ERRORS.get(outcome.name)
    if code is not None:
        return error(code, to=to)
    if outcome.name == ERROR_IN_200:
        found = error(21211, to=to)
        return ProviderResponse(status=200, body=found.body, headers=found.headers)
    if outcome.name == NO_CODE:
        return _response({"message": "An error"}, status=400)
    if outcome.name == UNKNOWN_CODE:
        return _response(_UNKNOWN, status=400)
    proxy = network_faults.proxy_response(outcome, path)
    return proxy or ProviderResponse(status=outcome.status, mode=outcome.mode)


def _response(body: Any, *, status: int, **options: Any) -> ProviderResponse:
    return ProviderResponse(status=status, body=msgspec.json.encode(body), headers=JSON, **options)
