"""Downloads of attachments: size, time, TLS, and public addresses only."""

import ipaddress
import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from domain.errors import FailureCode, PermanentError, ProviderError
from notifyproject.platform import egress
from notifyproject.platform.egress import addresses_of, is_public
from providers.mail import DownloadError
from tests.support.fakes import socket_server
from tests.support.fakes.file_server import HOST, Files, certificate, files_at, get, read_head
from tests.support.tables import each_case
from tests.support.waiting import ending, lag

Serve = Callable[[socket_server.Handler], AbstractContextManager[socket_server.SocketServer]]
SHORT = 0.4


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def serve(file: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Serve files for any host name."""
    return lambda handler: files_at(handler, file, monkeypatch)


def failure(serve: Serve, handler: socket_server.Handler, **options: Any) -> ProviderError:
    with serve(handler), pytest.raises(ProviderError) as error:
        get(**options)
    return error.value


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UNTIL_THE_END = b"HTTP/1.1 200 OK\r\n\r\n"


@each_case(
    "parts",
    [
        [socket_server.response(200, b"a file")],
        [CHUNKED, b"2\r\na \r\n", b"4\r\nfile\r\n0\r\n\r\n"],
        [UNTIL_THE_END, b"a ", b"file"],
        [b"HTTP/1.1 100 Continue\r\n\r\n", socket_server.response(200, b"a file")],
    ],
)
def test_file_is_fetched_completely(serve: Serve, parts: list[bytes]) -> None:
    with serve(Files(*parts)):
        assert get() == b"a file"


def test_request_contains_only_the_necessary(serve: Serve) -> None:
    files = Files(socket_server.response(200, b"a file"))
    with serve(files):
        get(f"https://{HOST}/a%20b/\u00e9?x=1&y=%2F#part")
    assert sorted(files.requests[0].decode().split("\r\n")) == [
        "",
        "",
        "Accept-Encoding: identity",
        "Accept: */*",
        "Connection: close",
        "GET /a%20b/%C3%A9?x=1&y=%2F HTTP/1.1",
        f"Host: {HOST}",
        "User-Agent: notifyproject",
    ]


def test_proxy_environment_is_ignored(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with serve(Files(socket_server.response(200, b"a file"))):
        assert get() == b"a file"


@each_case("status", [500, 502, 503, 599, 408, 425, 429])
def test_server_error_is_temporary(serve: Serve, status: int) -> None:
    error = failure(serve, Files(socket_server.response(status, b"x")))
    assert isinstance(error, DownloadError)
    assert not error.is_ambiguous
    assert str(status) in error.reason


@each_case("status", [400, 401, 403, 404, 410, 416, 204, 206, 203])
def test_missing_file_is_permanent(serve: Serve, status: int) -> None:
    error = failure(serve, Files(socket_server.response(status, b"x")))
    assert type(error) is PermanentError
    assert error.code is FailureCode.ATTACHMENT_UNAVAILABLE
    assert str(status) in error.reason


@each_case("status", [301, 302, 303, 307, 308])
def test_redirect_is_not_followed(serve: Serve, status: int) -> None:
    files = Files(socket_server.response(status, b"", "Location: https://169.254.169.254/latest"))
    assert type(failure(serve, files)) is PermanentError
    assert len(files.requests) == 1


@each_case("encoding", ["gzip", "br", "identity, gzip"])
def test_compressed_file_is_refused(serve: Serve, encoding: str) -> None:
    files = Files(socket_server.response(200, b"\x1f\x8b", f"Content-Encoding: {encoding}"))
    assert type(failure(serve, files)) is PermanentError


@each_case("parts", [[socket_server.response(200)], [CHUNKED, b"0\r\n\r\n"], [UNTIL_THE_END]])
def test_empty_file_is_refused(serve: Serve, parts: list[bytes]) -> None:
    error = failure(serve, Files(*parts))
    assert type(error) is PermanentError
    assert "empty" in error.reason


@each_case(
    "parts",
    [
        [socket_server.response(200, b"x" * 1_001)],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"],
        [CHUNKED, b"3e9\r\n" + b"x" * 1_001 + b"\r\n0\r\n\r\n"],
        [UNTIL_THE_END, b"x" * 1_001],
    ],
)
def test_file_above_the_limit_is_too_large(serve: Serve, parts: list[bytes]) -> None:
    error = failure(serve, Files(*parts))
    assert type(error) is PermanentError
    assert error.code is FailureCode.TOO_LARGE


def test_file_at_the_limit_is_fetched(serve: Serve) -> None:
    with serve(Files(socket_server.response(200, b"x" * 1_000))):
        assert len(get()) == 1_000


def test_endless_file_is_cut_off(serve: Serve) -> None:
    written = 0

    def endless(connection: socket.socket) -> None:
        nonlocal written
        read_head(connection)
        connection.sendall(UNTIL_THE_END)
        while True:
            connection.sendall(b"x" * 65536)
            written += 65536

    assert failure(serve, endless).code is FailureCode.TOO_LARGE
    assert written < 8 * 1024 * 1024


@each_case(
    "parts",
    [
        [],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"],
        [CHUNKED, b"a\r\nhalf"],
        [CHUNKED, b"4\r\nhalf\r\n"],
        [CHUNKED, b"what?\r\n"],
        [b"what?\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n"],
        [b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n"],
    ],
)
def test_incomplete_answer_is_temporary(serve: Serve, parts: list[bytes]) -> None:
    error = failure(serve, Files(*parts))
    assert isinstance(error, DownloadError)
    assert not error.is_ambiguous


def test_cut_connection_is_not_the_end_of_the_file(serve: Serve) -> None:
    """Only TLS's close_notify proves that the file is complete."""

    def cut(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(UNTIL_THE_END + b"half")
        connection.shutdown(socket.SHUT_RDWR)
        raise ConnectionAbortedError

    assert isinstance(failure(serve, cut), DownloadError)


@each_case("first", [b"", b"HTTP/1.1 200 OK\r\nContent-Le", UNTIL_THE_END + b"ha"])
def test_silent_server_times_out(serve: Serve, first: bytes) -> None:
    def stall(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(first)
        connection.recv(1)

    with ending():
        error = failure(serve, stall, seconds=SHORT)
    assert isinstance(error, DownloadError)
    assert "in time" in error.reason


def test_slow_server_times_out(serve: Serve) -> None:
    def drip(connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(UNTIL_THE_END)
        while True:
            connection.sendall(b"x")
            lag(0.05)

    with ending():
        assert isinstance(failure(serve, drip, seconds=SHORT), DownloadError)


def test_refused_connection_is_temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(egress, "addresses_of", lambda host, port: [("127.0.0.1", 1)] * 2)
    with pytest.raises(DownloadError):
        get()


def test_endless_handshake_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket_server.serving(
        lambda connection: connection.recv(9_999) and connection.recv(1)
    ) as server:
        here = [("127.0.0.1", server.port)]
        monkeypatch.setattr(egress, "addresses_of", lambda host, port: here)
        with pytest.raises(DownloadError), ending():
            get(seconds=SHORT)


def test_untrusted_certificate_gets_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(socket_server.response(200, b"a file"))
    other = certificate(tmp_path, host="other.example.com")
    with files_at(files, other, monkeypatch), pytest.raises(DownloadError, match="certificate"):
        get()
    assert files.requests == []


def resolving_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Resolve every name to these addresses. Return the list of looked-up names."""
    resolved: list[str] = []

    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        resolved.append(host)
        if not addresses:
            raise socket.gaierror(-2, "Name or service not known")
        return [(0, 1, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return resolved


@each_case("hidden", ["127.0.0.1", "10.1.2.3", "169.254.169.254", "fd00:ec2::254"])
@each_case("others", [[], ["93.184.215.14"]])
def test_internal_address_is_not_connected_to(
    hidden: str, others: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    resolving_to(monkeypatch, *others, hidden)
    monkeypatch.setattr(socket, "create_connection", pytest.fail)
    with pytest.raises(PermanentError) as error:
        get()
    assert error.value.code is FailureCode.ATTACHMENT_UNAVAILABLE


def test_checked_address_is_the_one_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second lookup might return another address."""
    resolved = resolving_to(monkeypatch, "93.184.215.14", "2606:2800:21f::1", "93.184.215.14")
    tried: list[Any] = []

    def refused(address: Any, **_: Any) -> None:
        tried.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refused)
    with pytest.raises(DownloadError):
        get()
    assert tried == [("93.184.215.14", 443), ("2606:2800:21f::1", 443)]
    assert resolved == [HOST]


def test_unresolved_name_is_temporary(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving_to(monkeypatch)
    with pytest.raises(DownloadError, match="no address"):
        get()
    with pytest.raises(OSError, match="not known"):
        addresses_of(HOST, 443)


@each_case(
    "url",
    [
        "http://files.example.com/x",
        "https://files.example.com:8443/x",
        "https://a@b.com/x",
        "https:///x",
        "ftp://files.example.com/x",
        "https://[::1",
        "files.example.com/x",
        "https://files..example.com/x",
        f"https://{'x' * 70}.example.com/x",
    ],
)
def test_invalid_url_is_not_looked_up(url: str) -> None:
    with pytest.raises(PermanentError):
        get(url)


@each_case(
    "address",
    [
        "0.0.0.0",
        "10.0.0.1",
        "100.64.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "192.0.2.1",
        "192.168.1.1",
        "198.18.0.1",
        "224.0.0.1",
        "233.252.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "::10.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::1",
        "100::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fec0::1",
        "ff02::1",
        "ff0e::1",
        "2001:db8::1",
        "2001::a00:1",
        "2002:a00:1::1",
        "2002:7f00:1::",
        "5f00::1",
    ],
)
def test_address_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@each_case(
    "address", ["1.1.1.1", "93.184.215.14", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"]
)
def test_address_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))
