"""The outbox: a page for whoever wonders what their mail looks like and what became of it.

What is in a mail is hostile: everything is escaped, and its HTML is shown in a frame that may
neither run scripts nor load anything.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import web
from liquid import CachingFileSystemLoader, Environment

from . import pages
from .log import Record
from .memory import Exchange, Memory
from .providers.base import Provider

HERE = Path(__file__).parent
PAGE_SIZE = 50
LONGEST_QUERY = 200
SHOWN = ("all", "accepted", "refused")
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; frame-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
MAIL_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; font-src data:; img-src {images}; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'self'"
)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)
STATIC = {"outbox.css": "text/css", "outbox.js": "text/javascript"}


def _templates() -> Environment:
    return Environment(
        autoescape=True, loader=CachingFileSystemLoader(HERE / "templates", ext=".liquid")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outbox:
    """The handlers of the pages."""

    memory: Memory
    providers: Mapping[str, Provider]
    templates: Environment = field(default_factory=_templates)
    run: str = field(default_factory=lambda: secrets.token_hex(4))
    """Tells this run from an earlier one, whose pages a browser may remember."""

    def routes(self) -> list[web.RouteDef]:
        """Return the routes of the pages and of what they are made of."""
        return [
            web.get("/", self.list),
            web.get("/recipients", self.recipients),
            web.get("/messages/{id:[0-9]{1,18}}", self.message),
            web.get("/messages/{id:[0-9]{1,18}}/html", self.mail),
            web.get("/static/{name}", self.static),
            web.get("/{rest:.*}", self.missing),
        ]

    async def list(self, request: web.Request) -> web.Response:
        """The latest requests, newest first."""
        words = request.query.get("q", "")[:LONGEST_QUERY]
        shown = request.query.get("show", SHOWN[0])
        before = _number(request.query.get("before", ""))
        etag = f'"{self.run}-{self.memory.revision}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED)

        def wanted(record: Record) -> bool:
            return (shown not in SHOWN[1:] or record.accepted == (shown == "accepted")) and (
                not words or pages.matches(record, words)
            )

        found = self.memory.find(wanted, limit=PAGE_SIZE + 1, before=before)
        listed = found[:PAGE_SIZE]
        return self._page(
            "list",
            etag=etag,
            rows=[pages.row(one, self._provider(one)) for one in listed],
            words=words,
            choices=SHOWN,
            shown=shown if shown in SHOWN else SHOWN[0],
            before=before,
            older=listed[-1].record.id if len(found) > PAGE_SIZE else None,
        )

    async def message(self, request: web.Request) -> web.Response:
        """One request: its content, how it was answered, and its events."""
        exchange = self._exchange(request)
        if exchange is None:
            return self._missing("This message is not in memory any more, or never was.")
        etag = f'"{self.run}-{exchange.record.id}-{exchange.version}"'
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=HTTPStatus.NOT_MODIFIED)
        message = pages.message(exchange, self._provider(exchange))
        views = [
            *(("html",) if message["has_html"] else ()),
            *(("text",) if exchange.record.accepted else ()),
            "request",
        ]
        view = request.query.get("view", "")
        view = view if view in views else views[0]
        raw, is_whole = pages.raw(exchange.record) if view == "request" else ("", True)
        return self._page(
            "message",
            etag=etag,
            message=message,
            views=views,
            view=view,
            images="images" in request.query,
            raw=raw,
            is_whole=is_whole,
        )

    async def mail(self, request: web.Request) -> web.Response:
        """The HTML of a mail as it is, for the frame."""
        exchange = self._exchange(request)
        if exchange is None or not exchange.record.accepted:
            return self._missing("There is no such mail.")
        images = "data: http: https:" if "images" in request.query else "data:"
        return _response(
            self._provider(exchange).show(exchange.record).html,
            kind="text/html",
            policy=MAIL_POLICY.format(images=images),
        )

    async def recipients(self, _request: web.Request) -> web.Response:
        """The magic recipients, from the providers' own tables."""
        tables = [
            {
                "provider": name,
                "rows": [
                    {"names": [row.name, *row.aliases], "says": row.says}
                    for row in provider.outcomes.table
                ],
            }
            for name, provider in self.providers.items()
        ]
        return self._page("recipients", tables=tables)

    async def static(self, request: web.Request) -> web.Response:
        """The style sheet and the script."""
        name = request.match_info["name"]
        if name not in STATIC:
            return self._missing("There is no such file.")
        text = (HERE / "static" / name).read_text()
        return _response(text, kind=STATIC[name], policy=PAGE_POLICY)

    async def missing(self, request: web.Request) -> web.Response:
        """Any other path."""
        return self._missing(f"There is nothing at {request.path}.")

    def _page(
        self, name: str, *, etag: str = "", status: HTTPStatus = HTTPStatus.OK, **values: Any
    ) -> web.Response:
        html = self.templates.get_template(name).render(
            counts=self._counts(), trouble=self.memory.webhook_trouble, page=name, **values
        )
        response = _response(html, kind="text/html", policy=PAGE_POLICY, status=status)
        if etag:
            response.headers["ETag"] = etag
        return response

    def _missing(self, what: str) -> web.Response:
        return self._page("missing", status=HTTPStatus.NOT_FOUND, what=what)

    def _counts(self) -> dict[str, int]:
        counts = self.memory.counts
        return {
            "requests": counts.requests,
            "accepted": counts.accepted,
            "refused": counts.requests - counts.accepted,
            "waiting": counts.webhooks.waiting,
        }

    def _exchange(self, request: web.Request) -> Exchange | None:
        return self.memory.get(int(request.match_info["id"]))

    def _provider(self, exchange: Exchange) -> Provider:
        return self.providers[exchange.record.provider]


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
