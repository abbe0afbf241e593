"""Raw HTTP requests and responses."""

import json
import socket
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes

    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        problem = json.loads(self.body)
        assert problem["status"] == self.status
        assert problem["request_id"] == self.headers["x-request-id"]
        assert {"type", "title", "detail", "instance", "code", "errors"} <= problem.keys()
        return problem


def get(path: str = "/healthz", *headers: str, method: str = "GET") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]
    return "\r\n".join(lines).encode()


def post(*headers: str, body: bytes = b"", path: str = "/api/v1/notifications") -> bytes:
    """Return a request with a body. The headers must give its length."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        *headers,
        "",
        "",
    ]
    return "\r\n".join(lines).encode() + body


class Answers:
    """Reads the answers of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = b""

    def next(self, *, has_body: bool = True) -> Answered:
        while b"\r\n\r\n" not in self._received:
            self._receive()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        split = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in split}
        length = int(headers.get("content-length", "0")) if has_body else 0
        while len(self._received) < length:
            self._receive()
        body, self._received = self._received[:length], self._received[length:]
        return Answered(status=int(first.split()[1]), headers=headers, body=body)

    def is_over(self) -> bool:
        try:
            return not self._received and self._connection.recv(1) == b""
        except ConnectionResetError:
            return True

    def _receive(self) -> None:
        data = self._connection.recv(65_536)
        assert data, f"the connection ended after {self._received[:500]!r}"
        self._received += data
