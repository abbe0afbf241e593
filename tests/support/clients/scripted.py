"""A server that plays the exchange of a case in ``clients/conformance``."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Received:
    """A request."""

    method: str
    path: str
    query: Sequence[tuple[str, str]]
    headers: Message
    body: bytes


class ScriptedServer(ThreadingHTTPServer):
    """Answers each request with the next answer of an exchange, and records it."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, exchange: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = iter(exchange)
        self.received: list[Received] = []
        self.is_holding = threading.Event()
        self.is_over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def playing(exchange: Sequence[Mapping[str, Any]]) -> Iterator[ScriptedServer]:
    """Serve an exchange."""
    with ScriptedServer(exchange) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.is_over.set()
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ScriptedServer

    def parse_request(self) -> bool:
        """Answer every method by the same method."""
        is_valid = super().parse_request()
        if is_valid:
            setattr(self, f"do_{self.command}", self._play)
        return is_valid

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing."""

    def _play(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        query = parse_qsl(parts.query, keep_blank_values=True)
        received = Received(self.command, parts.path, query, self.headers, body)
        self.server.received.append(received)
        step = next(self.server.answers, {"answer": {"status": 418, "text": "Nothing is left."}})
        answer = step["answer"]
        if "before" not in (answer.get("cut"), answer.get("hold")):
            self._write(answer)
        if "hold" in answer:
            self.server.is_holding.set()
            self.server.is_over.wait()
        if {"cut", "hold"} & answer.keys() or step.get("then") == "close":
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(SHUT_RDWR)

    def _write(self, answer: Mapping[str, Any]) -> None:
        raw = (answer["text"] if "text" in answer else json.dumps(answer["body"])).encode()
        self.send_response(answer["status"])
        headers = {"Content-Type": "application/json", **answer.get("headers", {})}
        if answer["status"] != 204:
            headers["Content-Length"] = str(len(raw))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        is_whole = "cut" not in answer and "hold" not in answer
        with suppress(ConnectionError):
            self.wfile.write(raw if is_whole else raw[: len(raw) // 2])
