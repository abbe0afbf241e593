"""Callback endpoints: URLs, requests, and responses."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from notifyproject.platform import egress, endpoints
from notifyproject.platform.endpoints import Endpoint, EndpointResponse, InvalidUrlError
from tests.support.fakes import socket_server
from tests.support.fakes.file_server import certificate, encrypted
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, ending, lag

SHORT = 0.3


def here(port: int) -> Endpoint:
    return Endpoint(host="127.0.0.1", port=port, path="/hooks", is_plain=True)


def answer_to(handler: socket_server.Handler, *, timeout: float = LIMIT) -> EndpointResponse:
    with socket_server.serving(handler) as server:
        return endpoints.post(here(server.port), body=b"{}", headers={}, timeout=timeout)


@each_case("status", [200, 204, 299])
def test_status_from_200_to_299_is_success(status: int) -> None:
    answer = answer_to(socket_server.answering(socket_server.response(status)))
    assert (answer.status, answer.error) == (status, None)


@each_case("status", [301, 302, 307, 308])
def test_redirect_is_not_followed(status: int) -> None:
    inside = "Location: http://169.254.169.254/latest/meta-data/"
    answer = answer_to(socket_server.answering(socket_server.response(status, b"", inside)))
    assert answer.error == f"HTTP {status}: redirects aren't followed."


def test_request_has_only_the_signed_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    handler = socket_server.KeepAlive(socket_server.response(204))
    with socket_server.serving(handler) as server:
        endpoints.post(here(server.port), body=b'{"a": 1}', headers={"webhook-id": "evt_1"})
        port = server.port
    head, _, body = handler.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"a": 1}'
    assert sorted(head.decode().split("\r\n")) == [
        "Accept-Encoding: identity",
        "Accept: */*",
        "Connection: close",
        "Content-Length: 8",
        "Content-Type: application/json",
        f"Host: 127.0.0.1:{port}",
        "POST /hooks HTTP/1.1",
        "User-Agent: notifyproject-callbacks",
        "webhook-id: evt_1",
    ]


def test_response_is_read_up_to_64_kb() -> None:
    read: list[int] = []

    def endless(connection: socket.socket) -> None:
        socket_server.read_request(connection)
        connection.sendall(b"HTTP/1.1 500 No\r\n\r\n")
        connection.sendall(b"line\nof\x00text " * 100)
        try:
            while True:
                read.append(connection.send(b"x" * 65536))
        except OSError:
            return

    answer = answer_to(endless)
    assert (answer.status, answer.error) == (500, "HTTP 500.")
    assert answer.excerpt is not None
    assert answer.excerpt.startswith("line of text line")
    assert len(answer.excerpt) <= 500


def test_response_cut_after_its_head_counts() -> None:
    part = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nthe beginning"
    answer = answer_to(socket_server.answering(part))
    assert (answer.status, answer.error, answer.excerpt) == (200, None, "the beginning")


def silent(connection: socket.socket) -> None:
    socket_server.read_request(connection)
    connection.recv(1)


def dripping(connection: socket.socket) -> None:
    socket_server.read_request(connection)
    try:
        for byte in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 1_000:
            connection.sendall(bytes([byte]))
            lag(0.05)
    except OSError:
        return


@each_case(
    "handler, error",
    [
        (silent, "Timed out."),
        (dripping, "Timed out."),
        (socket_server.resetting, "Connection closed, or invalid response."),
        (
            socket_server.answering(b"SSH-2.0-OpenSSH_9.6\r\n"),
            "Connection closed, or invalid response.",
        ),
        (socket_server.answering(b""), "Connection closed, or invalid response."),
    ],
)
def test_invalid_response_is_an_error(handler: Callable[[socket.socket], None], error: str) -> None:
    with ending():
        answer = answer_to(handler, timeout=SHORT if error == "Timed out." else LIMIT)
    assert (answer.status, answer.error) == (None, error)


def test_closed_port_is_refused() -> None:
    answer = endpoints.post(here(1), body=b"{}", headers={})
    assert answer.error == "Connection refused."


def resolving_to(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Answer each lookup with the next of ``answers``; return the list of looked-up names."""
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        found = answers[min(len(asked), len(answers)) - 1]
        return [(0, 1, 6, "", (address, port)) for address in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


PUBLIC = Endpoint(host="shop.example.com", port=443, path="/hooks")


@each_case("inside", ["127.0.0.1", "169.254.169.254", "fd00:ec2::254"])
def test_name_with_a_private_address_is_not_connected(
    inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving_to(monkeypatch, ["93.184.215.14", inside])
    monkeypatch.setattr(socket, "create_connection", pytest.fail)
    answer = endpoints.post(PUBLIC, body=b"{}", headers={})
    assert answer.error == "The host is not on the public Internet."


def test_resolved_address_is_checked_and_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that resolves to a public, then to a private address (DNS rebinding)."""
    asked = resolving_to(monkeypatch, ["93.184.215.14"], ["127.0.0.1"])
    tried: list[Any] = []

    def refused(address: Any, **_: Any) -> None:
        tried.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refused)
    assert endpoints.post(PUBLIC, body=b"{}", headers={}).error == "Connection refused."
    assert endpoints.post(PUBLIC, body=b"{}", headers={}).error == (
        "The host is not on the public Internet."
    )
    assert tried == [("93.184.215.14", 443)]
    assert asked == ["shop.example.com"] * 2


def test_loopback_url_with_a_public_address_is_not_connected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving_to(monkeypatch, ["93.184.215.14"])
    monkeypatch.setattr(socket, "create_connection", pytest.fail)
    localhost = Endpoint(host="localhost", port=80, path="/", is_plain=True)
    answer = endpoints.post(localhost, body=b"{}", headers={})
    assert answer.error == "The host is not on the public Internet."


def test_endpoint_with_an_invalid_certificate_gets_nothing(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = socket_server.KeepAlive(socket_server.response(204))
    other = certificate(tmp_path, host="other.example.com")
    with socket_server.serving(encrypted(handler, other)) as server:
        there = [("127.0.0.1", server.port)]
        monkeypatch.setattr(egress, "addresses_of", lambda host, port: there)
        answer = endpoints.post(PUBLIC, body=b"{}", headers={})
    assert answer.error == "Invalid TLS certificate."
    assert handler.requests == []


@each_case(
    "url, target",
    [
        (
            "https://shop.example.com/hooks?app=1",
            Endpoint(host="shop.example.com", port=443, path="/hooks?app=1"),
        ),
        ("https://shop.example.com", Endpoint(host="shop.example.com", port=443, path="/")),
        (
            "https://SHOP.example.com:8443/é",
            Endpoint(host="shop.example.com", port=8443, path="/%C3%A9"),
        ),
        ("https://shop.example.com:3000/", Endpoint(host="shop.example.com", port=3000, path="/")),
        ("https://1.1.1.1/", Endpoint(host="1.1.1.1", port=443, path="/")),
        ("https://[2606:4700::1111]/", Endpoint(host="2606:4700::1111", port=443, path="/")),
    ],
)
def test_valid_url_is_parsed(url: str, target: Endpoint) -> None:
    assert endpoints.parse_url(url, allow_loopback=False) == target


def test_host_header_has_a_non_default_port() -> None:
    for url, authority in (
        ("https://shop.example.com/x", "shop.example.com"),
        ("https://shop.example.com:8443/x", "shop.example.com:8443"),
        ("https://[2606:4700::1111]:8443/x", "[2606:4700::1111]:8443"),
    ):
        assert endpoints.parse_url(url, allow_loopback=False).authority == authority


@each_case(
    "url, code",
    [
        ("", "invalid_url"),
        ("shop.example.com/x", "invalid_url"),
        ("https://", "invalid_url"),
        ("https://[::1", "invalid_url"),
        ("https://shop.example.com:99999/", "invalid_url"),
        ("https://shop.example.com/a b\n", "invalid_url"),
        ("https://ada:secret@shop.example.com/", "invalid_url"),
        ("https://shop.example.com@10.0.0.1/", "invalid_url"),
        ("https://shop.example.com/#part", "invalid_url"),
        ("http://shop.example.com/", "not_https"),
        ("ftp://shop.example.com/", "not_https"),
        ("file://shop.example.com/x", "not_https"),
        ("http://127.0.0.1/", "not_https"),
        *((f"https://shop.example.com:{port}/", "port_not_allowed") for port in (22, 25, 80, 444)),
        ("https://shop.example.com:1024/", "port_not_allowed"),
        ("https://sh_op.example.com/", "invalid_host"),
        ("https://straße.de/", "invalid_host"),
        ("https://2130706433/", "invalid_host"),
        ("https://0x7f.1/", "invalid_host"),
        ("https://10.0.0.0x1/", "invalid_host"),
        ("https://shop..example.com/", "invalid_host"),
        (f"https://{'x' * 64}.com/", "invalid_host"),
        ("https://localhost/", "not_public"),
        ("https://intranet/", "not_public"),
        ("https://metadata.google.internal/", "not_public"),
        ("https://127.0.0.1/", "not_public"),
        ("https://[::1]/", "not_public"),
        ("https://169.254.169.254/", "not_public"),
        ("https://10.1.2.3:8443/", "not_public"),
        ("https://100.64.0.1/", "not_public"),
        ("https://[::ffff:10.0.0.1]/", "not_public"),
        *((f"https://{host}/", "not_public") for host in ("192.168.0.1", "172.16.0.1", "0.0.0.0")),
        *((f"https://{host}/", "not_public") for host in ("[fe80::1]", "[fd00::1]", "a.local")),
        *((f"https://{host}/", "invalid_host") for host in ("0x7f000001", "017700000001", "127.1")),
        *((f"https://{host}/", "invalid_host") for host in ("0177.0.0.1", "a_b.com", "x.local.")),
        ("https://127\u30020\u30020\u30021/", "invalid_host"),
        *((url, "invalid_url") for url in (" ", "javascript:alert(1)", "data:text/html,x")),
        ("mailto:a@b.example", "invalid_url"),
        ("https://x.com/\r\nHost: x", "invalid_url"),
        ("https://[64:ff9b::a00:1]/", "not_public"),
        ("https://[fd00:ec2::254]/", "not_public"),
    ],
)
def test_invalid_url_is_refused(url: str, code: str) -> None:
    with pytest.raises(InvalidUrlError) as problem:
        endpoints.parse_url(url, allow_loopback=False)
    assert problem.value.code == code
    assert not url.strip() or url not in str(problem.value)


@each_case("url", ["http://127.0.0.1:9000/x", "http://[::1]/", "http://localhost/x"])
def test_loopback_url_is_allowed_in_the_local_stack(url: str) -> None:
    assert endpoints.parse_url(url, allow_loopback=True).is_plain


@each_case(
    "url", ["http://10.0.0.1/", "http://shop.example.com/", "https://127.0.0.1/", "http://0.0.0.0/"]
)
def test_other_plain_url_is_refused_in_the_local_stack(url: str) -> None:
    with pytest.raises(InvalidUrlError):
        endpoints.parse_url(url, allow_loopback=True)
