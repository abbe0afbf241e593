"""The part of Twilio's Messages resource that the service uses."""

import re
from collections.abc import Iterator, Mapping, MutableMapping, MutableSet, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ...credentials import TwilioAccount
from ...log import Record
from ...outcomes import Outcome, Step
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
from . import answers, events
from .errors import FAILURES, KINDS
from .outcomes import FAILED, FAILURE_CODES, OUTCOMES, PUMPING, SENT, magic, magic_suffix
from .presentation import display, log_fields, recipient
from .validation import number, problem, read_form

_PATH = re.compile(rf"/{answers.VERSION}/Accounts/([A-Za-z0-9]+)/Messages\.json", re.ASCII)
OPTED_OUT = 21610


@dataclass(frozen=True, slots=True, kw_only=True)
class Twilio(Provider):
    """``/2010-04-01/Accounts/{account SID}/Messages.json``."""

    account: TwilioAccount
    webhook_url: str = ""
    """The receiver of inbound messages. Status callbacks go to the URL of each message."""
    opted_out: set[str] = field(default_factory=set)
    """Numbers that wrote STOP."""
    pumped: dict[str, datetime] = field(default_factory=dict)
    """When a prefix was blocked, by number."""
    name = "twilio"
    title = "Twilio"
    channel = Channel.SMS
    route = r"/2010-04-01/{rest:.*}"
    max_body = 64 * 1024
    outcomes = OUTCOMES
    addressing = (
        "The last six digits of a phone number choose the outcome of the message: 900 and three "
        "more. +44 7700 900000 to 900999 belong to nobody. A number that wrote STOP gets 21610."
    )
    event_kinds = events.KINDS
    takes_replies = True

    def recipient_patterns(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the last six digits of the numbers that choose an outcome."""
        return (f"…{magic_suffix(outcome.name)}",)

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request, and the status callbacks that follow."""
        path = _PATH.fullmatch(request.path)
        if path is None:
            return _refuse(20404)
        sid = path[1]
        if code := answers.check_account(request, sid, account=self.account):
            return _refuse(code, outcome="not-authenticated")
        if request.method == "GET":
            return RequestResult(
                outcome="page", response=answers.page(sid), is_message=False, title="Messages"
            )
        if request.method != "POST":
            return _refuse(20004)
        content_type = request.headers.get("content-type", "")
        form = read_form(request.body or b"", content_type=content_type)
        return self._handle_message(form, path=request.path, sid=sid, now=now)

    def make_event(self, requested: EventRequest, *, record: Record) -> PlannedEvent:
        """Return the requested callback about a message. Raises ValueError if impossible."""
        form = record.json()
        if requested.recipient and number(requested.recipient) != number(form["To"]):
            raise ValueError("The message has no such recipient.")
        if "StatusCallback" not in form:
            raise ValueError("The message has no StatusCallback.")
        code = requested.code or (
            FAILURE_CODES["failed-30008"] if requested.kind == "failed" else None
        )
        if code is not None and code not in FAILURES:
            raise ValueError(
                f"There is no error {code}. There are: {', '.join(map(str, FAILURES))}."
            )
        sid = record.path.split("/")[3]
        payload = self._status(requested.kind, form, record.message_id or "", sid=sid, code=code)
        return PlannedEvent(
            kind=requested.kind,
            delay=requested.delay,
            payload=payload,
            url=form["StatusCallback"],
        )

    def make_inbound_event(self, message: InboundMessage) -> PlannedEvent:
        """Take an inbound message, which may opt out. Raises ValueError for an invalid number."""
        sender = number(message.sender)
        if sender is None:
            raise ValueError("from must be a phone number with its country code.")
        asked = events.keyword(message.text)
        if asked == "STOP":
            self.opted_out.add(sender)
        elif asked == "START":
            self.opted_out.discard(sender)
        payload = events.inbound_message(message, sender=sender, account=self.account)
        return PlannedEvent(kind="written", delay=0.0, payload=payload, url=self.webhook_url)

    def memory(self) -> Sequence[MutableSet[str] | MutableMapping[str, Any]]:
        """Return who wrote STOP, and which prefixes are blocked."""
        return self.opted_out, self.pumped

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a message as its recipient sees it."""
        return display(record.json())

    def _handle_message(
        self, form: Mapping[str, str], *, path: str, sid: str, now: datetime
    ) -> RequestResult:
        to = recipient(form)
        code = problem(form, account=self.account)
        if code is None and sid == answers.TRIAL_ACCOUNT and to != answers.VERIFIED_NUMBER:
            code = 21608
        if code is None and to in self.opted_out:
            code = OPTED_OUT
        if code is not None:
            return _refuse(code, form=form, outcome="invalid-request")
        outcome = self.choose_outcome(to, magic=magic)
        fields = {
            **outcome.result_fields(),
            **log_fields(form),
            "logged_body": msgspec.json.encode(form),
        }
        if not outcome.accepted:
            return RequestResult(response=answers.for_outcome(outcome, path=path, to=to), **fields)
        message_sid = events.new_sid()
        return RequestResult(
            response=answers.acceptance(outcome, form, message_sid, account_sid=sid, now=now),
            message_id=message_sid,
            events=tuple(self._events(outcome, form, message_sid, sid=sid, now=now)),
            **fields,
        )

    def _events(
        self,
        outcome: Outcome,
        form: Mapping[str, str],
        message_sid: str,
        *,
        sid: str,
        now: datetime,
    ) -> Iterator[PlannedEvent]:
        url = form.get("StatusCallback")
        if url is None:
            return
        start = self.timings.late if outcome.has_late_events else 0.0
        for step in self._steps(outcome, form, now=now):
            code = FAILURE_CODES[outcome.name] if step is FAILED else None
            yield PlannedEvent(
                kind=step.kind,
                delay=start + step.delay(self.timings),
                payload=self._status(step.kind, form, message_sid, sid=sid, code=code),
                url=url,
            )

    def _steps(
        self, outcome: Outcome, form: Mapping[str, str], *, now: datetime
    ) -> tuple[Step, ...]:
        if outcome.name != PUMPING:
            return outcome.steps
        began = self.pumped.setdefault(form["To"], now)
        if now - began < timedelta(seconds=self.timings.pumping):
            return (SENT, FAILED)
        del self.pumped[form["To"]]
        return outcome.steps

    def _status(
        self, kind: str, form: Mapping[str, str], message_sid: str, *, sid: str, code: int | None
    ) -> dict[str, Any]:
        return events.status(
            kind, sid=message_sid, form=form, account=self.account, account_sid=sid, code=code
        )


def _refuse(
    code: int, *, form: Mapping[str, str] | None = None, outcome: str = "not-found"
) -> RequestResult:
    to = recipient(form or {})
    fields = (
        {"logged_body": msgspec.json.encode(form), **log_fields(form)} if form is not None else {}
    )
    return RequestResult(
        outcome=outcome,
        response=answers.error(code, to=to),
        reason=f"({code}) {KINDS[code].text.format(to=to)}",
        is_json=form is not None,
        **fields,
    )
