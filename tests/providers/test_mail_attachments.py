"""Attachments: fetched before the mail leaves, sent as they are by both providers, and bounded."""

import base64
import email
import email.policy
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from domain import content
from domain.content import Attachment
from domain.errors import FailureCode, PermanentError, ProviderError
from notifyproject.platform.egress import Deadline
from providers import mail as providers_mail
from providers.contract import Message, SendRequest
from providers.mail import MAX_CONCURRENT_MAILS, DownloadError, fetch_attachments
from providers.sendgrid.provider import SendGrid
from providers.smtp.provider import SMTP
from tests.support.factories.records import NOON, outbound
from tests.support.fakes import socket_server
from tests.support.fakes.file_server import HOST, Files, certificate, files_at, read_head
from tests.support.fakes.smtp_server import MailServer, provider
from tests.support.waiting import LIMIT, ending

pytestmark = pytest.mark.usefixtures("opened")


Serve = Callable[[socket_server.Handler], AbstractContextManager[socket_server.SocketServer]]


HOSTS = frozenset({HOST})


CSV = b"a;b\r\n1;\xff\n\n"
"""Line ends of both kinds, and what is no text in UTF-8."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def serve(file: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Give a test a way to serve files at any name."""
    return lambda handler: files_at(handler, file, monkeypatch)


@pytest.fixture(autouse=True)
def _own_places(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(providers_mail, "FETCH_TIMEOUT", LIMIT)
    providers_mail._attachment_slots.cache_clear()
    yield
    providers_mail._attachment_slots.cache_clear()


def attached(
    *paths: str, filename: str = "orders.csv", content_type: str = "text/csv"
) -> SendRequest:
    """Return a mail with the files at these paths."""
    files = tuple(
        Attachment(url=f"https://{HOST}{path}", filename=filename, content_type=content_type)
        for path in paths or ["/orders.csv"]
    )
    return outbound(message=Message(subject="Orders", text="Here they are.", attachments=files))


def sendgrid(url: str = "http://127.0.0.1:1", **fields: Any) -> SendGrid:
    default: dict[str, Any] = {
        "api_key": "SG.key",
        "base_url": url,
        "sender": "notifications@example.com",
        "webhook_public_key": "",
        "clock": lambda: NOON,
        "attachment_hosts": HOSTS,
    }
    return SendGrid(**(default | fields))


def smtp(port: int, **fields: Any) -> SMTP:
    return replace(provider(port), **({"attachment_hosts": HOSTS} | fields))


# What is sent.


def test_sendgrid_gets_the_files_themselves(serve: Serve) -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with serve(Files(socket_server.response(200, CSV))), socket_server.serving(handler) as server:
        sendgrid(server.url).send(attached("/1", "/2"), timeout=LIMIT)
    body = json.loads(handler.requests[0].partition(b"\r\n\r\n")[2])
    expected = {
        "content": base64.b64encode(CSV).decode(),
        "filename": "orders.csv",
        "type": "text/csv",
        "disposition": "attachment",
    }
    assert body["attachments"] == [expected, expected]


@pytest.mark.parametrize(
    "name", ["orders.csv", 'fatura "\u00f3" \u8acb\u6c42\u66f8.csv', "x" * 120]
)
def test_a_mail_server_gets_the_files_byte_for_byte(serve: Serve, name: str) -> None:
    server = MailServer()
    with serve(Files(socket_server.response(200, CSV))), socket_server.serving(server) as running:
        smtp(running.port).send(attached(filename=name), timeout=LIMIT)
    mail = email.message_from_bytes(server.mails[0], policy=email.policy.default)
    (part,) = mail.iter_attachments()
    assert part.get_content_type() == "text/csv"
    assert part.get_filename() == name
    assert part.get_payload(decode=True) == CSV
    assert mail.get_body().get_content().strip() == "Here they are."


def test_a_batch_fetches_a_file_once(serve: Serve) -> None:
    files, handler = (
        Files(socket_server.response(200, CSV)),
        socket_server.KeepAlive(socket_server.response(202)),
    )
    with serve(files), socket_server.serving(handler) as server:
        sendgrid(server.url).send_many([attached() for _ in range(5)], timeout=LIMIT)
    assert len(files.asked) == 1


def test_mails_with_different_files_are_different() -> None:
    keys = {
        sendgrid().batch_key(mail.message) for mail in (outbound(), attached("/1"), attached("/2"))
    }
    assert len(keys) == 3


# When they cannot be had.


def assert_nothing_left(
    serve: Serve, files: socket_server.Handler, mail: SendRequest, **fields: Any
) -> Any:
    """Send by both providers; both say the same and hear nothing. Return what they say."""
    handler, server = socket_server.KeepAlive(socket_server.response(202)), MailServer()
    said: list[ProviderError] = []
    with (
        serve(files),
        socket_server.serving(handler) as http,
        socket_server.serving(server) as mails,
    ):
        for one in (sendgrid(http.url, **fields), smtp(mails.port, **fields)):
            with pytest.raises(ProviderError) as error:
                one.send(mail, timeout=LIMIT)
            said.append(error.value)
        said += sendgrid(http.url, **fields).send_many([mail, mail], timeout=LIMIT)
        assert (http.connections, mails.connections) == (0, 0)
    assert len({(type(one), one.code, one.reason) for one in said}) == 1
    return said[0]


def test_a_file_that_may_be_had_later_is_waited_for_and_nothing_has_left(serve: Serve) -> None:
    error = assert_nothing_left(serve, Files(socket_server.response(503)), attached())
    assert type(error) is DownloadError
    assert not error.is_ambiguous
    assert error.reason == (
        "Attachment 1 could not be fetched: its server cannot give it now (503)."
    )


def test_a_file_that_is_not_there_ends_it(serve: Serve) -> None:
    error = assert_nothing_left(serve, Files(socket_server.response(404)), attached())
    assert type(error) is PermanentError
    assert error.reason == "Attachment 1 cannot be sent: it is not there (404)."


def test_files_that_are_too_large_together_end_it(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers_mail, "MAX_ATTACHMENT_BYTES", 2_500)
    files = Files(socket_server.response(200, b"x" * 1_000))
    error = assert_nothing_left(serve, files, attached("/1", "/2", "/3"))
    assert error.code is FailureCode.TOO_LARGE
    assert error.reason.startswith("Attachment 3 ")


def test_all_of_them_may_have_ten_megabytes(serve: Serve) -> None:
    assert content.MAX_ATTACHMENT_BYTES == 10 * 1024 * 1024
    half = socket_server.response(200, b"x" * (content.MAX_ATTACHMENT_BYTES // 2))
    with (
        serve(Files(half)),
        fetch_attachments(
            attached("/1", "/2").message.attachments, hosts=HOSTS, timeout=2 * LIMIT
        ) as files,
    ):
        assert sum(len(one.content) for one in files) == content.MAX_ATTACHMENT_BYTES


@pytest.mark.parametrize("hosts", [frozenset(), frozenset({"example.com", "x.files.example.com"})])
def test_a_host_that_is_not_allowed_any_more_is_not_asked(
    serve: Serve, hosts: frozenset[str]
) -> None:
    files = Files(socket_server.response(200, CSV))
    error = assert_nothing_left(serve, files, attached(), attachment_hosts=hosts)
    assert type(error) is PermanentError
    assert files.asked == []


def test_without_a_word_about_hosts_none_is_allowed() -> None:
    assert SendGrid.attachment_hosts == SMTP.attachment_hosts == frozenset()


def test_no_reason_tells_where_a_file_is(serve: Serve) -> None:
    mail = attached("/ada@example.com/secret?signature=abc")
    for answer in (
        socket_server.response(404),
        socket_server.response(503),
        b"what?",
        socket_server.response(200),
    ):
        reason = assert_nothing_left(serve, Files(answer), mail).reason
        assert not any(word in reason for word in ("ada", "secret", "signature", HOST, "orders"))


# How long, and how many.


def test_time_is_left_to_send_what_was_fetched(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed: list[float] = []

    def after(seconds: float) -> Deadline:
        allowed.append(seconds)
        return Deadline.after(seconds)

    monkeypatch.setattr(providers_mail, "Deadline", SimpleNamespace(after=after))

    def stall(connection: socket.socket) -> None:
        read_head(connection)
        connection.recv(1)

    with serve(stall), pytest.raises(DownloadError), ending(after=0.55):
        sendgrid().send(attached(), timeout=0.9)
    assert allowed == pytest.approx([0.6])


def test_only_so_many_mails_with_files_are_in_hand_at_once(serve: Serve) -> None:
    """Each may take 50 MB of memory; the others wait for their turn."""
    now, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(MAX_CONCURRENT_MAILS, timeout=LIMIT)

    def send() -> None:
        nonlocal now, most
        with fetch_attachments(attached().message.attachments, hosts=HOSTS, timeout=2 * LIMIT):
            with lock:
                now += 1
                most = max(most, now)
            together.wait()
            with lock:
                now -= 1

    with serve(Files(socket_server.response(200, CSV))):
        threads = [threading.Thread(target=send) for _ in range(3 * MAX_CONCURRENT_MAILS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == MAX_CONCURRENT_MAILS


def test_who_does_not_get_a_turn_in_time_comes_again(serve: Serve) -> None:
    files = attached().message.attachments
    places = providers_mail._attachment_slots(providers_mail.os.getpid())
    for _ in range(MAX_CONCURRENT_MAILS):
        places.acquire()
    with (
        pytest.raises(DownloadError, match="concurrent"),
        fetch_attachments(files, hosts=HOSTS, timeout=0.1),
    ):
        pytest.fail("there was no place")
    places.release()
    with (
        serve(Files(socket_server.response(200, CSV))),
        fetch_attachments(files, hosts=HOSTS, timeout=LIMIT) as here,
    ):
        assert [one.content for one in here] == [CSV]


def test_a_failure_gives_its_place_back(serve: Serve) -> None:
    files = attached().message.attachments
    with serve(Files(socket_server.response(404))):
        for _ in range(2 * MAX_CONCURRENT_MAILS):
            with pytest.raises(PermanentError), fetch_attachments(files, hosts=HOSTS, timeout=0.5):
                pytest.fail("it was not there")


def test_a_mail_without_files_waits_for_nobody() -> None:
    for _ in range(MAX_CONCURRENT_MAILS):
        providers_mail._attachment_slots(providers_mail.os.getpid()).acquire()
    with fetch_attachments((), hosts=frozenset(), timeout=0) as files:
        assert files == ()
