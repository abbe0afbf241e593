"""The part of the SES API that the service uses."""

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from email import message_from_bytes
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import msgspec

from ...credentials import AwsAccount
from ...log import Record
from ...outcomes import Outcome
from ...responses import ProviderResponse
from .. import network_faults
from ..aws import signature
from ..aws.signature import AwsProblem
from ..base import (
    Channel,
    DisplayedMessage,
    EventRequest,
    IncomingRequest,
    PlannedEvent,
    Provider,
    RequestResult,
)
from ..mailboxes import EMPTY, NOT_JSON, magic
from . import events, presentation, validation
from .outcomes import OUTCOMES, PROBLEMS

PREFIX = "/v2/email/"
SEND = f"{PREFIX}outbound-emails"
JSON = "application/json"
REFERENCE_HEADER = "X-Notify-Reference"
UNKNOWN = AwsProblem(404, "UnknownOperationException", "Unknown operation")
TOO_LARGE = AwsProblem(413, "RequestEntityTooLarge", "Request is too large.")
_ACCOUNT = {
    "DedicatedIpAutoWarmupEnabled": False,
    "EnforcementStatus": "HEALTHY",
    "ProductionAccessEnabled": True,
    "SendQuota": {"Max24HourSend": 50000.0, "MaxSendRate": 14.0, "SentLast24Hours": 0.0},
    "SendingEnabled": True,
}
_PAGE = b"<html><body>Welcome</body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ses(Provider):
    """``/v2/email/``: a mail, the account, an identity, a configuration set."""

    account: AwsAccount
    name = "ses"
    title = "Amazon SES"
    channel = Channel.EMAIL
    route = r"/v2/email/{rest:.*}"
    max_body = 60 * 1024 * 1024
    outcomes = OUTCOMES
    recipient_pattern = "{}@"
    addressing = (
        "The part of an address before the @ chooses the outcome of the message, at any domain. "
        "What follows a plus sign is left out: bounce+1@example.com bounces too."
    )
    event_kinds = frozenset(events.KINDS)

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request, and the events that follow."""
        refused = signature.problem(request, account=self.account, service="ses", now=now)
        if request.body is None or refused is not None:
            return _refuse(refused or TOO_LARGE, outcome="not-authenticated")
        if request.method == "GET":
            return self._read(request.path)
        if refused := _request_problem(request):
            return _refuse(refused)
        body = request.json()
        if refused := validation.problem(body, account=self.account):
            return _refuse(refused, outcome="invalid-request", body=body)
        return self._handle_mail(body, path=request.path, now=now)

    def make_event(self, requested: EventRequest, *, record: Record) -> PlannedEvent:
        """Return an event about an accepted mail. Raises ValueError."""
        if requested.code is not None:
            raise ValueError("SES's events have no code.")
        body = record.json()
        wanted = requested.recipient.lower() if requested.recipient else None
        found = [to for to in validation.recipients(body) if wanted in (None, to.lower())]
        if not found or record.message_id is None:
            raise ValueError("The message has no such recipient.")
        at = (
            record.time
            if requested.timestamp is None
            else datetime.fromtimestamp(requested.timestamp, record.time.tzinfo)
        )
        payload = self._event(requested.kind, body, found[0], record.message_id, at=at)
        return PlannedEvent(kind=requested.kind, delay=requested.delay, payload=payload)

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a mail as its recipient sees it."""
        return presentation.display(record)

    def _read(self, path: str) -> RequestResult:
        kind, _, name = path.removeprefix(PREFIX).partition("/")
        name, found = unquote(name), None
        if kind == "account":
            found = _ACCOUNT
        elif kind == "identities" and "@" not in name and not name.endswith(validation.UNVERIFIED):
            found = {"IdentityType": "DOMAIN", "VerifiedForSendingStatus": True}
        elif kind == "configuration-sets" and name == self.account.configuration_set:
            found = {"ConfigurationSetName": name}
        if found is None:
            text = f"Resource <{name}> does not exist."
            return _refuse(AwsProblem(404, "NotFoundException", text), is_message=False)
        return RequestResult(outcome="read", response=_respond(found), is_message=False, title=kind)

    def _handle_mail(self, body: Any, *, path: str, now: datetime) -> RequestResult:
        to = validation.recipients(body)
        outcome = self.choose_outcome(to[0], magic=magic)
        fields = {**outcome.result_fields(), **_log_fields(body)}
        if not outcome.accepted:
            return RequestResult(response=_failure(outcome, path), **fields)
        message_id = f"0102{secrets.token_hex(6)}-{secrets.token_hex(4)}-000000"
        return RequestResult(
            response=_acceptance(outcome, message_id),
            message_id=message_id,
            events=tuple(self._events(outcome, body, to[0], message_id, now=now)),
            **fields,
        )

    def _events(
        self, outcome: Outcome, body: Any, address: str, message_id: str, *, now: datetime
    ) -> Iterator[PlannedEvent]:
        start = self.timings.late if outcome.has_late_events else 0.0
        by_kind: dict[str, dict[str, Any]] = {}
        for step in outcome.steps:
            # The same event has the same ID when it comes again.
            if step.kind not in by_kind:
                by_kind[step.kind] = self._event(step.kind, body, address, message_id, at=now)
            yield PlannedEvent(
                kind=step.kind,
                delay=start + step.delay(self.timings),
                payload=by_kind[step.kind],
            )

    def _event(
        self, kind: str, body: Any, address: str, message_id: str, *, at: datetime
    ) -> dict[str, Any]:
        mail = message_from_bytes(validation.raw_mail(body) or b"")
        return events.event(
            kind,
            address=address,
            message_id=message_id,
            headers=presentation.headers(mail),
            tags=validation.tags(body),
            configuration_set=self.account.configuration_set,
            at=at,
        )


def _request_problem(request: IncomingRequest) -> AwsProblem | None:
    if request.path != SEND or request.method != "POST":
        return UNKNOWN
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        return AwsProblem(415, "UnsupportedMediaType", "Send application/json.")
    try:
        request.json()
    except ValueError:
        return AwsProblem(400, "SerializationException", "The body isn't JSON.")
    return None


def _refuse(
    problem: AwsProblem, *, outcome: str = "refused", body: Any = None, is_message: bool = True
) -> RequestResult:
    return RequestResult(
        outcome=outcome,
        response=_error(problem),
        reason=f"{problem.name}: {problem.message}",
        is_json=body is not None,
        is_message=is_message,
        **(_log_fields(body) if body is not None else {}),
    )


def _log_fields(body: Any) -> dict[str, Any]:
    mail = message_from_bytes(validation.raw_mail(body) or b"")
    reference = mail.get(REFERENCE_HEADER)
    return {
        "title": presentation.header(mail, "Subject")[:500] or None,
        "recipients": tuple(validation.recipients(body)),
        "references": (str(reference),) if reference else (),
    }


def _respond(found: Any, *, mode: Any = None) -> ProviderResponse:
    options = {} if mode is None else {"mode": mode}
    return ProviderResponse(
        status=HTTPStatus.OK,
        body=msgspec.json.encode(found),
        headers={"Content-Type": JSON},
        **options,
    )


def _acceptance(outcome: Outcome, message_id: str) -> ProviderResponse:
    if outcome.name == NOT_JSON:
        return ProviderResponse(
            status=HTTPStatus.OK, body=_PAGE, headers={"Content-Type": "text/html"}
        )
    found = {} if outcome.name == EMPTY else {"MessageId": message_id}
    return _respond(found, mode=outcome.mode)


def _failure(outcome: Outcome, path: str) -> ProviderResponse:
    if reply := network_faults.proxy_response(outcome, path):
        return reply
    if outcome.name in PROBLEMS:
        return _error(PROBLEMS[outcome.name])
    return ProviderResponse(status=outcome.status, mode=outcome.mode)


def _error(problem: AwsProblem) -> ProviderResponse:
    return ProviderResponse(
        status=problem.status,
        body=msgspec.json.encode({"message": problem.message}),
        headers={"Content-Type": JSON, "x-amzn-ErrorType": problem.name},
    )
