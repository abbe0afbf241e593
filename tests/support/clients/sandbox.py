"""A client of the sandbox, and a receiver of its webhooks."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import urllib3

from bench.chaos import installation
from providers.contract import Receipt
from providers.sendgrid.provider import SendGrid
from sandbox.assembly import Sandbox
from sandbox.config import Timings
from tests.support.providers.sendgrid import account, sandbox_account
from tests.support.providers.webhook_requests import receipts_of
from tests.support.waiting import LIMIT, SILENT_FOR, until

QUICK = Timings(
    processed=0.01,
    delivered=0.05,
    late=0.3,
    slow=0.3,
    drip=0.003,
    rate_limit=5,
    short_lived=600.0,
    batch_window=0.03,
    retry_delay=0.05,
    retry_timeout=1.0,
)
SEPARATE_REPORTS = replace(QUICK, delivered=0.15)
"""Each report goes in a POST of its own, and may overtake another."""


@dataclass(frozen=True, kw_only=True)
class Post:
    headers: Mapping[str, str]
    raw: bytes
    path: str = "/"

    @property
    def events(self) -> list[dict[str, Any]]:
        return json.loads(self.raw)


@dataclass(kw_only=True)
class Receiver:
    """Receives webhooks."""

    url: str = ""
    posts: list[Post] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    """The statuses of the next answers. Further answers have 200."""
    answering: threading.Event = field(default_factory=threading.Event)
    """While cleared, webhooks are read but not answered."""
    handshakes: list[Mapping[str, str]] = field(default_factory=list)
    challenge: str | None = None
    """The answer to a handshake; None: the correct answer."""

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for post in self.posts for event in post.events]

    def kinds(self, reference: str) -> list[str]:
        return [event["event"] for event in self.events if event.get("reference") == reference]

    def wait_for(self, reference: str, *kinds: str) -> list[dict[str, Any]]:
        """Wait until the events of a message are exactly these, in this order."""
        until(lambda: len(self.kinds(reference)) >= len(kinds))
        assert self.kinds(reference) == list(kinds)
        return [event for event in self.events if event.get("reference") == reference]


@dataclass(frozen=True, kw_only=True)
class Box:
    """A client of a sandbox."""

    sandbox: Sandbox
    http: urllib3.PoolManager

    def send(
        self,
        body: Any,
        *,
        key: str | None = "SG.test",
        timeout: float = LIMIT,
        **headers: str | bytes,
    ) -> urllib3.BaseHTTPResponse:
        """POST a body to the sandbox's SendGrid."""
        return self.call(
            "POST", "/v3/mail/send", body, headers={**bearer(key), **headers}, timeout=timeout
        )

    def call(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        headers: Mapping[str, str | bytes],
        timeout: float,
    ) -> urllib3.BaseHTTPResponse:
        """Call a provider's API with JSON or bytes."""
        return self.http.request(
            method,
            self.sandbox.url + path,
            body=body if isinstance(body, bytes) else json.dumps(body).encode(),
            headers={"Content-Type": "application/json", **headers},
            redirect=False,
            timeout=timeout,
        )

    def get(self, path: str, **headers: str) -> urllib3.BaseHTTPResponse:
        return self.http.request("GET", self.sandbox.url + path, headers=headers)

    def control(self, method: str, path: str, body: Any = None) -> Any:
        """Call the control API. Return the JSON of a success."""
        answer = self.refused(method, path, body)
        assert answer.status < 300, answer.data
        return answer.json() if answer.data else None

    def refused(self, method: str, path: str, body: Any = None) -> urllib3.BaseHTTPResponse:
        return self.http.request(method, f"{self.sandbox.url}/_sandbox{path}", json=body)

    def requests(self, query: str = "") -> list[dict[str, Any]]:
        return self.control("GET", f"/requests{query}")["results"]

    def account(self) -> SendGrid:
        return account(**sandbox_account(self.sandbox))

    def receipts(self, post: Post) -> list[Receipt]:
        """Return the verified receipts of a webhook."""
        headers = {name.lower(): value for name, value in post.headers.items()}
        return receipts_of(self.account(), headers, post.raw)


RunSandbox = Callable[..., AbstractContextManager[Box]]


def bearer(key: str | None) -> dict[str, str]:
    return {} if key is None else {"Authorization": f"Bearer {key}"}


def mail(to: str = "ada@example.com", *, reference: str = "ref-1", **changes: Any) -> Any:
    return {
        "from": {"email": "shop@example.com", "name": "The Shop"},
        "subject": "Your order has shipped",
        "personalizations": [{"to": [{"email": to}], "custom_args": {"reference": reference}}],
        "content": [
            {"type": "text/plain", "value": "Hello Ada"},
            {"type": "text/html", "value": "<p>Hello Ada</p>"},
        ],
        **changes,
    }


@contextmanager
def receiving() -> Iterator[Receiver]:
    state = Receiver()
    state.answering.set()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = dict(parse_qsl(urlsplit(self.path).query))
            state.handshakes.append(query)
            answer = query["hub.challenge"] if state.challenge is None else state.challenge
            self.send_response(state.answers.pop(0) if state.answers else 200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer.encode())

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            state.answering.wait(SILENT_FOR)
            status = state.answers.pop(0) if state.answers else 200
            if status < 300:
                state.posts.append(
                    Post(headers=dict(self.headers.items()), raw=raw, path=self.path)
                )
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_port}/hook"
        thread = threading.Thread(target=server.serve_forever, args=(0.005,))
        thread.start()
        yield state
        state.answering.set()
        server.shutdown()
        thread.join()


def copies(taker: Sandbox) -> Counter[str]:
    """Return how often the sandbox accepted each notification."""
    return Counter(
        request.notification_id
        for request in installation.provider_requests(taker.data)
        if request.accepted
    )
