"""The part of SendGrid's mail API that the service uses."""

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from ...log import Record
from ...outcomes import Outcome
from ...responses import ProviderResponse
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
from ..mailboxes import magic
from . import answers, events, presentation
from .answers import Problem, Refusal
from .outcomes import NO_ID, OUTCOMES
from .validation import problems

SEND = "/v3/mail/send"
KEY_PREFIX = "SG."
KEY_REFUSED = Refusal("key-refused", 401, [answers.UNAUTHORISED])
REFUSED_KEYS: Mapping[str, Refusal] = {
    "SG.revoked": KEY_REFUSED,
    "SG.exhausted": Refusal("credits-exhausted", 401, [Problem("Maximum credits exceeded")]),
    "SG.noscope": Refusal("key-without-scope", 403, [Problem("access forbidden")]),
}
"""All other keys that begin with ``SG.`` are accepted."""
NOT_JSON = Refusal("not-json", 400, [Problem("Bad Request")])
TOO_LARGE = Refusal("too-large", 413, [answers.TOO_LARGE])
MAX_TITLE_LENGTH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class SendGrid(Provider):
    """The v3 API: one route, ``POST /v3/mail/send``."""

    name = "sendgrid"
    title = "SendGrid"
    channel = Channel.EMAIL
    route = "/v3/{rest:.*}"
    max_body = 30 * 1024 * 1024
    outcomes = OUTCOMES
    recipient_pattern = "{}@"
    addressing = (
        "The part of an address before the @ chooses the outcome of the message, at any domain. "
        "What follows a plus sign is left out: bounce+1@example.com bounces too."
    )
    event_kinds = frozenset(events.DETAILS)

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request, and the events that follow."""
        refused = next(_refusals(request), None)
        if refused or request.body is None:
            return _refuse(refused or TOO_LARGE)
        try:
            body = request.json()
        except ValueError:
            return _refuse(NOT_JSON)
        if found := problems(body):
            return _refuse(Refusal("invalid-request", 400, found), body=body)
        return self._handle_mail(body, now=now)

    def make_event(self, requested: EventRequest, *, record: Record) -> PlannedEvent:
        """Return an event about an accepted mail. Raises ValueError."""
        if requested.code is not None:
            raise ValueError("SendGrid's events have no code.")
        recipients = presentation.recipients(record.json())
        address = requested.recipient.lower() if requested.recipient else None
        chosen = [recipient for recipient in recipients if address in (None, recipient[0].lower())]
        if not chosen or record.message_id is None:
            raise ValueError("The message has no such recipient.")
        email, args = chosen[0]
        payload = events.payload(
            requested.kind, address=email, message_id=record.message_id, args=args
        )
        payload["timestamp"] = requested.timestamp or 0
        return PlannedEvent(kind=requested.kind, delay=requested.delay, payload=payload)

    def make_inbound_event(self, message: InboundMessage) -> PlannedEvent:
        """Refuse inbound mail. Raises ValueError."""
        raise ValueError("SendGrid takes no messages from people here.")

    def deliveries(self, record: Record) -> Iterator[tuple[str, str]]:
        """Yield each recipient with the reference of its personalization."""
        for address, args in presentation.recipients(record.json()):
            reference = args.get("reference")
            if isinstance(reference, str):
                yield address, reference

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a mail as its recipient sees it."""
        return presentation.display(record, to=to)

    def _handle_mail(self, body: Mapping[str, Any], *, now: datetime) -> RequestResult:
        if _is_sandbox_mode(body):
            reply = ProviderResponse(status=HTTPStatus.OK, headers={"Content-Type": answers.JSON})
            return RequestResult(
                outcome="sandbox-mode", response=reply, is_json=True, **_log_fields(body)
            )
        recipients = [
            (address, args, self.choose_outcome(address, magic=magic))
            for address, args in presentation.recipients(body)
        ]
        outcomes = [outcome for _, _, outcome in recipients]
        decisive = next(filter(_is_decisive, outcomes), outcomes[0])
        if decisive.status != HTTPStatus.ACCEPTED:
            problem = answers.PROBLEMS.get(decisive.status)
            reason = {"reason": str(problem)} if problem else {}
            return RequestResult(
                response=answers.failure(decisive, now=now, pause=self.timings.rate_limit),
                **{**decisive.result_fields(), **reason},
                **_log_fields(body),
            )
        message_id = secrets.token_urlsafe(16)
        shown_id = None if decisive.name == NO_ID else message_id
        planned = self._events(recipients, decisive, message_id) if decisive.accepted else ()
        return RequestResult(
            response=answers.acceptance(shown_id, manner=decisive.mode),
            message_id=message_id,
            events=tuple(planned),
            **decisive.result_fields(),
            **_log_fields(body),
        )

    def _events(
        self,
        recipients: Iterable[tuple[str, Mapping[str, Any], Outcome]],
        decisive: Outcome,
        message_id: str,
    ) -> Iterator[PlannedEvent]:
        start = self.timings.late if decisive.has_late_events else 0.0
        for address, args, outcome in recipients:
            attempt = 0
            for step in outcome.steps:
                attempt += step.kind == "deferred"
                yield PlannedEvent(
                    kind=step.kind,
                    delay=start + step.delay(self.timings),
                    payload=events.payload(
                        step.kind,
                        address=address,
                        message_id=message_id,
                        args=args,
                        attempt=attempt,
                    ),
                )


def _refusals(incoming: IncomingRequest) -> Iterator[Refusal]:
    """Yield refusals for a wrong path, method, key, or content type, in SendGrid's order."""
    if incoming.path != SEND:
        yield Refusal("not-found", 404, [Problem("not found")])
    if incoming.method != "POST":
        yield Refusal("method-not-allowed", 405, [Problem("method not allowed")])
    if "authorization" not in incoming.headers:
        yield Refusal("key-missing", 401, [Problem("authorization required")])
    key = incoming.bearer_token() or ""
    if not key.startswith(KEY_PREFIX):
        yield KEY_REFUSED
    if key in REFUSED_KEYS:
        yield REFUSED_KEYS[key]
    kind = incoming.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != answers.JSON:
        problem = Problem("Content-Type should be application/json.")
        yield Refusal("wrong-content-type", 415, [problem])


def _refuse(refusal: Refusal, *, body: Any = None) -> RequestResult:
    return RequestResult(
        outcome=refusal.outcome,
        response=answers.refusal(refusal),
        reason="; ".join(str(problem) for problem in refusal.problems),
        is_json=body is not None,
        **(_log_fields(body) if body is not None else {}),
    )


def _is_decisive(outcome: Outcome) -> bool:
    """Return whether an outcome changes the answer, not only the events."""
    return (
        outcome.status != HTTPStatus.ACCEPTED
        or outcome.mode != OUTCOMES.default.mode
        or outcome.name == NO_ID
    )


def _is_sandbox_mode(body: Mapping[str, Any]) -> bool:
    """Return whether SendGrid's sandbox mode is on, in which mail is only validated."""
    settings = body.get("mail_settings")
    mode = settings.get("sandbox_mode") if isinstance(settings, dict) else None
    return isinstance(mode, dict) and mode.get("enable") is True


def _log_fields(body: Any) -> dict[str, Any]:
    recipients = list(presentation.recipients(body))
    references = (args.get("reference") for _, args in recipients)
    parts = [body, *presentation.dicts(body, "personalizations")] if isinstance(body, dict) else []
    subjects = (part.get("subject") for part in parts)
    titles = (subject[:MAX_TITLE_LENGTH] for subject in subjects if isinstance(subject, str))
    return {
        "title": next(titles, None),
        "recipients": tuple(address for address, _ in recipients),
        "references": tuple(dict.fromkeys(r for r in references if isinstance(r, str))),
    }
