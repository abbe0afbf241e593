"""What the providers of rooms share: the path names the room, and chooses the outcome."""

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, ClassVar

from ...log import Record
from ...outcomes import Outcome
from ...responses import ProviderResponse
from .. import network_faults
from ..answers import RefusedError
from ..base import Channel, DisplayedMessage, IncomingRequest, Provider, RequestResult
from .cards import Card

REFERENCE_HEADER = "x-notify-reference"
MAX_TITLE = 500
LONG, LONG_PAUSE = "ratelimit-long", 3600
PAUSES = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.GATEWAY_TIMEOUT})
"""Statuses of the answers that ask for a pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Posted:
    """A valid request: the room, and the message as JSON."""

    room: str
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomProvider(Provider):
    """The base class of providers of rooms."""

    channel = Channel.ROOM
    recipient_pattern = "{}-…"
    path: ClassVar[re.Pattern[str]]
    """The whole path of a message. The group ``room`` is what chooses the outcome."""

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request."""
        found = self.path.fullmatch(request.path)
        room = found["room"] if found and "room" in self.path.groupindex else ""
        try:
            if found is None or request.method != "POST":
                raise self.unknown_path(request)
            posted = self.read(request, room=room, now=now)
        except RefusedError as refused:
            return RequestResult(
                outcome=refused.outcome,
                response=refused.response,
                reason=refused.reason,
                recipients=(room,) if room else (),
                references=_references(request),
            )
        fields = self._log_fields(posted, request)
        outcome = self.choose_outcome(posted.room, magic=self.outcomes.start_of)
        if reply := network_faults.proxy_response(outcome, request.path):
            return RequestResult(response=reply, **outcome.result_fields(), **fields)
        if not outcome.accepted and outcome.status >= network_faults.REDIRECT.status:
            response = self.refuse(outcome, posted, now=now)
            return RequestResult(response=response, **outcome.result_fields(), **fields)
        message_id, response = self.accept(outcome, posted, request, now=now)
        if problem := self.flaw(posted):
            return RequestResult(
                outcome="not-shown", response=response, reason=problem, is_json=True, **fields
            )
        return RequestResult(
            response=response, message_id=message_id, **outcome.result_fields(), **fields
        )

    @abstractmethod
    def unknown_path(self, request: IncomingRequest) -> RefusedError:
        """Return the refusal of another path or method."""

    @abstractmethod
    def read(self, request: IncomingRequest, *, room: str, now: datetime) -> Posted:
        """Return the valid message of a request. Raises RefusedError."""

    @abstractmethod
    def refuse(self, outcome: Outcome, posted: Posted, *, now: datetime) -> ProviderResponse:
        """Return the answer of an outcome that isn't an acceptance."""

    @abstractmethod
    def accept(
        self, outcome: Outcome, posted: Posted, request: IncomingRequest, *, now: datetime
    ) -> tuple[str | None, ProviderResponse]:
        """Return the ID of an accepted message, if it gets one, and the answer."""

    @abstractmethod
    def card(self, body: Mapping[str, Any]) -> Card:
        """Return a message as members of the room see it."""

    def pause(self, outcome: Outcome) -> Mapping[str, str]:
        """Return the header that asks for a pause, if the outcome does."""
        if outcome.status not in PAUSES:
            return {}
        seconds = LONG_PAUSE if outcome.name == LONG else self.timings.rate_limit
        return {"Retry-After": str(seconds)}

    def flaw(self, posted: Posted) -> str | None:
        """Return why nobody sees a message although the request was answered as accepted."""
        return None

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a message as members of the room see it."""
        card = self.card(record.json())
        return DisplayedMessage(
            sender=self.title,
            recipients=record.recipients,
            title=card.title,
            text=card.text,
            html=card.html,
            buttons=card.buttons,
        )

    def _log_fields(self, posted: Posted, request: IncomingRequest) -> dict[str, Any]:
        title = self.card(posted.body).title
        return {
            "title": title[:MAX_TITLE] or None,
            "recipients": (posted.room,),
            "references": _references(request),
        }


def _references(request: IncomingRequest) -> tuple[str, ...]:
    found = request.headers.get(REFERENCE_HEADER) or request.headers.get("webhook-id")
    return (found,) if found else ()
