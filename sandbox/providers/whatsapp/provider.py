"""The part of the WhatsApp Cloud API that the service uses."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ...credentials import MetaAccount
from ...log import Record
from ...outcomes import Outcome
from ..base import (
    Channel,
    DisplayedMessage,
    EventRequest,
    InboundMessage,
    IncomingRequest,
    PlannedEvent,
    Provider,
    RequestResult,
)
from . import answers, events, template_api, validation
from .answers import GraphError
from .errors import KINDS, Fault
from .outcomes import (
    FAILED,
    FAILURES,
    FOR_TEXTS,
    ODD,
    OUT_OF_ORDER_STEPS,
    OUTCOMES,
    USER_NAME,
    magic,
    magic_suffix,
)
from .presentation import display, log_fields, recipient, references
from .templates import Templates
from .validation import number, problem, whatsapp_id

_PATH = re.compile(r"/(v[0-9]{1,3}\.[0-9])/([^/]+)/(messages|message_templates)")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatsApp(Provider):
    """``/v{N}.0/{phone number id}/messages``, and ``…/{account id}/message_templates``."""

    account: MetaAccount
    templates: Templates
    newest_version: str
    name = "whatsapp"
    title = "WhatsApp Cloud API"
    channel = Channel.WHATSAPP
    route = r"/{version:v[0-9]+\.[0-9]+}/{rest:.*}"
    max_body = 1024 * 1024
    outcomes = OUTCOMES
    addressing = (
        "The last six digits of a phone number choose the outcome of the message: 900 and three "
        "more. +44 7700 900000 to 900999 belong to nobody."
    )
    event_kinds = events.KINDS
    takes_replies = True

    def recipient_patterns(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the last six digits of the numbers that choose an outcome."""
        return (f"…{magic_suffix(outcome.name)}",)

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request, and the statuses that follow."""
        path = _PATH.fullmatch(request.path)
        if path is None or _version_number(path[1]) > _version_number(self.newest_version):
            unknown = f"Unknown path components: /{request.path.strip('/')}"
            return _graph_error(GraphError(2500, 400, unknown), outcome="not-found")
        (version, _), owner, edge = _version_number(path[1]), path[2], path[3]
        if refused := answers.check_token(request):
            return _graph_error(refused, outcome="not-authenticated")
        if edge == "message_templates" and owner == self.account.business_account_id:
            return self._handle_templates(request)
        if edge != "messages" or owner != self.account.phone_number_id:
            return _graph_error(answers.unknown_object(owner), outcome="unknown-object")
        if request.method != "POST":
            return _graph_error(answers.unknown_object(owner), outcome="method-not-allowed")
        return self._handle_message(request, version=version, now=now)

    def make_event(self, requested: EventRequest, *, record: Record) -> PlannedEvent:
        """Return the requested status of a message. Raises ValueError if impossible."""
        body = record.json()
        if requested.recipient and number(requested.recipient) != number(body.get("to")):
            raise ValueError("The message has no such recipient.")
        code = requested.code or (FAILURES["failed"] if requested.kind == "failed" else None)
        if code is not None and code not in KINDS:
            raise ValueError(f"There is no error {code}. There are: {', '.join(map(str, KINDS))}.")
        fault = Fault(code) if code is not None else None
        payload = self._status_event(
            requested.kind, body, record.message_id or "", at=requested.timestamp, fault=fault
        )
        return PlannedEvent(kind=requested.kind, delay=requested.delay, payload=payload)

    def make_inbound_event(self, message: InboundMessage) -> PlannedEvent:
        """Return the event of an inbound message. Raises ValueError for an invalid number."""
        sender = number(message.sender)
        if sender is None:
            raise ValueError("from must be a phone number with its country code.")
        payload = events.inbound_message(message, wa_id=sender)
        return PlannedEvent(kind="written", delay=0.0, payload=payload)

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a message as its recipient sees it."""
        sender = self.account.display_phone_number
        return display(record.json(), templates=self.templates, sender=sender)

    def _handle_templates(self, request: IncomingRequest) -> RequestResult:
        response = template_api.handle(request, self.templates)
        if isinstance(response, GraphError):
            return _graph_error(response, outcome="template-refused")
        return RequestResult(
            outcome="templates", response=response, is_message=False, title="Templates"
        )

    def _handle_message(
        self, request: IncomingRequest, *, version: int, now: datetime
    ) -> RequestResult:
        try:
            body = request.json()
        except ValueError:
            return _refuse(Fault(100, "The request body is not valid JSON."), version=version)
        own = self.account.display_phone_number
        if found := problem(body, templates=self.templates, own_number=own):
            return _refuse(found, version=version, body=body)
        outcome = self.choose_outcome(recipient(body), magic=magic)
        if outcome.name in FOR_TEXTS and body.get("type") == "template":
            outcome = self.outcomes.default
        if outcome.status >= answers.LOWEST_ERROR_STATUS:
            pause = self.timings.rate_limit
            return RequestResult(
                response=answers.for_outcome(outcome, version=version, pause=pause),
                **outcome.result_fields(),
                **log_fields(body),
            )
        message_id = events.new_message_id()
        return RequestResult(
            response=answers.acceptance(outcome, body, message_id),
            message_id=message_id,
            events=tuple(self._events(outcome, body, message_id, now=now)),
            **outcome.result_fields(),
            **log_fields(body),
        )

    def _events(
        self, outcome: Outcome, body: Mapping[str, Any], message_id: str, *, now: datetime
    ) -> Iterator[PlannedEvent]:
        """Yield the statuses of a message. Statuses out of order carry times in order."""
        if not outcome.accepted:
            return
        media_fault = validation.media_fault(body)
        steps = outcome.steps if media_fault is None else (FAILED,)
        start = self.timings.late if outcome.has_late_events else 0.0
        began, order = int(now.timestamp()), ("sent", "delivered", "read")
        for step in steps:
            at = began + order.index(step.kind) if steps == OUT_OF_ORDER_STEPS else None
            code = FAILURES.get(outcome.name) if step.kind == "failed" else None
            fault = media_fault or (Fault(code) if code is not None else None)
            yield PlannedEvent(
                kind=step.kind,
                delay=start + step.delay(self.timings),
                payload=self._status_event(step.kind, body, message_id, at=at, fault=fault),
            )

    def _status_event(
        self,
        kind: str,
        body: Mapping[str, Any],
        message_id: str,
        *,
        at: int | None,
        fault: Fault | None,
    ) -> dict[str, Any]:
        outcome_name = magic(recipient(body))
        return events.status(
            kind,
            message_id=message_id,
            wa_id=whatsapp_id(body["to"]) or "",
            at=at or 0,
            has_number=outcome_name != USER_NAME,
            has_odd_item=outcome_name == ODD,
            reference=next(iter(references(body)), None),
            category=self._category(body),
            fault=fault,
        )

    def _category(self, body: Mapping[str, Any]) -> str:
        """Return a message's pricing category: the template's, or ``service``."""
        if body.get("type") != "template":
            return "service"
        content = body["template"]
        template = self.templates.get(content["name"], content["language"]["code"])
        return template.category.lower() if template else "utility"


def _version_number(version: str) -> tuple[int, int]:
    major, _, minor = version.removeprefix("v").partition(".")
    return int(major), int(minor)


def _graph_error(found: GraphError, *, outcome: str) -> RequestResult:
    return RequestResult(
        outcome=outcome,
        response=answers.graph_error_response(found),
        reason=found.message,
        is_message=outcome != "template-refused",
    )


def _refuse(fault: Fault, *, version: int, body: Any = None) -> RequestResult:
    return RequestResult(
        outcome="invalid-request",
        response=answers.fault_response(fault, version=version),
        reason=f"({fault.code}) {fault.kind.title}: {fault.details or fault.kind.details}",
        is_json=body is not None,
        **(log_fields(body) if body is not None else {}),
    )
