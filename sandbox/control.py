"""The control API under ``/_sandbox/``: what was asked, and what shall happen."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from . import wanted
from .behaviours import EVERYBODY, Behaviour, Behaviours, canonical, everybody_of
from .copies import cases
from .log import Record
from .memory import Event, Exchange, Memory
from .providers.base import EventRequest, PlannedEvent, Provider, Written
from .wanted import Refused, refuse_other_sites
from .webhooks import Outgoing

PREFIX = "/_sandbox"
FILTERS = ("recipient", "reference", "provider", "channel")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


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
            web.get(f"{PREFIX}/copies", _answering(self.copies)),
            web.get(f"{PREFIX}/counters", _answering(self.counters)),
            web.get(f"{PREFIX}/behaviours", _answering(self.list_behaviours)),
            web.delete(f"{PREFIX}/behaviours", _answering(self.delete_behaviours)),
            web.get(one, _answering(self.get_behaviour)),
            web.put(one, _answering(self.put_behaviour)),
            web.delete(one, _answering(self.delete_behaviour)),
            web.post(f"{PREFIX}/events", _answering(self.send_event)),
            web.post(f"{PREFIX}/{{provider}}/written", _answering(self.write)),
            web.post(f"{PREFIX}/reset", _answering(self.reset)),
            web.route("*", PREFIX + "/{rest:.*}", _answering(_unknown)),
        ]

    async def requests(self, request: web.Request) -> web.Response:
        """Requests newest first, each with its body as it was sent."""
        asked = wanted.query(request, *FILTERS, "limit", "accepted")
        return _listed([_request(one.record) for one in self._find(asked)])

    async def messages(self, request: web.Request) -> web.Response:
        """Messages that were accepted, newest first, with their events."""
        asked = wanted.query(request, *FILTERS, "limit")
        found = self._find({**asked, "accepted": "true"})
        return _listed([self._message(one, asked.get("recipient")) for one in found])

    async def copies(self, request: web.Request) -> web.Response:
        """How often each reference was accepted for each recipient."""
        asked = wanted.query(request, *FILTERS, "limit", "at_least")
        found = self.memory.copies.find(
            wanted.case_filter(asked, channels=self._channels()),
            at_least=wanted.number(asked, "at_least", default=1, most=wanted.MAX_LIMIT),
            limit=_limit(asked),
        )
        return _listed(
            [{**asdict(case), "copies": len(ids), "requests": ids} for case, ids in found]
        )

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
        match = wanted.match(request)
        behaviour = self.behaviours.get(match)
        if behaviour is None:
            raise wanted.not_scripted(match)
        return _json(asdict(behaviour))

    async def put_behaviour(self, request: web.Request) -> web.Response:
        """Script an address, or everybody."""
        asked = await wanted.body(request, wanted.WantedBehaviour)
        match = wanted.match(request)
        known = [
            provider.outcomes
            for provider in self.providers.values()
            if not match.endswith(f":{EVERYBODY}") or match == everybody_of(provider.name)
        ]
        if not known:
            raise Refused(f"There is no such provider. There are: {', '.join(self.providers)}.")
        outcome = next((row for table in known if (row := table.find(asked.outcome))), None)
        if outcome is None:
            names = dict.fromkeys(row.name for table in known for row in table.table)
            raise Refused(f"There is no outcome “{asked.outcome}”. There are: {', '.join(names)}.")
        if asked.times is not None and asked.times < 1:
            raise Refused("times must be 1 or more, or null for always.")
        behaviour = Behaviour(match=match, outcome=outcome.name, times=asked.times)
        self.behaviours.set(behaviour)
        return _json(asdict(behaviour))

    async def delete_behaviour(self, request: web.Request) -> web.Response:
        """Forget one script."""
        match = wanted.match(request)
        if not self.behaviours.remove(match):
            raise wanted.not_scripted(match)
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def send_event(self, request: web.Request) -> web.Response:
        """Send an event about a message, as often as is wanted."""
        asked = await wanted.body(request, wanted.WantedEvent)
        asked.check()
        record = self._accepted(asked.reference)
        provider = self.providers[record.provider]
        if asked.kind not in provider.event_kinds:
            kinds = ", ".join(sorted(provider.event_kinds)) or "none"
            raise Refused(f"There is no event “{asked.kind}”. There are: {kinds}.")
        event = EventRequest(
            kind=asked.kind,
            delay=asked.delay,
            at=asked.timestamp,
            address=asked.recipient,
            code=asked.code,
        )
        planned = _possible(lambda: provider.event(event, about=record))
        return self._plan(planned, provider=record.provider, request=record.id, asked=asked)

    async def write(self, request: web.Request) -> web.Response:
        """Let a person write back, as often as is wanted."""
        asked = await wanted.body(request, wanted.WantedWords)
        asked.check()
        name = request.match_info["provider"]
        if name not in self.providers:
            raise Refused(f"There is no provider “{name}”.", status=HTTPStatus.NOT_FOUND)
        words = Written(
            sender=asked.sender,
            text=asked.text,
            name=asked.name,
            button=asked.button,
            at=asked.timestamp,
        )
        planned = _possible(lambda: self.providers[name].written(words))
        return self._plan(planned, provider=name, request=0, asked=asked)

    async def reset(self, _request: web.Request) -> web.Response:
        """Forget requests, counters, scripts and events that wait; the log stays."""
        self.memory.clear()
        self.behaviours.clear()
        return web.Response(status=HTTPStatus.NO_CONTENT)

    def _plan(
        self,
        planned: PlannedEvent,
        *,
        provider: str,
        request: int,
        asked: wanted.WantedEvent | wanted.WantedWords,
    ) -> web.Response:
        """Send an event and its duplicates."""
        copies = asked.duplicates + 1
        for _ in range(copies):
            self.outgoing[provider].plan(planned, request_id=request, now=datetime.now(UTC))
        answer = {"request": request, "kind": planned.kind, "copies": copies}
        return _json(answer, status=HTTPStatus.ACCEPTED)

    def _find(self, asked: Mapping[str, str]) -> list[Exchange]:
        chosen = wanted.record_filter(asked, channels=self._channels())
        return self.memory.find(chosen, limit=_limit(asked))

    def _channels(self) -> dict[str, str]:
        return {name: provider.channel for name, provider in self.providers.items()}

    def _accepted(self, reference: str) -> Record:
        """Return the latest accepted request with this reference."""
        found = self._find({"reference": reference, "accepted": "true", "limit": "1"})
        if not found:
            raise Refused(
                f"No accepted message has the reference “{reference}”.",
                status=HTTPStatus.NOT_FOUND,
            )
        return found[0].record

    def _message(self, exchange: Exchange, recipient: str | None) -> dict[str, Any]:
        """Return a message as a recipient sees it: the one that was asked for, or the first."""
        record = exchange.record
        provider = self.providers[record.provider]
        everybody = [canonical(one) for one in record.recipients]
        wanted_one = canonical(recipient) if recipient else ""
        to = everybody.index(wanted_one) if wanted_one in everybody else 0
        shown = provider.show(record, to=to)
        return {
            "id": record.id,
            "time": record.time,
            "provider": record.provider,
            "channel": provider.channel,
            "from": shown.sender,
            "to": list(shown.recipients),
            "subject": shown.title,
            "text": shown.text,
            "html": shown.html,
            "headers": dict(shown.facts),
            "attachments": [asdict(one) for one in shown.attachments],
            "reference": record.references[0] if record.references else None,
            "references": list(record.references),
            "message_id": record.message_id,
            "outcome": record.outcome,
            "copies": len(self.memory.copies.of(cases(provider, record))),
            "events": [_event(event) for event in exchange.events],
        }


def _answering(handler: Handler) -> Handler:
    """Turn what a handler refuses into a clear answer."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            refuse_other_sites(request)
            return await handler(request)
        except Refused as refused:
            body = {"status": refused.status, "detail": str(refused)}
            return _json(body, status=refused.status, kind="application/problem+json")

    return answer


async def _unknown(request: web.Request) -> web.Response:
    raise Refused(
        f"There is no {request.method} {request.path} in the control API.",
        status=HTTPStatus.NOT_FOUND,
    )


def _possible(make: Callable[[], PlannedEvent]) -> PlannedEvent:
    try:
        return make()
    except ValueError as error:
        raise Refused(str(error)) from None


def _limit(asked: Mapping[str, str]) -> int:
    return wanted.number(asked, "limit", default=wanted.DEFAULT_LIMIT, most=wanted.MAX_LIMIT)


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
