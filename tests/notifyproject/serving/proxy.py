"""deploy/caddy/Caddyfile in Debian's Caddy, before the local stack's web and stream: make proxy.

The file's name keeps these tests out of ``make test``, because Caddy isn't a prerequisite.
"""

import json
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path

import pytest

from access.clients import inbox_tokens
from domain.time import utc_now
from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack.servers import HOST, free_port
from notifyproject.supervision.forking import die_with_parent
from tests.support.clients.api import App
from tests.support.served_program import Serve, Served
from tests.support.waiting import LIMIT, lag, ticks, until

pytestmark = pytest.mark.usefixtures("db")
SLOW = 500
FAILURES = 3
STREAM_SECONDS = 6


class Client(HTTPSConnection):
    """A client that connects from an address of this machine."""

    def __init__(self, proxy: "Proxy", *, address: str = HOST) -> None:
        super().__init__("localhost", proxy.port, timeout=LIMIT, context=proxy.tls)
        self._address, self._tls = address, proxy.tls

    def connect(self) -> None:
        plain = socket.create_connection((HOST, self.port), LIMIT, (self._address, 0))
        self.sock = self._tls.wrap_socket(plain, server_hostname="localhost")


@dataclass(frozen=True, kw_only=True)
class Proxy:
    port: int
    tls: ssl.SSLContext
    web: Served
    log: Path

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, *, address: str = HOST
    ) -> tuple[HTTPResponse, bytes]:
        client = Client(self, address=address)
        client.request("GET", path, headers=dict(headers or {}))
        response = client.getresponse()
        body = response.read()
        client.close()
        return response, body

    def slow(self, head: bytes) -> socket.socket:
        client = Client(self)
        client.connect()
        client.sock.sendall(head)
        return client.sock


@pytest.fixture(scope="module")
def proxy(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    web = serve("web", TRUSTED_PROXIES="1", RATE_LIMITS=f"failed:{FAILURES}")
    stream = serve("stream", TRUSTED_PROXIES="1")
    folder, port = tmp_path_factory.mktemp("caddy"), free_port()
    file = folder / "Caddyfile"
    text = (BASE_DIR / "deploy" / "caddy" / "Caddyfile").read_text()
    replaced = {
        "admin off": "admin off\n\tskip_install_trust\n\tauto_https disable_redirects",
        ":8081": f":{free_port()}",
    }
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    log = folder / "log"
    caddy = shutil.which("caddy")
    assert caddy, "apt install caddy"
    with ExitStack() as stack:
        process = subprocess.Popen(
            [caddy, "run", "--config", str(file), "--adapter", "caddyfile"],
            env={
                **os.environ,
                "HOME": str(folder),
                "XDG_DATA_HOME": str(folder),
                "XDG_CONFIG_HOME": str(folder),
                "PUBLIC_URL": f"https://localhost:{port}",
                "WEB_UPSTREAM": f"{HOST}:{web.port}",
                "STREAM_UPSTREAM": f"{HOST}:{stream.port}",
            },
            stdout=stack.enter_context(log.open("wb")),
            stderr=subprocess.STDOUT,
            preexec_fn=die_with_parent,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        root = folder / "caddy" / "pki" / "authorities" / "local" / "root.crt"
        until(lambda: root.exists() and root.stat().st_size > 0, otherwise=log.read_text)
        tls = ssl.create_default_context(cafile=str(root))
        served = Proxy(port=port, tls=tls, web=web, log=log)

        def answers() -> bool:
            try:
                return served.get("/healthz")[0].status == 200
            except OSError:
                return False

        until(answers, otherwise=log.read_text)
        yield served


def web_connections(port: int) -> int:
    """Return how many connections the web has."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def test_certificate_of_the_local_authority_is_accepted(proxy: Proxy) -> None:
    response, body = proxy.get("/healthz")
    assert (response.status, json.loads(body)) == (200, {"status": "ok"})


def test_forged_forwarding_headers_are_replaced(proxy: Proxy) -> None:
    def status(address: str, forged: str) -> int:
        headers = {"X-Forwarded-For": forged, "X-Forwarded-Proto": "gopher"}
        return proxy.get("/api/v1/notifications", headers, address=address)[0].status

    # Each failure claims another address, and counts for the true one.
    found = [status("127.0.0.2", f"198.51.100.{number}") for number in range(FAILURES + 2)]
    assert found == [401] * FAILURES + [429] * 2
    assert status("127.0.0.3", "127.0.0.2") == 401


def test_slow_clients_do_not_delay_others(proxy: Proxy, app: App) -> None:
    post = b"POST /api/v1/notifications HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n"
    heads = (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", post + b"\r\n{")
    with ExitStack() as stack:
        started = ticks()
        for number in range(SLOW):
            stack.enter_context(proxy.slow(heads[number % 2]))
        opened = ticks() - started
        times = []
        for _ in range(100):
            began = ticks()
            assert proxy.get("/healthz")[0].status == 200
            times.append(1_000 * (ticks() - began))
        at_web = web_connections(proxy.web.port)
        # The proxy waits for heads. The web's poller waits for bodies, without a thread.
        assert at_web < SLOW // 2 + 20
    times.sort()
    print(
        f"\n{SLOW} slow connections, opened in {opened:.1f} s; GET /healthz with TLS handshake: "
        f"median {times[50]:.0f} ms, p99 {times[98]:.0f} ms, worst {times[99]:.0f} ms; "
        f"connections at the web: {at_web}"
    )


def test_large_body_is_refused_by_a_problem(proxy: Proxy) -> None:
    client = Client(proxy)
    client.request("POST", "/api/v1/notifications", body=b"x" * (5 * 1024 * 1024 + 1))
    response = client.getresponse()
    assert response.status == 413
    assert json.loads(response.read())["code"] == "too_large"


def test_stream_arrives_event_by_event(proxy: Proxy, app: App) -> None:
    token = inbox_tokens.issue(client_id=app.id, user_id="ada", now=utc_now()).text
    client = Client(proxy)
    headers = {"Authorization": f"Bearer {token}"}
    client.request("GET", "/api/v1/inbox/stream", headers=headers)
    response = client.getresponse()
    assert response.status == 200
    delays = []
    began = ticks()
    while ticks() - began < STREAM_SECONDS:
        sent = ticks()
        accepted = app.notify(user_id="ada", channels=["in_app"], recipient=...).json()
        while response.readline().strip() != f"id: {accepted['id']}".encode():
            pass
        delays.append(1_000 * (ticks() - sent))
        while ticks() - sent < 1:
            lag(0.05)
    client.close()
    print(f"\nstream events after POST: {[round(delay) for delay in delays]} ms")


def test_web_that_is_down_gives_a_problem_or_a_page(proxy: Proxy) -> None:
    os.killpg(proxy.web.process.pid, 9)
    proxy.web.process.wait()
    began = ticks()
    response, body = proxy.get("/api/v1/notifications", {"Accept": "application/json"})
    print(f"\nweb down: {response.status} after {ticks() - began:.1f} s")
    assert (response.status, response.headers["Retry-After"]) == (503, "5")
    assert response.headers["Content-Type"] == "application/problem+json"
    assert json.loads(body)["code"] == "service_unavailable"
    response, body = proxy.get("/admin/", {"Accept": "text/html,*/*"})
    assert response.status == 503
    assert b"<h1>The service is unavailable</h1>" in body
