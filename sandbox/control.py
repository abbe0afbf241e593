"""The control API under ``/_sandbox/``: what was asked, and what shall happen."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, TypeVar

import msgspec
from aiohttp import web

from .behaviours import EVERYBODY, Behaviour, Behaviours
from .log import Record
from .memory import Event, Exchange, Memory
from .providers.base import EventRequest, Provider
from .webhooks import Outgoing

PREFIX = "/_sandbox"
DEFAULT_LIMIT, MAX_LIMIT = 20, 1000
MAX_DUPLICATES = 100
MAX_DELAY = 3600.0
LATEST = 9_999_999_999
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
Wanted = TypeVar("Wanted", bound=msgspec.Struct)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Refused(Exception):
    """A request of the control API that cannot be done."""

    def __init__(self, detail: str, *, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(detail)
        self.status = status


class _WantedBehaviour(msgspec.Struct, forbid_unknown_fields=True):
    outcome: str
    times: int | None = None


class _WantedEvent(msgspec.Struct, forbid_unknown_fields=True):
    reference: str
    kind: str
    delay: float = 0.0
    duplicates: int = 0
    recipient: str | None = None
    timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The handlers of the control API."""

    memory: Memory
    behaviours: Behaviours
    providers: Mapping[str, Provider]
    outgoing: Mapping[str, Outgoing]

    def routes(self) -> list[web.RouteDef]:
        """Return the routes; those that change something refuse other sites' pages."""
        one = PREFIX + "/behaviours/{match}"
        return [
            web.get(f"{PREFIX}/requests", _answering(self.requests)),
            web.get(f"{PREFIX}/messages", _answering(self.messages)),
            web.get(f"{PREFIX}/counters", _answering(self.counters)),
            web.get(f"{PREFIX}/behaviours", _answering(self.list_behaviours)),
            web.delete(f"{PREFIX}/behaviours", _answering(self.delete_behaviours)),
            web.get(one, _answering(self.get_behaviour)),
            web.put(one, _answering(self.put_behaviour)),
            web.delete(one, _answering(self.delete_behaviour)),
            web.post(f"{PREFIX}/events", _answering(self.send_event)),
            web.post(f"{PREFIX}/reset", _answering(self.reset)),
            web.route("*", PREFIX + "/{rest:.*}", _answering(_unknown)),
        ]

    async def requests(self, request: web.Request) -> web.Response:
        """Requests newest first, each with its body as it was sent."""
        query = _query(request, "recipient", "reference", "limit", "accepted")
        found = self.memory.find(_filter(query), limit=_limit(query))
        return _listed([_request(exchange.record) for exchange in found])

    async def messages(self, request: web.Request) -> web.Response:
        """Messages that were accepted, newest first, with their events."""
        query = _query(request, "recipient", "reference", "limit")
        found = self.memory.find(_filter({**query, "accepted": "true"}), limit=_limit(query))
        return _listed([self._message(exchange) for exchange in found])

    async def counters(self, _request: web.Request) -> web.Response:
        """What happened since the start or the last reset."""
        return _json(asdict(self.memory.counts))

    async def list_behaviours(self, _request: web.Request) -> web.Response:
        """Every script."""
        return _listed([asdict(behaviour) for behaviour in self.behaviours.all()])

    async def delete_behaviours(self, _request: web.Request) -> web.Response:
        """Forget every script."""
        self.behaviours.clear()
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def get_behaviour(self, request: web.Request) -> web.Response:
        """One script."""
        match = _match(request)
        behaviour = self.behaviours.get(match)
        if behaviour is None:
            raise _not_scripted(match)
        return _json(asdict(behaviour))

    async def put_behaviour(self, request: web.Request) -> web.Response:
        """Script an address, or everybody."""
        wanted = await _body(request, _WantedBehaviour)
        known = [provider.outcomes for provider in self.providers.values()]
        outcome = next((row for table in known if (row := table.find(wanted.outcome))), None)
        if outcome is None:
            names = ", ".join(row.name for table in known for row in table.table)
            raise Refused(f"There is no outcome “{wanted.outcome}”. There are: {names}.")
        if wanted.times is not None and wanted.times < 1:
            raise Refused("times must be 1 or more, or null for always.")
        behaviour = Behaviour(match=_match(request), outcome=outcome.name, times=wanted.times)
        self.behaviours.set(behaviour)
        return _json(asdict(behaviour))

    async def delete_behaviour(self, request: web.Request) -> web.Response:
        """Forget one script."""
        match = _match(request)
        if not self.behaviours.remove(match):
            raise _not_scripted(match)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def send_event(self, request: web.Request) -> web.Response:
        """Send an event about a message, as often as is wanted."""
        wanted = await _body(request, _WantedEvent)
        _check_event(wanted)
        record = self._accepted(wanted.reference)
        provider = self.providers[record.provider]
        if wanted.kind not in provider.event_kinds:
            kinds = ", ".join(sorted(provider.event_kinds))
            raise Refused(f"There is no event “{wanted.kind}”. There are: {kinds}.")
        event = EventRequest(
            kind=wanted.kind,
            delay=wanted.delay,
            at=wanted.timestamp,
            address=wanted.recipient,
        )
        try:
            planned = provider.event(event, about=record)
        except ValueError as error:
            raise Refused(str(error)) from None
        for _ in range(wanted.duplicates + 1):
            self.outgoing[record.provider].plan(
                planned, request_id=record.id, now=datetime.now(UTC)
            )
        answer = {"request": record.id, "kind": wanted.kind, "copies": wanted.duplicates + 1}
        return _json(answer, status=HTTPStatus.ACCEPTED)

    async def reset(self, _request: web.Request) -> web.Response:
        """Forget requests, counters, scripts and events that wait; the log stays."""
        self.memory.clear()
        self.behaviours.clear()
        return web.Response(status=HTTPStatus.NO_CONTENT)

    def _accepted(self, reference: str) -> Record:
        """Return the latest accepted request with this reference."""
        query = {"reference": reference, "accepted": "true"}
        found = self.memory.find(_filter(query), limit=1)
        if not found:
            raise Refused(
                f"No accepted message has the reference “{reference}”.",
                status=HTTPStatus.NOT_FOUND,
            )
        return found[0].record

    def _message(self, exchange: Exchange) -> dict[str, Any]:
        record = exchange.record
        shown = self.providers[record.provider].show(record)
        return {
            "id": record.id,
            "time": record.time,
            "provider": record.provider,
            "from": shown.sender,
            "to": list(shown.recipients),
            "subject": shown.title,
            "text": shown.text,
            "html": shown.html,
            "reference": record.references[0] if record.references else None,
            "references": list(record.references),
            "message_id": record.message_id,
            "outcome": record.outcome,
            "events": [_event(event) for event in exchange.events],
        }


def _answering(handler: Handler) -> Handler:
    """Turn what a handler refuses into a clear answer."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            _refuse_other_sites(request)
            return await handler(request)
        except Refused as refused:
            body = {"status": refused.status, "detail": str(refused)}
            return _json(body, status=refused.status, kind="application/problem+json")

    return answer


def _refuse_other_sites(request: web.Request) -> None:
    """Let no page of another site change anything by way of somebody's browser."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if request.method != "GET" and site not in ("none", "same-origin"):
        raise Refused("Another site's page may not do this.", status=HTTPStatus.FORBIDDEN)


async def _unknown(request: web.Request) -> web.Response:
    raise Refused(
        f"There is no {request.method} {request.path} in the control API.",
        status=HTTPStatus.NOT_FOUND,
    )


async def _body(request: web.Request, kind: type[Wanted]) -> Wanted:
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(f"The body is not what it should be: {error}.") from None


def _check_event(wanted: _WantedEvent) -> None:
    if not 0 <= wanted.delay <= MAX_DELAY:
        raise Refused(f"delay must be between 0 and {MAX_DELAY:.0f} seconds.")
    if not 0 <= wanted.duplicates <= MAX_DUPLICATES:
        raise Refused(f"duplicates must be between 0 and {MAX_DUPLICATES}.")
    if wanted.timestamp is not None and not 0 < wanted.timestamp <= LATEST:
        raise Refused("timestamp must be the seconds since 1970.")


def _filter(query: Mapping[str, str]) -> Callable[[Record], bool]:
    """Return what tells the wanted requests."""
    recipient, reference = query.get("recipient"), query.get("reference")
    recipient = recipient.lower() if recipient else None
    accepted = query.get("accepted")
    if accepted not in (None, "true", "false"):
        raise Refused("accepted must be true or false.")

    def wanted(record: Record) -> bool:
        return (
            (accepted is None or record.accepted == (accepted == "true"))
            and (reference is None or reference in record.references)
            and (recipient is None or recipient in (one.lower() for one in record.recipients))
        )

    return wanted


def _query(request: web.Request, *known: str) -> Mapping[str, str]:
    unknown = sorted(set(request.query) - set(known))
    if unknown:
        raise Refused(f"Unknown: {', '.join(unknown)}. Known: {', '.join(known)}.")
    return dict(request.query)


def _limit(query: Mapping[str, str]) -> int:
    text = query.get("limit", str(DEFAULT_LIMIT))
    number = int(text) if _NUMBER.fullmatch(text) else 0
    if not 1 <= number <= MAX_LIMIT:
        raise Refused(f"limit must be between 1 and {MAX_LIMIT}.")
    return number


def _match(request: web.Request) -> str:
    match = request.match_info["match"].strip().lower()
    if match != EVERYBODY and not match:
        raise Refused("The match must be an address, or * for everybody.")
    return match


def _not_scripted(match: str) -> Refused:
    return Refused(f"Nothing is scripted for “{match}”.", status=HTTPStatus.NOT_FOUND)


def _request(record: Record) -> dict[str, Any]:
    return {field: getattr(record, field) for field in Record.__dataclass_fields__}


def _event(event: Event) -> dict[str, Any]:
    fields = asdict(event)
    del fields["request_id"]
    return fields


def _listed(results: Sequence[Mapping[str, Any]]) -> web.Response:
    return _json({"results": results, "next": None, "previous": None})


def _json(
    body: Any, *, status: HTTPStatus = HTTPStatus.OK, kind: str = "application/json"
) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type=kind)
