"""The control API under ``/_sandbox/``: past requests, scripted outcomes, and events to send."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from .behaviours import EVERYBODY, Behaviour, Behaviours, canonical, everybody_match
from .control_requests import (
    DEFAULT_LIMIT,
    BehaviourBody,
    ControlError,
    check_event,
    parse_number,
    read_body,
    read_filter,
    read_match,
    read_query,
    refuse_other_sites,
)
from .log import Record
from .providers.base import (
    EventRequest,
    InboundMessage,
    PlannedEvent,
    Provider,
    SubscriptionRequest,
)
from .recent_requests import Exchange, RecentRequests
from .webhooks import WebhookSender

PREFIX = "/_sandbox"
FILTERS = ("recipient", "reference", "provider", "channel")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """The handlers of the control API."""

    recent_requests: RecentRequests
    behaviours: Behaviours
    providers: Mapping[str, Provider]
    webhook_senders: Mapping[str, WebhookSender]

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the control API."""
        path = PREFIX + "/behaviours/{match}"
        return [
            web.get(f"{PREFIX}/requests", _with_errors(self.list_requests)),
            web.get(f"{PREFIX}/messages", _with_errors(self.list_messages)),
            web.get(f"{PREFIX}/copies", _with_errors(self.list_copies)),
            web.get(f"{PREFIX}/counters", _with_errors(self.get_counters)),
            web.get(f"{PREFIX}/behaviours", _with_errors(self.list_behaviours)),
            web.delete(f"{PREFIX}/behaviours", _with_errors(self.delete_behaviours)),
            web.get(path, _with_errors(self.get_behaviour)),
            web.put(path, _with_errors(self.put_behaviour)),
            web.delete(path, _with_errors(self.delete_behaviour)),
            web.post(f"{PREFIX}/events", _with_errors(self.send_event)),
            web.post(f"{PREFIX}/{{provider}}/written", _with_errors(self.send_inbound_message)),
            web.post(f"{PREFIX}/{{provider}}/subscriptions", _with_errors(self.subscribe)),
            web.post(f"{PREFIX}/reset", _with_errors(self.reset)),
            web.route("*", PREFIX + "/{rest:.*}", _with_errors(_unknown_path)),
        ]

    async def list_requests(self, request: web.Request) -> web.Response:
        """List requests, newest first, with their original bodies."""
        parameters = read_query(request, *FILTERS, "limit", "accepted")
        records = [exchange.record for exchange in self._find(parameters)]
        names = Record.__dataclass_fields__
        return _list_response(
            [{name: getattr(record, name) for name in names} for record in records]
        )

    async def list_messages(self, request: web.Request) -> web.Response:
        """List accepted messages, newest first, with their events."""
        parameters = read_query(request, *FILTERS, "limit")
        found = self._find({**parameters, "accepted": "true"})
        return _list_response(
            [self._message(exchange, parameters.get("recipient")) for exchange in found]
        )

    async def list_copies(self, request: web.Request) -> web.Response:
        """List each reference and recipient with the number of accepted requests."""
        parameters = read_query(request, *FILTERS, "limit", "at_least")
        matches = read_filter(parameters, self.providers)
        found = self.recent_requests.acceptances.find(
            lambda message: matches(message.provider, [message.reference], [message.recipient]),
            at_least=parse_number(parameters, "at_least", default=1),
            limit=parse_number(parameters, "limit", default=DEFAULT_LIMIT),
        )
        return _list_response(
            [{**asdict(message), "copies": len(ids), "requests": ids} for message, ids in found]
        )

    async def get_counters(self, _request: web.Request) -> web.Response:
        """Return the counters since the start or the last reset."""
        return _json_response(asdict(self.recent_requests.counts))

    async def list_behaviours(self, _request: web.Request) -> web.Response:
        """List all scripts."""
        return _list_response([asdict(script) for script in self.behaviours.scripts.values()])

    async def delete_behaviours(self, _request: web.Request) -> web.Response:
        """Remove all scripts."""
        self.behaviours.clear()
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def get_behaviour(self, request: web.Request) -> web.Response:
        """Return one script."""
        return _json_response(asdict(self._script(request)))

    async def put_behaviour(self, request: web.Request) -> web.Response:
        """Set the outcome for a recipient, all recipients of a provider, or everybody."""
        body = await read_body(request, BehaviourBody)
        match = read_match(request)
        known = [
            provider.outcomes
            for provider in self.providers.values()
            if not match.endswith(f":{EVERYBODY}") or match == everybody_match(provider.name)
        ]
        if not known:
            names = ", ".join(self.providers)
            raise ControlError(f"There is no such provider. There are: {names}.")
        outcome = next((row for table in known if (row := table.find(body.outcome))), None)
        if outcome is None:
            names = ", ".join(dict.fromkeys(row.name for table in known for row in table.table))
            raise ControlError(f"There is no outcome “{body.outcome}”. There are: {names}.")
        if body.times is not None and body.times < 1:
            raise ControlError("times must be 1 or more, or null for always.")
        behaviour = Behaviour(match=match, outcome=outcome.name, times=body.times)
        self.behaviours.scripts[match] = behaviour
        return _json_response(asdict(behaviour))

    async def delete_behaviour(self, request: web.Request) -> web.Response:
        """Remove one script."""
        del self.behaviours.scripts[self._script(request).match]
        return web.Response(status=HTTPStatus.NO_CONTENT)

    async def send_event(self, request: web.Request) -> web.Response:
        """Send an event about a message, as often as the body says."""
        body = await read_body(request, EventRequest)
        check_event(body)
        found = self._find({"reference": body.reference, "accepted": "true", "limit": "1"})
        if not found:
            text = f"No accepted message has the reference “{body.reference}”."
            raise ControlError(text, status=HTTPStatus.NOT_FOUND)
        record = found[0].record
        provider = self.providers[record.provider]
        if body.kind not in provider.event_kinds:
            kinds = ", ".join(sorted(provider.event_kinds)) or "none"
            raise ControlError(f"There is no event “{body.kind}”. There are: {kinds}.")
        return self._schedule(
            lambda: provider.make_event(body, record=record), record.provider, record.id, body
        )

    async def send_inbound_message(self, request: web.Request) -> web.Response:
        """Send a message from a person to the sender, as often as the body says."""
        body = await read_body(request, InboundMessage)
        check_event(body)
        name = request.match_info["provider"]
        if name not in self.providers:
            raise ControlError(f"There is no provider “{name}”.", status=HTTPStatus.NOT_FOUND)
        return self._schedule(lambda: self.providers[name].make_inbound_event(body), name, 0, body)

    async def subscribe(self, request: web.Request) -> web.Response:
        """Subscribe a browser, and return the subscription as the browser gives it to a page."""
        wanted = await read_body(request, SubscriptionRequest)
        provider = self.providers.get(request.match_info["provider"])
        if provider is None:
            raise ControlError("There is no such provider.", status=HTTPStatus.NOT_FOUND)
        try:
            found = provider.make_subscription(wanted, origin=f"http://{request.host}")
        except ValueError as error:
            raise ControlError(str(error)) from None
        return _json_response(found)

    async def reset(self, _request: web.Request) -> web.Response:
        """Delete requests, counters, scripts, and pending events, but not the log on disk."""
        self.recent_requests.clear()
        self.behaviours.clear()
        for provider in self.providers.values():
            for memory in provider.memory():
                memory.clear()
        return web.Response(status=HTTPStatus.NO_CONTENT)

    def _schedule(
        self,
        make_event: Callable[[], PlannedEvent],
        provider: str,
        request: int,
        body: EventRequest | InboundMessage,
    ) -> web.Response:
        try:
            planned = make_event()
        except ValueError as error:
            raise ControlError(str(error)) from None
        copies, sender = body.duplicates + 1, self.webhook_senders[provider]
        for _ in range(copies):
            sender.schedule(planned, request_id=request, now=datetime.now(UTC))
        answer = {"request": request, "kind": planned.kind, "copies": copies}
        return _json_response(answer, status=HTTPStatus.ACCEPTED)

    def _find(self, parameters: Mapping[str, str]) -> list[Exchange]:
        accepted = parameters.get("accepted")
        if accepted not in (None, "true", "false"):
            raise ControlError("accepted must be true or false.")
        matches = read_filter(parameters, self.providers)
        return self.recent_requests.find(
            lambda record: (
                (accepted is None or record.accepted == (accepted == "true"))
                and matches(record.provider, record.references, record.recipients)
            ),
            limit=parse_number(parameters, "limit", default=DEFAULT_LIMIT),
        )

    def _script(self, request: web.Request) -> Behaviour:
        match = read_match(request)
        if match not in self.behaviours.scripts:
            raise ControlError(f"Nothing is scripted for “{match}”.", status=HTTPStatus.NOT_FOUND)
        return self.behaviours.scripts[match]

    def _message(self, exchange: Exchange, recipient: str | None) -> dict[str, Any]:
        """Return a message as ``recipient`` sees it, or as its first recipient does."""
        record = exchange.record
        provider = self.providers[record.provider]
        everybody = [canonical(recipient) for recipient in record.recipients]
        requested = canonical(recipient) if recipient else ""
        to = everybody.index(requested) if requested in everybody else 0
        displayed = provider.display(record, to=to)
        return {
            "id": record.id,
            "time": record.time,
            "provider": record.provider,
            "channel": provider.channel,
            "from": displayed.sender,
            "to": list(displayed.recipients),
            "subject": displayed.title,
            "text": displayed.text,
            "html": displayed.html,
            "headers": dict(displayed.facts),
            "attachments": [asdict(attachment) for attachment in displayed.attachments],
            "reference": record.references[0] if record.references else None,
            "references": list(record.references),
            "message_id": record.message_id,
            "outcome": record.outcome,
            "copies": len(self.recent_requests.copies(record, provider)),
            "events": [
                {name: value for name, value in asdict(event).items() if name != "request_id"}
                for event in exchange.events
            ],
        }


def _with_errors(handler: Handler) -> Handler:
    """Wrap a handler: turn ControlError into a problem response, and prevent CSRF."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            refuse_other_sites(request)
            return await handler(request)
        except ControlError as refused:
            body = {"status": refused.status, "detail": str(refused)}
            return _json_response(body, status=refused.status, kind="application/problem+json")

    return answer


async def _unknown_path(request: web.Request) -> web.Response:
    text = f"There is no {request.method} {request.path} in the control API."
    raise ControlError(text, status=HTTPStatus.NOT_FOUND)


def _list_response(results: Sequence[Mapping[str, Any]]) -> web.Response:
    return _json_response({"results": results, "next": None, "previous": None})


def _json_response(
    body: Any, *, status: HTTPStatus = HTTPStatus.OK, kind: str = "application/json"
) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(body), content_type=kind)
