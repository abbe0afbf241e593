"""Receivers of callbacks as they are: interim, compressed, and chunked answers, pauses, bad hosts.

Documents: RFC 9110 (interim responses, 503), RFC 6585 (429), Standard Webhooks, IANA's registries
of special-purpose addresses.
"""

import gzip
import ipaddress
import zlib
from datetime import timedelta
from typing import Any

import pytest

from callbacks import outbox, worker
from callbacks.events import Event, EventType
from notifyproject.db.collections import collection
from notifyproject.platform import egress, endpoints
from notifyproject.platform.endpoints import Endpoint, EndpointResponse, InvalidUrlError
from tests.support.factories.notifications import CLIENT, NOON
from tests.support.fakes import socket_server
from tests.support.fakes.callback_receiver import Receiver, called_back
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

FINAL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"


@pytest.fixture(autouse=True)
def _this_machine(settings: Any) -> None:
    settings.CALLBACK_LOOPBACK = True


def answer(raw: bytes) -> EndpointResponse:
    with socket_server.serving(socket_server.answering(raw)) as server:
        endpoint = Endpoint(host="127.0.0.1", port=server.port, path="/", is_plain=True)
        return endpoints.post(endpoint, body=b"{}", headers={}, timeout=LIMIT)


@each_case(
    "raw",
    [
        EARLY + FINAL,
        EARLY * 3 + FINAL,
        b"HTTP/1.1 102 Processing\r\n\r\n" + FINAL,
        b"HTTP/1.1 100 Continue\r\n\r\n" + EARLY + FINAL,
        b"HTTP/1.1 104 Upload Resumption Supported\r\n\r\n" + FINAL,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nok",
    ],
)
def test_final_answer_decides(raw: bytes) -> None:
    """As in https://github.com/JuliaWeb/HTTP.jl/issues/1360 and
    https://github.com/snoyberg/http-client/issues/521: each callback would be sent eight times.
    """
    found = answer(raw)
    assert (found.status, found.error, found.excerpt) == (200, None, "ok")


def test_endless_interim_answers_are_an_error() -> None:
    assert answer(EARLY * 50).error == "Connection closed, or invalid response."


@pytest.mark.parametrize(
    ("encoding", "body", "excerpt"),
    [
        ("gzip", gzip.compress(b"database down"), "database down"),
        ("GZIP", gzip.compress(b"database down"), "database down"),
        ("deflate", zlib.compress(b"database down"), "database down"),
        ("gzip", gzip.compress(b"x" * 50_000_000)[:40_000], "x" * 500),
        ("gzip", b"database down", "database down"),
        ("br", b"\x8b\x06\x80database", None),
        ("identity", b"database down", "database down"),
    ],
    ids=["gzip", "capitals", "deflate", "bomb", "not compressed", "brotli", "identity"],
)
def test_compressed_answer_is_readable(encoding: str, body: bytes, excerpt: str | None) -> None:
    """Nobody asked for it: https://github.com/platformatic/platformatic/issues/329. As in
    https://github.com/apache/shenyu/issues/2226 and, for a header alone,
    https://github.com/projectdiscovery/httpx/pull/307.
    """
    head = f"HTTP/1.1 500 No\r\nContent-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n"
    found = answer(head.encode() + body)
    assert (found.status, found.excerpt) == (500, excerpt)


@each_case(
    "address",
    [
        "::ffff:169.254.169.254",
        "::ffff:a9fe:a9fe",
        "64:ff9b::a9fe:a9fe",
        "2002:a9fe:a9fe::",
        "::127.0.0.1",
        "fec0::1",
        "64:ff9b:1::1",
        "2001:db8::1",
        "3fff::1",
        "5f00::1",
        "192.0.0.8",
        "192.0.0.170",
        "198.18.0.1",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
    ],
)
def test_special_address_is_not_called(address: str) -> None:
    """As in https://github.com/OneUptime/oneuptime/issues/2578."""
    assert not egress.is_public(ipaddress.ip_address(address))


@each_case("address", ["1.1.1.1", "192.0.1.1", "2606:4700::1111", "::ffff:1.1.1.1"])
def test_public_address_is_called(address: str) -> None:
    assert egress.is_public(ipaddress.ip_address(address))


@each_case("host", ["0x7f.1", "127.1", "2130706433", "0177.0.0.1", "localhost.", "é"])
def test_odd_host_is_refused(host: str) -> None:
    with pytest.raises(InvalidUrlError):
        endpoints.parse_url(f"https://{host}/", allow_loopback=False)


# A receiver that asks for a pause.


def call(seconds: int) -> int:
    return worker.run_round(CLIENT, clock=lambda: NOON + timedelta(seconds=seconds))


@pytest.mark.usefixtures("db", "broker")
@pytest.mark.parametrize(
    ("status", "wait", "held", "free", "sent"),
    [
        (429, "120", (1, 60, 119), 121, 12),
        (503, "120", (1, 60, 119), 121, 12),
        (429, "Fri, 31 Dec 2100 23:59:59 GMT", (1, 3_599), 3_601, 8),
    ],
)
def test_pause_holds_all_messages_to_the_receiver(
    status: int, wait: str, held: tuple[int, ...], free: int, sent: int
) -> None:
    """As https://github.com/cloudevents/spec/pull/155: after a 429, the sender waits."""
    busy = socket_server.response(status, b"", f"Retry-After: {wait}")
    receiver = Receiver([*[busy] * 4, socket_server.response(204)])
    kind = EventType.DELIVERY_SENT
    events = [
        Event(id=f"evt_{number:03}", client_id=CLIENT, type=kind, at=NOON, data={})
        for number in range(12)
    ]
    with socket_server.serving(receiver) as server:
        called_back(f"{server.url}/hooks")
        outbox.store_messages(events, now=NOON)
        assert call(0) == worker.MAX_CONCURRENT_REQUESTS
        assert [call(seconds) for seconds in held] == [0] * len(held)
        assert call(free) == sent
    delivered = collection("callback_messages").count_documents({"status": "delivered"})
    assert delivered == sent
