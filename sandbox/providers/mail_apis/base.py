"""What the providers of email with an API share: a mail has one recipient, who chooses the outcome.

Their paths begin with the provider's name, because some have the same paths.
"""

import base64
import binascii
import re
import secrets
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import getaddresses
from http import HTTPStatus
from typing import Any

import aiohttp
import msgspec

from ...credentials import MailAccounts
from ...log import Record
from ...outcomes import Outcome, Step, accepted, refused
from ...responses import ProviderResponse
from .. import network_faults
from ..answers import RefusedError
from ..base import (
    Attachment,
    Channel,
    DisplayedMessage,
    EventRequest,
    IncomingRequest,
    PlannedEvent,
    Provider,
    RequestResult,
)
from ..mailboxes import EMPTY, NOT_JSON, magic

MAX_TITLE = 500
PAGE = b"<html><title>Welcome</title></html>"
DELIVERED = Step("delivered")
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}", re.ASCII | re.I)
_LOCAL = re.compile(r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.I)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A valid mail."""

    sender: str
    recipient: str
    """The address alone."""
    to: str
    """With the name."""
    title: str
    text: str = ""
    html: str = ""
    reply_to: str = ""
    headers: Mapping[str, str]
    attachments: tuple[Attachment, ...] = ()
    reference: str | None


class MailProvider(Provider):
    """The base class of providers of email with an API."""

    accounts: MailAccounts
    channel = Channel.EMAIL
    recipient_pattern = "{}@"
    addressing = (
        "The part of an address before the @ chooses the outcome of the message, at any domain. "
        "What follows a plus sign is left out."
    )

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request, and the events that follow."""
        try:
            if (page := self.page(request)) is not None:
                return RequestResult(
                    outcome="page", response=page, is_message=False, title="Account"
                )
            body = self.read(request)
            mail = self.mail(body)
        except RefusedError as error:
            return RequestResult(
                outcome=error.outcome, response=error.response, reason=error.reason
            )
        fields = self.log_fields(body, mail)
        outcome = self.choose_outcome(mail.recipient, magic=magic)
        if reply := network_faults.proxy_response(outcome, request.path):
            return RequestResult(response=reply, **outcome.result_fields(), **fields)
        if not outcome.accepted and outcome.status != HTTPStatus.OK:
            response = self.refuse(outcome, mail)
            return RequestResult(response=response, **outcome.result_fields(), **fields)
        message_id = self.new_id()
        response = ProviderResponse(
            status=outcome.status,
            body=_odd_body(outcome) or msgspec.json.encode(self.acceptance(mail, message_id, now)),
            headers={"Content-Type": "application/json; charset=utf-8"},
            mode=outcome.mode,
        )
        return RequestResult(
            response=response,
            message_id=message_id,
            events=tuple(self._events(outcome, mail, message_id)),
            **outcome.result_fields(),
            **fields,
        )

    @abstractmethod
    def page(self, request: IncomingRequest) -> ProviderResponse | None:
        """Return the answer to another request than a mail. None for a mail.

        Raises RefusedError for a wrong path, method, or key.
        """

    @abstractmethod
    def read(self, request: IncomingRequest) -> Mapping[str, Any]:
        """Return a request's body, as it is logged. Raises RefusedError."""

    @abstractmethod
    def mail(self, body: Mapping[str, Any]) -> Mail:
        """Return a valid mail. Raises RefusedError."""

    @abstractmethod
    def refuse(self, outcome: Outcome, mail: Mail) -> ProviderResponse:
        """Return the answer of an outcome that isn't an acceptance."""

    @abstractmethod
    def acceptance(self, mail: Mail, message_id: str, now: datetime) -> Mapping[str, Any]:
        """Return the body of an acceptance."""

    @abstractmethod
    def event(self, kind: str, mail: Mail, message_id: str) -> dict[str, Any]:
        """Return an event, without the time."""

    def new_id(self) -> str:
        """Return a new message ID."""
        token = secrets.token_hex(16)
        return "-".join((token[:8], token[8:12], token[12:16], token[16:20], token[20:]))

    def make_event(self, requested: EventRequest, *, record: Record) -> PlannedEvent:
        """Return the requested event about a mail. Raises ValueError if impossible."""
        if requested.code is not None:
            raise ValueError(f"{self.title}'s events have no code.")
        mail = self.mail(record.json())
        if requested.recipient and requested.recipient.lower() != mail.recipient.lower():
            raise ValueError("The message has no such recipient.")
        payload = self.event(requested.kind, mail, record.message_id or "")
        payload["_at"] = requested.timestamp or 0
        return PlannedEvent(kind=requested.kind, delay=requested.delay, payload=payload)

    def display(self, record: Record, *, to: int = 0) -> DisplayedMessage:
        """Return a mail as its recipient sees it."""
        mail = self.mail(record.json())
        facts = {"Reply-To": mail.reply_to} if mail.reply_to else {}
        return DisplayedMessage(
            sender=mail.sender,
            recipients=record.recipients,
            title=mail.title,
            text=mail.text,
            html=mail.html,
            facts=tuple((facts | dict(mail.headers)).items()),
            attachments=mail.attachments,
        )

    def pause(self, status: int) -> Mapping[str, str]:
        """Return the header that asks for a pause, if the status does."""
        is_limit = status == HTTPStatus.TOO_MANY_REQUESTS
        return {"Retry-After": str(self.timings.rate_limit)} if is_limit else {}

    def log_fields(self, body: Mapping[str, Any], mail: Mail) -> dict[str, Any]:
        """Return the log fields of a mail."""
        return {
            "title": mail.title[:MAX_TITLE] or None,
            "recipients": (mail.recipient,),
            "references": (mail.reference,) if mail.reference else (),
        }

    def _events(self, outcome: Outcome, mail: Mail, message_id: str) -> Iterator[PlannedEvent]:
        start = self.timings.late if outcome.has_late_events else 0.0
        for step in outcome.steps:
            yield PlannedEvent(
                kind=step.kind,
                delay=start + step.delay(self.timings),
                payload=self.event(step.kind, mail, message_id) | {"_at": 0},
            )


def _odd_body(outcome: Outcome) -> bytes:
    return {EMPTY: b"{}", NOT_JSON: PAGE}.get(outcome.name, b"")


def shared_outcomes(*steps: Step, server_error: int = 500) -> tuple[Outcome, ...]:
    """Return the outcomes that don't depend on the provider. ``steps`` follow an acceptance."""
    text = f"{server_error}, until the address is let through."
    return (
        accepted("no-events", "Accepted, and never an event: for tests that send them."),
        refused("server-error", server_error, text, "error"),
        refused(
            "flaky",
            server_error,
            f"{server_error} twice for an address, then accepted; then from the start.",
            initial_failures=2,
        ),
        refused("unavailable", 503, "503."),
        accepted(EMPTY, "Accepted, but the 200 is an empty object.", *steps),
        accepted(NOT_JSON, "Accepted, but the 200 is a page of HTML.", *steps),
        *network_faults.fault_outcomes(200, *steps),
        network_faults.BAD_GATEWAY,
        network_faults.REDIRECT,
    )


def rate_limits(text: str) -> tuple[Outcome, ...]:
    """Return the outcomes of a 429."""
    return (
        refused("ratelimit", 429, text),
        refused(
            "ratelimit-once",
            429,
            "The same 429 once for an address, then accepted; then from the start.",
            initial_failures=1,
        ),
    )


def addresses(text: Any) -> list[tuple[str, str]]:
    """Return the names and addresses of a header, empty if one of them is invalid."""
    if not isinstance(text, str) or not text:
        return []
    found = getaddresses([text])
    return found if all(is_address(address) for _, address in found) else []


def is_address(address: str) -> bool:
    """Return whether an address is valid, with an ASCII domain."""
    local, at, domain = address.rpartition("@")
    is_local = bool(_LOCAL.fullmatch(local) or _QUOTED.fullmatch(local))
    return bool(at and is_local and _DOMAIN.fullmatch(domain))


def decoded_size(content: Any) -> int | None:
    """Return the size of a file in base64. None if it is none."""
    if not isinstance(content, str):
        return None
    try:
        return len(base64.b64decode(content, validate=True))
    except (binascii.Error, ValueError):
        return None


class JsonWebhooks:
    """The format of webhooks that are one event of JSON, with the password in the URL."""

    batch = 1

    def __init__(self, accounts: MailAccounts) -> None:
        self.accounts = accounts

    async def prepare(self, session: aiohttp.ClientSession, url: str) -> str | None:
        """Do nothing: there is no handshake."""

    def stamp(self, payload: dict[str, Any], *, now: datetime) -> None:
        """Set the event's time, unless it has one."""
        payload["_at"] = payload["_at"] or now.timestamp()

    def encode(self, payloads: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the body of one POST."""
        (payload,) = payloads
        event = {name: value for name, value in payload.items() if name != "_at"}
        return msgspec.json.encode(self.timed(event, payload["_at"]))

    def timed(self, event: dict[str, Any], at: float) -> Mapping[str, Any]:
        """Return an event with its time."""
        return event

    def headers(self, body: bytes, *, url: str, now: datetime) -> dict[str, str]:
        """Return the headers of a POST."""
        credentials = base64.b64encode(f"notify:{self.accounts.webhook_secret}".encode()).decode()
        return {"Content-Type": "application/json", "Authorization": f"Basic {credentials}"}

    def may_repeat(self, url: str, *, status: int | None, repeats: int) -> bool:
        """Return True: a POST is repeated for ``retry_timeout``."""
        return True
