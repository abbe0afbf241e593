"""The end of a file: its length, its last chunk or TLS's own end; nothing else is one."""

import socket
from collections.abc import Callable, Iterator

import pytest

from notifications.channels.mail_downloads import DownloadFailed
from notifications.errors import PermanentError, ProviderError

from . import wire
from .file_server import certificate, files_at, get, read_head

CONTENT = b"a file of two parts"
FRAMED = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(CONTENT), CONTENT),
    "chunks": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"0f\r\n%b\r\n04\r\n%b\r\n0\r\nX-Trailer: 1\r\n\r\n" % (CONTENT[:15], CONTENT[15:])
    ),
}
"""Answers that say themselves where they end."""
UNFRAMED = {
    "HTTP/1.1": b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n" + CONTENT,
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\n" + CONTENT,
}
"""Answers that end where the connection does."""

End = Callable[[socket.socket], None]


def closing(connection: socket.socket) -> None:
    """Leave the end to the server: TLS's close_notify, then TCP's FIN."""


def cutting(connection: socket.socket) -> None:
    """End TCP properly and TLS not at all, as a process that dies does."""
    connection.shutdown(socket.SHUT_RDWR)
    raise ConnectionAbortedError


def resetting(connection: socket.socket) -> None:
    """Reset TCP, as a firewall does."""
    wire.reset(connection)
    raise ConnectionAbortedError


def staying(connection: socket.socket) -> None:
    """Keep the connection open until the client leaves."""
    connection.recv(1)
    raise ConnectionAbortedError


class Server:
    """Says what it is told, and ends as it is told."""

    def __init__(self) -> None:
        self.says, self.end = b"", closing

    def __call__(self, connection: socket.socket) -> None:
        read_head(connection)
        connection.sendall(self.says)
        self.end(connection)

    def get(self, says: bytes, end: End) -> bytes:
        self.says, self.end = says, end
        return get()

    def may_have_it_later(self, says: bytes, end: End) -> bool:
        """Whether this is told to be no file, and one that may be had another time."""
        try:
            self.get(says, end)
        except ProviderError as error:
            return isinstance(error, DownloadFailed) and not error.ambiguous
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server()
    file = certificate(tmp_path_factory.mktemp("tls"))
    with pytest.MonkeyPatch.context() as patch, files_at(server, file, patch):
        yield server


@pytest.mark.parametrize("end", [closing, cutting, staying])
@pytest.mark.parametrize("framing", FRAMED)
def test_an_answer_with_a_length_or_chunks_is_whole_whatever_comes_after(
    server: Server, framing: str, end: End
) -> None:
    assert server.get(FRAMED[framing], end) == CONTENT


@pytest.mark.parametrize(("end", "step"), [(closing, 1), (cutting, 5), (resetting, 5)])
@pytest.mark.parametrize("framing", FRAMED)
def test_an_answer_with_a_length_or_chunks_is_not_whole_before_its_end(
    server: Server, framing: str, end: End, step: int
) -> None:
    """Cut behind every byte: in its head, in the size of a chunk, in the file, in the trailer."""
    whole = FRAMED[framing]
    cuts = [whole[:count] for count in range(0, len(whole), step)]
    assert [cut for cut in cuts if not server.may_have_it_later(cut, end)] == []


@pytest.mark.parametrize("version", UNFRAMED)
def test_an_answer_without_a_length_ends_with_tls(server: Server, version: str) -> None:
    assert server.get(UNFRAMED[version], closing) == CONTENT


@pytest.mark.parametrize("end", [cutting, resetting])
@pytest.mark.parametrize("version", UNFRAMED)
def test_an_answer_without_a_length_does_not_end_with_tcp(
    server: Server, version: str, end: End
) -> None:
    """Nobody can tell whether all of the file has come."""
    whole = UNFRAMED[version]
    cuts = [whole[:count] for count in (*range(0, len(whole), 7), len(whole))]
    assert [cut for cut in cuts if not server.may_have_it_later(cut, end)] == []


@pytest.mark.parametrize("version", UNFRAMED)
def test_half_a_head_is_no_answer_even_if_tls_ends_there(server: Server, version: str) -> None:
    head = UNFRAMED[version].removesuffix(CONTENT)
    cuts = [head[:count] for count in range(len(head))]
    assert [cut for cut in cuts if not server.may_have_it_later(cut, closing)] == []


@pytest.mark.parametrize("length", [b"ten", b"-1", b"1, 1", b""])
def test_a_length_that_is_no_number_is_no_end(server: Server, length: bytes) -> None:
    says = b"HTTP/1.1 200 OK\r\nContent-Length: %b\r\n\r\n" % length + CONTENT
    assert server.may_have_it_later(says, closing)


@pytest.mark.parametrize("coding", [b"gzip", b"gzip, chunked", b"identity"])
def test_a_transfer_coding_that_was_not_asked_for_is_not_read(
    server: Server, coding: bytes
) -> None:
    """What stands between its chunks would be taken for the file."""
    says = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: %b\r\n\r\n" % coding + CONTENT
    with pytest.raises(PermanentError, match="packed"):
        server.get(says, closing)
