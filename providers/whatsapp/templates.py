"""Message templates of a WhatsApp Business account: submission to Meta's review, and status."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import msgspec

from domain.errors import PermanentError
from notifyproject.platform import event_loop

from .. import http, http_client
from ..http import Request, Response
from .provider import WhatsApp
from .responses import classify_response

PAGE_SIZE = 100
MAX_PAGES = 100
EXISTS_SUBCODE = 2388024
"""The name exists in the language, such as after a submission whose response was lost."""
SUBMITTED = "PENDING"
MAX_TEXT = 200
_FIELDS = "name,language,status,category,rejected_reason"
_LIST = {"fields": _FIELDS, "limit": str(PAGE_SIZE)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateStatus:
    """A template at Meta. ``status`` is ``APPROVED``, ``PENDING``, ``REJECTED``, or another."""

    name: str
    language: str
    status: str
    reason: str = ""
    """Why Meta rejected it, such as ``INVALID_FORMAT``."""


def list_templates(account: WhatsApp, *, timeout: float) -> Sequence[TemplateStatus]:
    """Return all templates. ``timeout`` is in seconds for each page. Raises ProviderError."""
    found: list[TemplateStatus] = []
    query = _LIST
    for _ in range(MAX_PAGES):
        page = _decode(_request(account, None, query=query, timeout=timeout), account)
        data = page.get("data")
        rows = map(http.as_object, data if isinstance(data, list) else ())
        found += [_status(row, name=_text(row, "name")) for row in rows]
        paging = http.as_object(page.get("paging"))
        after = http.as_object(paging.get("cursors")).get("after")
        if not paging.get("next") or not isinstance(after, str):
            break
        query = {**_LIST, "after": after}
    return found


def submit_template(
    account: WhatsApp, template: Mapping[str, Any], *, timeout: float
) -> TemplateStatus:
    """Submit a template to Meta's review. An existing one stays as it is. Raises ProviderError."""
    response = _request(account, msgspec.json.encode(template), query={}, timeout=timeout)
    if _error(response).get("error_subcode") == EXISTS_SUBCODE:
        answer: Mapping[str, Any] = {"status": SUBMITTED}
    else:
        answer = _decode(response, account)
    return _status({**answer, "language": template["language"]}, name=template["name"])


def _request(
    account: WhatsApp, body: bytes | None, *, query: Mapping[str, str], timeout: float
) -> Response:
    path = f"{account.version}/{account.business_account_id}/message_templates"
    request = Request(
        url=f"{account.base_url}/{path}{'?' if query else ''}{urlencode(query)}",
        body=body,
        headers={"Authorization": f"Bearer {account.token}", "Content-Type": "application/json"},
        timeout=timeout,
    )
    return event_loop.run(http_client.send(request))


def _decode(response: Response, account: WhatsApp) -> Mapping[str, Any]:
    answer = http.decode_object(response.body)
    error = _error(response)
    if response.status == HTTPStatus.OK and not error and answer:
        return answer
    # Meta's message says which part of a template is invalid.
    message = _text(error, "error_user_msg") or _text(error, "message")
    problem = classify_response(response, now=account.clock())
    if isinstance(problem, PermanentError) and message:
        raise PermanentError(http.redact(message), code=problem.code, response=problem.response)
    raise problem


def _error(response: Response) -> Mapping[str, Any]:
    return http.as_object(http.decode_object(response.body).get("error"))


def _status(row: Mapping[str, Any], *, name: str) -> TemplateStatus:
    reason = _text(row, "rejected_reason")
    return TemplateStatus(
        name=name,
        language=_text(row, "language"),
        status=_text(row, "status") or SUBMITTED,
        reason="" if reason == "NONE" else reason,
    )


def _text(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    return value[:MAX_TEXT] if isinstance(value, str) else ""
