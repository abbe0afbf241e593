"""The WhatsApp Cloud API, as far as this service talks to it."""

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from ...behaviours import Behaviours
from ...config import Timings
from ...log import Record
from ...meta_account import MetaAccount
from ...outcomes import Outcome, Outcomes
from ...replies import Reply
from ..base import Channel, EventRequest, Incoming, PlannedEvent, Shown, Verdict, Written
from . import answers, events, refusals, template_api
from .answers import GraphError
from .errors import KINDS, Fault
from .outcomes import (
    DISORDER,
    EMPTY,
    FAILURES,
    HELD,
    NOT_JSON,
    ORDINARY,
    OUTCOMES,
    TEMPLATES_PASS,
    digits,
    magic,
)
from .showing import recipient, references, shown, title
from .templates import Templates
from .validation import number, problem

OPENED_BY_THEM = "service"
"""The category of what is no template: an answer to a person who wrote first."""
PER_MILLE = 1000
_PATH = re.compile(r"/(v[0-9]{1,3}\.[0-9])/([^/]+)/(messages|message_templates)")


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatsApp:
    """``POST /v{N}.0/{phone number id}/messages``, and the account's templates."""

    behaviours: Behaviours
    timings: Timings
    account: MetaAccount
    templates: Templates
    newest_version: str
    """``v26.0``: later ones are not there yet."""
    disordered: float
    """The share of ordinary messages whose reports come twice and in no order."""
    name: str = "whatsapp"
    title: str = "WhatsApp Cloud API"
    channel: Channel = Channel.WHATSAPP
    route: str = r"/{version:v[0-9]+\.[0-9]+}/{rest:.*}"
    max_body: int = 1024 * 1024
    outcomes: Outcomes = OUTCOMES
    addressing: str = (
        "The last six digits of a phone number choose what becomes of the message: 900 and three "
        "more. +44 7700 900000 to 900999 belong to nobody."
    )
    event_kinds: frozenset[str] = events.KINDS

    def spellings(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the ends of the numbers that ask for this outcome."""
        return (f"…{digits(outcome.name)}",)

    def judge(self, incoming: Incoming, *, now: datetime) -> Verdict:
        """Return the answer to a request, and the reports that will follow."""
        path = _PATH.fullmatch(incoming.path)
        if path is None or _number(path[1]) > _number(self.newest_version):
            return _graph_error(answers.unknown_path(incoming.path), outcome="not-found")
        (version, _), owner, edge = _number(path[1]), path[2], path[3]
        refused = refusals.of_token(incoming)
        if refused:
            return _graph_error(refused, outcome="not-authenticated")
        if edge == "message_templates" and owner == self.account.business_account_id:
            return self._about_templates(incoming)
        if edge != "messages" or owner != self.account.phone_number_id:
            return _graph_error(answers.unknown_object(owner), outcome="unknown-object")
        if incoming.method != "POST":
            return _graph_error(answers.unknown_object(owner), outcome="method-not-allowed")
        return self._judge_message(incoming, version=version, now=now)

    def event(self, wanted: EventRequest, *, about: Record) -> PlannedEvent:
        """Return a report about a message that was accepted; raises ValueError."""
        body = about.json()
        if wanted.address and number(wanted.address) != number(body.get("to")):
            raise ValueError("The message has no such recipient.")
        code = wanted.code or (FAILURES["failed"] if wanted.kind == "failed" else None)
        if code is not None and code not in KINDS:
            raise ValueError(f"There is no error {code}. There are: {', '.join(map(str, KINDS))}.")
        payload = self._report(wanted.kind, body, about.message_id or "", at=wanted.at, code=code)
        return PlannedEvent(kind=wanted.kind, delay=wanted.delay, payload=payload)

    def written(self, words: Written) -> PlannedEvent:
        """Return the event of a person who writes to the business; raises ValueError."""
        sender = number(words.sender)
        if sender is None:
            raise ValueError("from must be a phone number with its country code.")
        payload = events.written(
            words.text, wa_id=sender, name=words.name, button=words.button, at=words.at or 0
        )
        return PlannedEvent(kind="written", delay=0.0, payload=payload)

    def show(self, record: Record, *, to: int = 0) -> Shown:
        """Return a message as its recipient reads it."""
        sender = self.account.display_phone_number
        return shown(record.json(), templates=self.templates, sender=sender)

    def deliveries(self, record: Record) -> Iterator[tuple[str, str]]:
        """Return the number with the message's reference."""
        body = record.json()
        return ((recipient(body), reference) for reference in references(body))

    def _about_templates(self, incoming: Incoming) -> Verdict:
        reply = template_api.answer(incoming, self.templates)
        if isinstance(reply, GraphError):
            return _graph_error(reply, outcome="template-refused")
        return Verdict(outcome="templates", reply=reply, is_message=False, title="Templates")

    def _judge_message(self, incoming: Incoming, *, version: int, now: datetime) -> Verdict:
        try:
            body = msgspec.json.decode(incoming.body or b"")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _refused(Fault(100, "The request body is not valid JSON."), version=version)
        own = self.account.display_phone_number
        if found := problem(body, templates=self.templates, own_number=own):
            return _refused(found, version=version, body=body)
        outcome = self._outcome(body)
        if outcome.status >= refusals.LOWEST:
            return Verdict(
                outcome=outcome.name,
                reply=refusals.of(outcome, version=version, pause=self.timings.rate_limit),
                reason=outcome.says,
                is_json=True,
                **_facts(body),
            )
        message_id = answers.new_message_id()
        return Verdict(
            outcome=outcome.name,
            reply=_acceptance(outcome, body, message_id),
            accepted=outcome.accepted,
            reason=None if outcome.accepted else outcome.says,
            message_id=message_id,
            events=tuple(self._events(outcome, body, message_id, now=now)),
            is_json=True,
            **_facts(body),
        )

    def _outcome(self, body: Mapping[str, Any]) -> Outcome:
        outcome = self.behaviours.outcome(
            recipient(body), provider=self.name, outcomes=self.outcomes, magic=magic
        )
        if TEMPLATES_PASS in outcome.traits and body.get("type") == "template":
            return self.outcomes.ordinary
        return outcome

    def _events(
        self, outcome: Outcome, body: Mapping[str, Any], message_id: str, *, now: datetime
    ) -> Iterator[PlannedEvent]:
        """Plan the reports: when they come may differ from when they say it happened."""
        if not outcome.accepted:
            return
        steps = outcome.steps
        if steps == ORDINARY and secrets.randbelow(PER_MILLE) < self.disordered * PER_MILLE:
            steps = DISORDER
        start = self.timings.late if outcome.late else 0.0
        order = ("sent", "delivered", "read")
        for step in steps:
            at = int(now.timestamp()) + order.index(step.kind) if steps == DISORDER else None
            code = FAILURES.get(outcome.name) if step.kind == "failed" else None
            yield PlannedEvent(
                kind=step.kind,
                delay=start + step.delay(self.timings),
                payload=self._report(step.kind, body, message_id, at=at, code=code),
            )

    def _report(
        self,
        kind: str,
        body: Mapping[str, Any],
        message_id: str,
        *,
        at: int | None,
        code: int | None,
    ) -> dict[str, Any]:
        reference = next(iter(references(body)), None)
        return events.status(
            kind,
            message_id=message_id,
            wa_id=number(body["to"]) or "",
            at=at or 0,
            reference=reference,
            category=self._category(body),
            fault=Fault(code) if code is not None else None,
        )

    def _category(self, body: Mapping[str, Any]) -> str:
        if body.get("type") != "template":
            return OPENED_BY_THEM
        content = body["template"]
        template = self.templates.get(content["name"], content["language"]["code"])
        return template.category.lower() if template else "utility"


def _number(version: str) -> tuple[int, int]:
    """Return a version's two numbers, which can be compared."""
    major, _, minor = version.removeprefix("v").partition(".")
    return int(major), int(minor)


def _acceptance(outcome: Outcome, body: Mapping[str, Any], message_id: str) -> Reply:
    """Return the 200, or what is there in its place."""
    if outcome.name == EMPTY:
        return answers.plain({})
    if outcome.name == NOT_JSON:
        return Reply(status=200, body=b"<html></html>", headers={"Content-Type": "text/html"})
    status = None
    if body.get("type") == "template":
        status = "held_for_quality_assessment" if HELD in outcome.traits else "accepted"
    return answers.acceptance(
        given=body["to"],
        wa_id=number(body["to"]) or "",
        message_id=message_id,
        message_status=status,
        manner=outcome.manner,
    )


def _graph_error(found: GraphError, *, outcome: str) -> Verdict:
    return Verdict(
        outcome=outcome,
        reply=answers.graph_error(found),
        reason=found.message,
        is_message=outcome != "template-refused",
    )


def _refused(found: Fault, *, version: int, body: Any = None) -> Verdict:
    """Return a refusal, with as much of a faulty message as can be made out."""
    return Verdict(
        outcome="invalid-request",
        reply=answers.fault(found, version=version),
        reason=f"({found.code}) {found.kind.title}: {found.details or found.kind.details}",
        is_json=body is not None,
        **(_facts(body) if body is not None else {}),
    )


def _facts(body: Any) -> dict[str, Any]:
    """Return what the log says of a message, which need not be a valid one."""
    to = recipient(body)
    return {
        "title": title(body),
        "recipients": (to,) if to else (),
        "references": references(body),
    }
