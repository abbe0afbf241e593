"""SendGrid, as far as this service talks to it."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

import msgspec

from ...behaviours import Behaviours
from ...config import Timings
from ...log import Record
from ...outcomes import Outcome, Outcomes
from ...replies import Reply
from ..base import Channel, EventRequest, Incoming, PlannedEvent, Shown, Verdict, Written
from . import answers, events, showing
from .answers import Problem, Refusal
from .outcomes import NO_MESSAGE_ID, OUTCOMES, magic
from .validation import problems

SEND = "/v3/mail/send"
KEY_PREFIX = "SG."
KEYS: Mapping[str, tuple[str, int, Problem]] = {
    "SG.revoked": ("key-refused", 401, answers.UNAUTHORISED),
    "SG.exhausted": ("credits-exhausted", 401, Problem(message="Maximum credits exceeded")),
    "SG.noscope": ("key-without-scope", 403, Problem(message="access forbidden")),
}
"""Keys that are refused: outcome, status, error. Every other one that begins ``SG.`` will do."""


NOT_JSON = Refusal(outcome="not-json", status=400, problems=[Problem(message="Bad Request")])
TOO_LARGE = Refusal(outcome="too-large", status=413, problems=[answers.TOO_LARGE])
LONGEST_TITLE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressee:
    """One recipient of a mail, and what will become of it."""

    address: str
    args: Mapping[str, Any]
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class SendGrid:
    """The v3 API: one route, ``POST /v3/mail/send``."""

    behaviours: Behaviours
    timings: Timings
    name: str = "sendgrid"
    title: str = "SendGrid"
    channel: Channel = Channel.EMAIL
    route: str = "/v3/{rest:.*}"
    max_body: int = 30 * 1024 * 1024
    outcomes: Outcomes = OUTCOMES
    addressing: str = (
        "The part of an address before the @ chooses what becomes of the message, at any domain. "
        "What follows a plus sign is left out: bounce+1@example.com bounces too."
    )
    event_kinds: frozenset[str] = frozenset(events.DETAILS)

    def spellings(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the beginnings of the addresses that ask for this outcome."""
        return tuple(f"{name}@" for name in (outcome.name, *outcome.aliases))

    def judge(self, incoming: Incoming, *, now: datetime) -> Verdict:
        """Return the answer to a request, and the events that will follow."""
        refused = _wrong_route(incoming) or _bad_request(incoming)
        if refused or incoming.body is None:
            return _refused(refused or TOO_LARGE)
        try:
            body = msgspec.json.decode(incoming.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _refused(NOT_JSON)
        found = problems(body)
        if found:
            return _refused(
                Refusal(outcome="invalid-request", status=400, problems=found), body=body
            )
        return self._judge_mail(body, now=now)

    def event(self, wanted: EventRequest, *, about: Record) -> PlannedEvent:
        """Return an event about a mail that was accepted; raises ValueError."""
        if wanted.code is not None:
            raise ValueError("SendGrid's events have no code.")
        people = list(_people(about.json()))
        address = wanted.address.lower() if wanted.address else None
        chosen = [person for person in people if address in (None, person[0].lower())]
        if not chosen or about.message_id is None:
            raise ValueError("The message has no such recipient.")
        email, args = chosen[0]
        payload = events.payload(wanted.kind, address=email, message_id=about.message_id, args=args)
        payload["timestamp"] = wanted.at or 0
        return PlannedEvent(kind=wanted.kind, delay=wanted.delay, payload=payload)

    def written(self, words: Written) -> PlannedEvent:
        """Refuse: mail that comes in is no part of this."""
        raise ValueError("SendGrid takes no messages from people here.")

    def deliveries(self, record: Record) -> Iterator[tuple[str, str]]:
        """Return each recipient with the reference of its personalization."""
        for address, args in _people(record.json()):
            reference = args.get("reference")
            if isinstance(reference, str):
                yield address, reference

    def show(self, record: Record, *, to: int = 0) -> Shown:
        """Return a mail as one of its recipients sees it."""
        return showing.shown(record, to=to)

    def _judge_mail(self, body: Mapping[str, Any], *, now: datetime) -> Verdict:
        if _only_checked(body):
            reply = Reply(status=HTTPStatus.OK, headers={"Content-Type": answers.JSON})
            return Verdict(outcome="sandbox-mode", reply=reply, is_json=True, **_facts(body))
        people = [
            Addressee(
                address=address,
                args=args,
                outcome=self.behaviours.outcome(
                    address, provider=self.name, outcomes=self.outcomes, magic=magic
                ),
            )
            for address, args in _people(body)
        ]
        decisive = next((p.outcome for p in people if _is_decisive(p.outcome)), people[0].outcome)
        if decisive.status != HTTPStatus.ACCEPTED:
            problem = answers.PROBLEMS.get(decisive.status)
            return Verdict(
                outcome=decisive.name,
                reply=answers.failure(decisive, now=now, pause=self.timings.rate_limit),
                reason=str(problem) if problem else decisive.says,
                is_json=True,
                **_facts(body),
            )
        message_id = secrets.token_urlsafe(16)
        shown_id = None if NO_MESSAGE_ID in decisive.traits else message_id
        return Verdict(
            outcome=decisive.name,
            reply=answers.acceptance(shown_id, manner=decisive.manner),
            accepted=decisive.accepted,
            reason=None if decisive.accepted else decisive.says,
            message_id=message_id,
            events=tuple(self._events(people, decisive, message_id)) if decisive.accepted else (),
            is_json=True,
            **_facts(body),
        )

    def _events(
        self, people: Sequence[Addressee], decisive: Outcome, message_id: str
    ) -> Iterator[PlannedEvent]:
        """Plan the events of each recipient's own outcome."""
        start = self.timings.late if decisive.late else 0.0
        for person in people:
            attempt = 0
            for step in person.outcome.steps:
                attempt += step.kind == "deferred"
                yield PlannedEvent(
                    kind=step.kind,
                    delay=start + step.delay(self.timings),
                    payload=events.payload(
                        step.kind,
                        address=person.address,
                        message_id=message_id,
                        args=person.args,
                        attempt=attempt,
                    ),
                )


def _wrong_route(incoming: Incoming) -> Refusal | None:
    if incoming.path != SEND:
        return Refusal(outcome="not-found", status=404, problems=[Problem(message="not found")])
    if incoming.method != "POST":
        problem = Problem(message="method not allowed")
        return Refusal(outcome="method-not-allowed", status=405, problems=[problem])
    return None


def _bad_request(incoming: Incoming) -> Refusal | None:
    """Look at the key, then at the type of the content, as SendGrid does."""
    header = incoming.headers.get("authorization")
    if header is None:
        problem = Problem(message="authorization required")
        return Refusal(outcome="key-missing", status=401, problems=[problem])
    scheme, _, key = header.partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key.startswith(KEY_PREFIX):
        return Refusal(outcome="key-refused", status=401, problems=[answers.UNAUTHORISED])
    if key in KEYS:
        outcome, status, problem = KEYS[key]
        return Refusal(outcome=outcome, status=status, problems=[problem])
    kind = incoming.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != answers.JSON:
        problem = Problem(message="Content-Type should be application/json.")
        return Refusal(outcome="wrong-content-type", status=415, problems=[problem])
    return None


def _refused(refused: Refusal, *, body: Any = None) -> Verdict:
    """Return a refusal, with as much of a faulty mail as can be made out."""
    return Verdict(
        outcome=refused.outcome,
        reply=answers.refusal(refused),
        reason="; ".join(str(problem) for problem in refused.problems),
        is_json=body is not None,
        **(_facts(body) if body is not None else {}),
    )


def _is_decisive(outcome: Outcome) -> bool:
    """Return whether an outcome differs from the ordinary one before the first event."""
    return (
        outcome.status != HTTPStatus.ACCEPTED
        or outcome.manner != OUTCOMES.ordinary.manner
        or NO_MESSAGE_ID in outcome.traits
    )


def _only_checked(body: Mapping[str, Any]) -> bool:
    """Return whether SendGrid's own sandbox mode is on: checked, never sent."""
    settings = body.get("mail_settings")
    mode = settings.get("sandbox_mode") if isinstance(settings, dict) else None
    return isinstance(mode, dict) and mode.get("enable") is True


def _facts(body: Any) -> dict[str, Any]:
    """Return what the log says of a mail, which need not be a valid one."""
    people = list(_people(body))
    references = (args.get("reference") for _, args in people)
    subjects = [body, *showing.dicts(body, "personalizations")] if isinstance(body, dict) else []
    titles = (s["subject"][:LONGEST_TITLE] for s in subjects if isinstance(s.get("subject"), str))
    return {
        "title": next(titles, None),
        "recipients": tuple(address for address, _ in people),
        "references": tuple(dict.fromkeys(r for r in references if isinstance(r, str))),
    }


def _people(body: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every recipient's address with the custom arguments that hold for it."""
    for address, personalization in showing.addressees(body):
        yield address, showing.arguments(body, personalization)
