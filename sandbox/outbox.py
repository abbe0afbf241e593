"""The outbox: web pages that show messages and their events.

Message content is untrusted: everything is escaped, and the HTML of a mail is shown in a frame that
runs no scripts, and loads only images, on request.
"""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import web
from liquid import CachingFileSystemLoader, Environment

from . import pages
from .behaviours import Behaviour, Behaviours, canonical
from .control_requests import ControlError, refuse_other_sites
from .log import Record
from .pages import EVERYTHING, View
from .providers.base import Channel, InboundMessage, Provider
from .recent_requests import Exchange, RecentRequests
from .webhooks import WebhookSender

FOLDER = Path(__file__).parent
PAGE_SIZE = 50
MAX_QUERY_LENGTH = 200
RESULTS = (EVERYTHING, "accepted", "refused")
MAX_REPLY_LENGTH = 1_600
CHANNELS = (EVERYTHING, Channel.EMAIL, Channel.PUSH, Channel.WHATSAPP, Channel.SMS, Channel.ROOM)
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HAS_DIRECTION = re.compile(r"<(?:html|body)\b[^>]*\sdir\s*=", re.IGNORECASE)
MAIL_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; font-src data:; img-src {images}; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
STATIC = {"outbox.css": "text/css", "outbox.js": "text/javascript"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbox:
    """The handlers of the outbox pages."""

    recent_requests: RecentRequests
    behaviours: Behaviours
    providers: Mapping[str, Provider]
    webhook_senders: Mapping[str, WebhookSender]
    templates: Environment = field(
        default_factory=lambda: Environment(
            autoescape=True, loader=CachingFileSystemLoader(FOLDER / "templates", ext=".liquid")
        )
    )
    run_id: str = field(default_factory=lambda: secrets.token_hex(4))
    """Distinguishes this run from earlier ones in a browser's cache."""

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the pages and their assets."""
        return [
            web.get("/", self.list),
            web.get("/recipients", self.recipients),
            web.get("/messages/{id:[0-9]{1,18}}", self.message),
            web.get("/messages/{id:[0-9]{1,18}}/html", self.mail),
            web.post("/messages/{id:[0-9]{1,18}}/let-through", self.let_through),
            web.post("/messages/{id:[0-9]{1,18}}/reply", self.reply),
            web.get("/static/{name}", self.static),
            web.get("/{rest:.*}", self.not_found),
        ]

    async def list(self, request: web.Request) -> web.Response:
        """List the latest requests, newest first."""
        view = View(
            shown=_choice(request, "show", RESULTS),
            channel=_choice(request, "channel", CHANNELS),
            search=request.query.get("q", "")[:MAX_QUERY_LENGTH],
        )
        before = _number(request.query.get("before", ""))
        etag = f'"{self.run_id}-{self.recent_requests.revision}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED)

        def is_included(record: Record) -> bool:
            return view.includes(record, channel=self.providers[record.provider].channel)

        found = self.recent_requests.find(is_included, limit=PAGE_SIZE + 1, before=before)
        listed = found[:PAGE_SIZE]
        return self._page(
            "list",
            etag=etag,
            rows=[
                pages.row(exchange, self._provider(exchange), copies=len(self._copies(exchange)))
                for exchange in listed
            ],
            words=view.search,
            shown=view.shown,
            channel=view.channel,
            filters=view.filters(channels=CHANNELS, shown=RESULTS),
            before=before,
            newest=view.link(),
            older=view.link(before=listed[-1].record.id) if len(found) > PAGE_SIZE else "",
        )

    async def message(self, request: web.Request) -> web.Response:
        """Show one request: its content, its answer, and its events."""
        exchange = self._exchange(request)
        if exchange is None:
            return self._not_found_page("This message is not in memory any more, or never was.")
        copies, through = self._copies(exchange), self._is_let_through(exchange)
        to = _recipient(request, exchange)
        etag = f'"{self.run_id}-{exchange.record.id}-{exchange.version}-{len(copies)}-{through}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED)
        message = pages.message(exchange, self._provider(exchange), copies=copies, to=to)
        is_plain = message["channel"] in (Channel.EMAIL, Channel.ROOM)
        views = [
            *(("html",) if message["has_html"] else ()),
            *(("text" if is_plain else "preview",) if exchange.record.accepted else ()),
            "request",
        ]
        view = _choice(request, "view", views)
        images = "images" in request.query
        raw, is_complete = pages.raw(exchange.record) if view == "request" else ("", True)
        return self._page(
            "message",
            etag=etag,
            message=message,
            views=views,
            view=view,
            images=images,
            as_recipient=f"&to={to}" if to else "",
            frame="&".join(filter(None, (f"to={to}" if to else "", "images" if images else ""))),
            raw=raw,
            is_complete=is_complete,
            can_let_through=self._has_chosen_outcome(exchange) and not exchange.record.accepted,
            let_through=through,
            takes_replies=exchange.record.accepted and self._provider(exchange).takes_replies,
        )

    async def let_through(self, request: web.Request) -> web.Response:
        """Toggle a script that accepts all further messages to the recipients of a request."""
        try:
            refuse_other_sites(request)
        except ControlError as refused:
            return self._page("missing", status=refused.status, what=str(refused))
        exchange = self._exchange(request)
        if exchange is None or not self._has_chosen_outcome(exchange):
            return self._not_found_page("There is no such message.")
        through = self._is_let_through(exchange)
        ordinary = self._provider(exchange).outcomes.default.name
        for match in map(canonical, exchange.record.recipients):
            if through:
                self.behaviours.scripts.pop(match, None)
            else:
                script = Behaviour(match=match, outcome=ordinary, times=None)
                self.behaviours.scripts[match] = script
        back = {"Location": f"/messages/{exchange.record.id}"}
        return web.Response(status=HTTPStatus.SEE_OTHER, headers=back)

    async def reply(self, request: web.Request) -> web.Response:
        """Send a message from the recipient of a request to the sender."""
        try:
            refuse_other_sites(request)
        except ControlError as refused:
            return self._page("missing", status=refused.status, what=str(refused))
        exchange = self._exchange(request)
        text = str((await request.post()).get("text", ""))[:MAX_REPLY_LENGTH]
        if exchange is None or not self._provider(exchange).takes_replies or not text.strip():
            return self._not_found_page("There is nobody who could write this.")
        sender = exchange.record.recipients[_recipient(request, exchange)]
        inbound = InboundMessage(sender=sender, text=text)
        self.webhook_senders[exchange.record.provider].schedule(
            self._provider(exchange).make_inbound_event(inbound),
            request_id=exchange.record.id,
            now=datetime.now(UTC),
        )
        back = {"Location": f"/messages/{exchange.record.id}"}
        return web.Response(status=HTTPStatus.SEE_OTHER, headers=back)

    async def mail(self, request: web.Request) -> web.Response:
        """Return the HTML of a mail, which the message page shows in a frame."""
        exchange = self._exchange(request)
        if exchange is None or not exchange.record.accepted:
            return self._not_found_page("There is no such mail.")
        to = _recipient(request, exchange)
        mail = self._provider(exchange).display(exchange.record, to=to)
        images = "data: http: https:" if "images" in request.query else "data:"
        html = mail.html
        if not _HAS_DIRECTION.search(html):
            # A mail program finds the direction of a text by itself; a frame needs to be told.
            html = f'<div dir="auto">{html}</div>'
        return _response(html, kind="text/html", policy=MAIL_POLICY.format(images=images))

    async def recipients(self, _request: web.Request) -> web.Response:
        """List the magic recipients of all providers."""
        tables = [
            {
                "provider": provider.title,
                "addressing": provider.addressing,
                "rows": [
                    {"names": provider.recipient_patterns(row), "description": row.description}
                    for row in provider.outcomes.table
                ],
            }
            for provider in self.providers.values()
        ]
        return self._page("recipients", tables=tables)

    async def static(self, request: web.Request) -> web.Response:
        """Return the style sheet or the script."""
        name = request.match_info["name"]
        if name not in STATIC:
            return self._not_found_page("There is no such file.")
        text = (FOLDER / "static" / name).read_text()
        return _response(text, kind=STATIC[name], policy=PAGE_POLICY)

    async def not_found(self, request: web.Request) -> web.Response:
        """Answer 404 to any other path."""
        return self._not_found_page(f"There is nothing at {request.path}.")

    def _page(
        self, name: str, *, etag: str = "", status: HTTPStatus = HTTPStatus.OK, **values: Any
    ) -> web.Response:
        counts = self.recent_requests.counts
        html = self.templates.get_template(name).render(
            counts={
                "requests": counts.requests,
                "accepted": counts.accepted,
                "refused": counts.requests - counts.accepted,
                "waiting": counts.webhooks.waiting,
            },
            trouble=self.recent_requests.webhook_error,
            page=name,
            **values,
        )
        response = _response(html, kind="text/html", policy=PAGE_POLICY, status=status)
        if etag:
            response.headers["ETag"] = etag
        return response

    def _not_found_page(self, reason: str) -> web.Response:
        return self._page("missing", status=HTTPStatus.NOT_FOUND, what=reason)

    def _copies(self, exchange: Exchange) -> Sequence[int]:
        return self.recent_requests.copies(exchange.record, self._provider(exchange))

    def _has_chosen_outcome(self, exchange: Exchange) -> bool:
        record, outcomes = exchange.record, self._provider(exchange).outcomes
        return record.is_message and outcomes.find(record.outcome) is not None

    def _is_let_through(self, exchange: Exchange) -> bool:
        ordinary = self._provider(exchange).outcomes.default.name
        scripts = [*map(self.behaviours.scripts.get, map(canonical, exchange.record.recipients))]
        return bool(scripts) and all(script and script.outcome == ordinary for script in scripts)

    def _exchange(self, request: web.Request) -> Exchange | None:
        return self.recent_requests.get(int(request.match_info["id"]))

    def _provider(self, exchange: Exchange) -> Provider:
        return self.providers[exchange.record.provider]


def _choice(request: web.Request, name: str, choices: Sequence[str]) -> str:
    chosen = request.query.get(name, "")
    return chosen if chosen in choices else choices[0]


def _recipient(request: web.Request, exchange: Exchange) -> int:
    number = _number(request.query.get("to", "")) or 0
    return number if number < len(exchange.record.recipients) else 0


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _response(
    text: str, *, kind: str, policy: str, status: HTTPStatus = HTTPStatus.OK
) -> web.Response:
    return web.Response(
        status=status,
        text=text,
        content_type=kind,
        headers={
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
        },
    )
