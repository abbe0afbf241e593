"""The part of AWS End User Messaging SMS that the service uses."""

from collections.abc import Iterator, Mapping, MutableMapping, MutableSet, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any

import msgspec

from ...credentials import AwsAccount
from ...log import Record
from ...outcomes import Outcome
from ...responses import ProviderResponse
from .. import network_faults, segments
from ..aws import signature
from ..aws.signature import AwsProblem
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
from . import events, validation
from .outcomes import EMPTY, NOT_JSON, OUTCOMES, PROBLEMS, SmsProblem, magic, magic_suffix

PATH = "/sms-voice/"
JSON = "application/x-amz-json-1.0"
TARGET = "PinpointSMSVoiceV2."
NAMESPACE = "com.amazonaws.pinpointsmsvoicev2#"
OPTED_OUT = "opted-out"
TOO_LARGE = SmsProblem(name="RequestEntityTooLargeException", message="Too large", status=413)
UNKNOWN = SmsProblem(name="UnknownOperationException", message="Unknown operation", status=404)
MAX_TITLE_LENGTH = 80
_PAGE = b"<html><body>Welcome</body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class AwsSms(Provider):
    """``/sms-voice/`` stands for the host of the API in a region."""

    account: AwsAccount
    opted_out: set[str] = field(default_factory=set)
    """Numbers that wrote STOP."""
    name = "aws_sms"
    title = "AWS SMS"
    channel = Channel.SMS
    route = r"/sms-voice/{rest:.*}"
    max_body = 64 * 1024
    outcomes = OUTCOMES
    addressing = (
        "The last six digits of a phone number choose the outcome of the message: 900 and three "
        "more. +44 7700 900000 to 900999 belong to nobody. A number that wrote STOP has opted out."
    )
    event_kinds = frozenset(events.KINDS)
    takes_replies = True

    def recipient_patterns(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the last six digits of the numbers that choose an outcome."""
        return (f"…{magic_suffix(outcome.name)}",)

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request, and the events that follow."""
        refused = signature.problem(request, account=self.account, service="sms-voice", now=now)
        if request.body is None or refused is not None:
            return _refuse(refused or TOO_LARGE, outcome="not-authenticated")
        kind = request.headers.get("content-type", "")
        if request.method != "POST" or request.path != PATH or kind != JSON:
            return _refuse(UNKNOWN)
        try:
            body = request.json()
        except ValueError:
            return _refuse(
                SmsProblem(name="SerializationException", message="The body isn't JSON.")
            )
        operation = request.headers.get("x-amz-target", "").removeprefix(TARGET)
        if operation == "SendTextMessage":
            return self._handle_message(body, path=request.path, now=now)
        return self._describe(operation, body)

    def make_event(self, requested: EventRequest, *, record: Record) -> PlannedEvent:
        """Return an event about an accepted text. Raises ValueError."""
        if requested.code is not None:
            raise ValueError("AWS's events have no code.")
        body = record.json()
        is_other = requested.recipient and requested.recipient != validation.recipient(body)
        if is_other or record.message_id is None:
            raise ValueError("The message has no such recipient.")
        at = (
            record.time
            if requested.timestamp is None
            else datetime.fromtimestamp(requested.timestamp, record.time.tzinfo)
        )
        payload = self._event(requested.kind, body, record.message_id, at=at)
        return PlannedEvent(kind=requested.kind, delay=requested.delay, payload=payload)

    def make_inbound_event(self, message: InboundMessage) -> PlannedEvent:
        """Take an inbound message, which may opt out. Raises ValueError for an invalid number."""
        sender = validation.number(message.sender)
        if sender is None:
            raise ValueError("from must be a phone number with its country code.")
        asked = events.keyword(message.text)
        if asked == "STOP":
            self.opted_out.add(sender)
        elif asked == "START":
            self.opted_out.discard(sender)
        payload = events.inbound_message(message, sender=sender, account=self.account)
        return PlannedEvent(kind="written", delay=0.0, payload=payload)

    def memory(self) -> Sequence[MutableSet[str] | MutableMapping[str, Any]]:
        """Return who wrote STOP."""
        return (self.opted_out,)

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a text as its recipient sees it."""
        body: Any = record.json()
        text = body["MessageBody"]
        facts = {"Parts": f"{segments.count(text)} ({segments.encoding(text)})"}
        names = {
            "MessageType": "Type",
            "TimeToLive": "Time to live",
            "ConfigurationSetName": "Configuration set",
        }
        facts |= {label: str(body[name]) for name, label in names.items() if name in body}
        return DisplayedMessage(
            sender=body.get("OriginationIdentity", ""),
            recipients=(validation.recipient(body),),
            text=text,
            facts=tuple(facts.items()),
        )

    def _describe(self, operation: str, body: Any) -> RequestResult:
        """Answer the operations by which the set-up is checked."""
        account = self.account
        destination = {
            "EventDestinationName": "notify",
            "Enabled": True,
            "MatchingEventTypes": ["TEXT_ALL"],
            "SnsDestination": {"TopicArn": account.topic},
        }
        found: Mapping[str, tuple[str, str, dict[str, Any]]] = {
            "DescribePools": (
                "PoolIds",
                account.pool,
                {"Pools": [{"PoolId": account.pool, "Status": "ACTIVE"}]},
            ),
            "DescribeConfigurationSets": (
                "ConfigurationSetNames",
                account.configuration_set,
                {
                    "ConfigurationSets": [
                        {
                            "ConfigurationSetName": account.configuration_set,
                            "EventDestinations": [destination],
                        }
                    ]
                },
            ),
        }
        if operation == "DescribeAccountAttributes":
            tier = {"Name": "ACCOUNT_TIER", "Value": "PRODUCTION"}
            return _read({"AccountAttributes": [tier]}, operation)
        if operation not in found:
            return _refuse(UNKNOWN, is_message=False)
        member, known, answer = found[operation]
        if not isinstance(body, dict) or body.get(member) != [known]:
            missing = SmsProblem(name="ResourceNotFoundException", message="Resource not found")
            return _refuse(missing, is_message=False)
        return _read(answer, operation)

    def _handle_message(self, body: Any, *, path: str, now: datetime) -> RequestResult:
        refused = validation.problem(body, account=self.account)
        if refused is not None:
            return _refuse(refused, outcome="invalid-request", body=body)
        to = validation.recipient(body)
        if to in self.opted_out:
            return _refuse(PROBLEMS[OPTED_OUT], outcome=OPTED_OUT, body=body)
        message_id = events.new_id()
        if body.get("DryRun"):
            return _read({"MessageId": message_id}, "DryRun")
        outcome = self.choose_outcome(to, magic=magic)
        fields = {**outcome.result_fields(), **_log_fields(body)}
        if not outcome.accepted:
            return RequestResult(response=_failure(outcome, path), **fields)
        return RequestResult(
            response=_acceptance(outcome, message_id),
            message_id=message_id,
            events=tuple(self._events(outcome, body, message_id, now=now)),
            **fields,
        )

    def _events(
        self, outcome: Outcome, body: Any, message_id: str, *, now: datetime
    ) -> Iterator[PlannedEvent]:
        start = self.timings.late if outcome.has_late_events else 0.0
        for step in outcome.steps:
            yield PlannedEvent(
                kind=step.kind,
                delay=start + step.delay(self.timings),
                payload=self._event(step.kind, body, message_id, at=now),
            )

    def _event(self, kind: str, body: Any, message_id: str, *, at: datetime) -> dict[str, Any]:
        return events.event(kind, body, message_id, account=self.account, at=at)


def _refuse(
    problem: SmsProblem | AwsProblem,
    *,
    outcome: str = "refused",
    body: Any = None,
    is_message: bool = True,
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
    to = validation.recipient(body)
    text = body.get("MessageBody") if isinstance(body, dict) else None
    reference = validation.context(body).get("ref")
    return {
        "title": " ".join(text.split())[:MAX_TITLE_LENGTH] if isinstance(text, str) else None,
        "recipients": (to,) if to else (),
        "references": (reference,) if isinstance(reference, str) else (),
    }


def _read(found: Mapping[str, Any], title: str) -> RequestResult:
    return RequestResult(outcome="read", response=_respond(found), is_message=False, title=title)


def _respond(found: Mapping[str, Any], *, status: int = 200, mode: Any = None) -> ProviderResponse:
    options = {} if mode is None else {"mode": mode}
    return ProviderResponse(
        status=status,
        body=msgspec.json.encode(found),
        headers={"Content-Type": JSON},
        **options,
    )


def _acceptance(outcome: Outcome, message_id: str) -> ProviderResponse:
    if outcome.name == NOT_JSON:
        html = {"Content-Type": "text/html"}
        return ProviderResponse(status=HTTPStatus.OK, body=_PAGE, headers=html)
    found = {} if outcome.name == EMPTY else {"MessageId": message_id}
    return _respond(found, mode=outcome.mode)


def _failure(outcome: Outcome, path: str) -> ProviderResponse:
    if reply := network_faults.proxy_response(outcome, path):
        return reply
    if outcome.name in PROBLEMS:
        return _error(PROBLEMS[outcome.name])
    return ProviderResponse(status=outcome.status, mode=outcome.mode)


def _error(problem: SmsProblem | AwsProblem) -> ProviderResponse:
    found: dict[str, Any] = {
        "__type": f"{NAMESPACE}{problem.name}",
        "Message": problem.message,
    }
    if isinstance(problem, SmsProblem) and problem.reason:
        found["Reason"] = problem.reason
    if isinstance(problem, SmsProblem) and problem.field:
        found["Fields"] = [{"Name": problem.field, "Message": problem.message}]
    return _respond(found, status=problem.status)
