"""Attachments: downloaded before sending, and bounded in size and number."""

import asyncio
import base64
import email
import email.policy
import json
import os
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
from notifyproject.platform.event_loop import run
from providers import mail as providers_mail
from providers.contract import Message, SendRequest, SendResult
from providers.mail import MAX_CONCURRENT_MAILS, DownloadError, fetch_attachments
from providers.sendgrid.provider import SendGrid
from providers.smtp.provider import SMTP
from tests.providers.email_apis.postmark import POSTMARK
from tests.support.factories.notifications import outbound
from tests.support.fakes import socket_server
from tests.support.fakes.file_server import HOST, Files, certificate, files_at, read_head
from tests.support.fakes.smtp_server import MailServer, provider
from tests.support.providers import ses
from tests.support.providers.sendgrid import account
from tests.support.tables import each_case
from tests.support.threads import at_once
from tests.support.waiting import LIMIT, SHORT, ending

pytestmark = pytest.mark.usefixtures("opened")
Serve = Callable[[socket_server.Handler], AbstractContextManager[socket_server.SocketServer]]
HOSTS = frozenset({HOST})
CSV = b"a;b\r\n1;\xff\n\n"
"""Both kinds of line ends, and invalid UTF-8."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def serve(file: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Serve files for any host name."""
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
    files = tuple(
        Attachment(url=f"https://{HOST}{path}", filename=filename, content_type=content_type)
        for path in paths or ["/orders.csv"]
    )
    return outbound(message=Message(subject="Orders", text="Here they are.", attachments=files))


def sendgrid(url: str = "http://127.0.0.1:1", **fields: Any) -> SendGrid:
    return account(**({"base_url": url, "attachment_hosts": HOSTS} | fields))


def smtp(port: int, **fields: Any) -> SMTP:
    return replace(provider(port), **({"attachment_hosts": HOSTS} | fields))


def test_sendgrid_gets_the_files(serve: Serve) -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with serve(Files(socket_server.response(200, CSV))), socket_server.serving(handler) as server:
        run(sendgrid(server.url).send(attached("/1", "/2"), timeout=LIMIT))
    body = json.loads(handler.requests[0].partition(b"\r\n\r\n")[2])
    expected = {
        "content": base64.b64encode(CSV).decode(),
        "filename": "orders.csv",
        "type": "text/csv",
        "disposition": "attachment",
    }
    assert body["attachments"] == [expected, expected]


@each_case("name", ["orders.csv", 'fatura "\u00f3" \u8acb\u6c42\u66f8.csv', "x" * 120])
def test_smtp_gets_the_files_byte_for_byte(serve: Serve, name: str) -> None:
    server = MailServer()
    with serve(Files(socket_server.response(200, CSV))), socket_server.serving(server) as running:
        run(smtp(running.port).send(attached(filename=name), timeout=LIMIT))
    mail = email.message_from_bytes(server.mails[0], policy=email.policy.default)
    (part,) = mail.iter_attachments()
    assert part.get_content_type() == "text/csv"
    assert part.get_filename() == name
    assert part.get_payload(decode=True) == CSV
    assert mail.get_body().get_content().strip() == "Here they are."


def test_batch_fetches_a_file_once(serve: Serve) -> None:
    files, handler = (
        Files(socket_server.response(200, CSV)),
        socket_server.KeepAlive(socket_server.response(202)),
    )
    with serve(files), socket_server.serving(handler) as server:
        run(sendgrid(server.url).send_many([attached() for _ in range(5)], timeout=LIMIT))
    assert len(files.requests) == 1


def test_batch_key_differs_by_files() -> None:
    keys = {
        sendgrid().batch_key(mail.message) for mail in (outbound(), attached("/1"), attached("/2"))
    }
    assert len(keys) == 3


def assert_nothing_left(
    serve: Serve, files: socket_server.Handler, mail: SendRequest, **fields: Any
) -> Any:
    """Check that both providers send nothing and raise the same error. Return the error."""
    handler, server = socket_server.KeepAlive(socket_server.response(202)), MailServer()
    errors: list[ProviderError] = []
    with (
        serve(files),
        socket_server.serving(handler) as http,
        socket_server.serving(server) as mails,
    ):
        for provider in (sendgrid(http.url, **fields), smtp(mails.port, **fields)):
            with pytest.raises(ProviderError) as error:
                run(provider.send(mail, timeout=LIMIT))
            errors.append(error.value)
        errors += run(sendgrid(http.url, **fields).send_many([mail, mail], timeout=LIMIT))
        assert (http.connections, mails.connections) == (0, 0)
    assert len({(type(error), error.code, error.reason) for error in errors}) == 1
    return errors[0]


def test_temporarily_missing_file_is_retried_unsent(serve: Serve) -> None:
    error = assert_nothing_left(serve, Files(socket_server.response(503)), attached())
    assert type(error) is DownloadError
    assert not error.is_ambiguous
    assert error.reason == (
        "Attachment 1 could not be fetched: its server cannot give it now (503)."
    )


def test_missing_file_fails_permanently(serve: Serve) -> None:
    error = assert_nothing_left(serve, Files(socket_server.response(404)), attached())
    assert type(error) is PermanentError
    assert error.reason == "Attachment 1 cannot be sent: it is not there (404)."


def test_files_too_large_together_fail_permanently(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers_mail, "MAX_ATTACHMENT_BYTES", 2_500)
    files = Files(socket_server.response(200, b"x" * 1_000))
    error = assert_nothing_left(serve, files, attached("/1", "/2", "/3"))
    assert error.code is FailureCode.TOO_LARGE
    assert error.reason.startswith("Attachment 3 ")


def test_files_may_have_ten_megabytes_together(serve: Serve) -> None:
    assert content.MAX_ATTACHMENT_BYTES == 10 * 1024 * 1024
    half = socket_server.response(200, b"x" * (content.MAX_ATTACHMENT_BYTES // 2))
    with (
        serve(Files(half)),
        fetch_attachments(
            attached("/1", "/2").message.attachments, hosts=HOSTS, timeout=2 * LIMIT
        ) as files,
    ):
        assert sum(len(file.content) for file in files) == content.MAX_ATTACHMENT_BYTES


@each_case("hosts", [frozenset(), frozenset({"example.com", "x.files.example.com"})])
def test_host_no_longer_allowed_is_not_contacted(serve: Serve, hosts: frozenset[str]) -> None:
    files = Files(socket_server.response(200, CSV))
    error = assert_nothing_left(serve, files, attached(), attachment_hosts=hosts)
    assert type(error) is PermanentError
    assert files.requests == []


def test_no_host_is_allowed_by_default() -> None:
    assert SendGrid.attachment_hosts == SMTP.attachment_hosts == frozenset()


def test_reason_does_not_contain_the_url(serve: Serve) -> None:
    mail = attached("/ada@example.com/secret?signature=abc")
    for answer in (
        socket_server.response(404),
        socket_server.response(503),
        b"what?",
        socket_server.response(200),
    ):
        reason = assert_nothing_left(serve, Files(answer), mail).reason
        assert not any(word in reason for word in ("ada", "secret", "signature", HOST, "orders"))


def test_download_leaves_time_for_sending(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[float] = []

    def after(seconds: float) -> Deadline:
        allowed.append(seconds)
        return Deadline.after(seconds)

    monkeypatch.setattr(providers_mail, "Deadline", SimpleNamespace(after=after))

    def stall(connection: socket.socket) -> None:
        read_head(connection)
        connection.recv(1)

    with serve(stall), pytest.raises(DownloadError), ending(after=0.55):
        run(sendgrid().send(attached(), timeout=0.9))
    assert allowed == pytest.approx([0.6], abs=0.05)


def test_concurrent_mails_with_files_are_limited(serve: Serve) -> None:
    """Each mail may take 50 MB of memory."""
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
        at_once(*[send] * 3 * MAX_CONCURRENT_MAILS)
    assert most == MAX_CONCURRENT_MAILS


def test_stalled_downloads_of_many_mails_end_in_time(serve: Serve) -> None:
    """A wait for a thread or a slot counts, too: a send that ends late would be unknown."""

    def stall(connection: socket.socket) -> None:
        read_head(connection)
        connection.recv(1)

    async def send_all() -> list[SendResult | BaseException]:
        sends = (sendgrid().send(attached(), timeout=SHORT) for _ in range(80))
        return await asyncio.gather(*sends, return_exceptions=True)

    with serve(stall), ending(after=SHORT * 2 / 3 - 0.05):
        outcomes = run(send_all())
    assert {type(outcome) for outcome in outcomes} == {DownloadError}


def test_mail_without_a_slot_is_retried(serve: Serve) -> None:
    files = attached().message.attachments
    places = providers_mail._attachment_slots(os.getpid())
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
        assert [file.content for file in here] == [CSV]


def test_failed_download_releases_its_slot(serve: Serve) -> None:
    files = attached().message.attachments
    with serve(Files(socket_server.response(404))):
        for _ in range(2 * MAX_CONCURRENT_MAILS):
            with pytest.raises(PermanentError), fetch_attachments(files, hosts=HOSTS, timeout=0.5):
                pytest.fail("it was not there")


@each_case(
    "sender, accepted",
    [
        (sendgrid, socket_server.response(202)),
        (
            lambda url: ses.account(base_url=url, attachment_hosts=HOSTS),
            ses.answer(200, {"MessageId": ses.MESSAGE_ID}),
        ),
        (
            lambda url: POSTMARK.account(options={"api_url": url}, attachment_hosts=HOSTS),
            ses.answer(200, POSTMARK.accepted),
        ),
    ],
)
def test_mail_keeps_its_slot_until_it_is_sent(
    sender: Callable[[str], Any], accepted: bytes, serve: Serve
) -> None:
    """Its body, with the files, is in memory for as long."""
    places = providers_mail._attachment_slots(os.getpid())
    for _ in range(MAX_CONCURRENT_MAILS - 1):
        places.acquire()
    free = list[bool]()

    def answer(connection: socket.socket) -> None:
        while socket_server.read_request(connection):
            free.append(places.acquire(blocking=False))
            if free[-1]:
                places.release()
            connection.sendall(accepted)

    with serve(Files(socket_server.response(200, CSV))), socket_server.serving(answer) as server:
        assert isinstance(run(sender(server.url).send(attached(), timeout=LIMIT)), SendResult)
    for _ in range(MAX_CONCURRENT_MAILS - 1):
        places.release()
    assert free == [False]


def test_mail_without_files_needs_no_slot() -> None:
    for _ in range(MAX_CONCURRENT_MAILS):
        providers_mail._attachment_slots(os.getpid()).acquire()
    with fetch_attachments((), hosts=frozenset(), timeout=0) as files:
        assert files == ()


CALENDAR = b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n%sBEGIN:VEVENT\r\nSUMMARY:x\r\n"


@each_case(
    "head, content_type, expected",
    [
        (b"METHOD:REQUEST\r\n", "text/calendar", "text/calendar; method=REQUEST"),
        (b"method:Cancel\n", "text/calendar", "text/calendar; method=CANCEL"),
        (
            b"METHOD:REPLY\r\n",
            "text/calendar; charset=utf-8",
            "text/calendar; charset=utf-8; method=REPLY",
        ),
        (b"METHOD:REQUEST\r\n", "text/calendar; method=PUBLISH", "text/calendar; method=PUBLISH"),
        (b"METHOD:REQUEST\r\n", "application/ics", "application/ics"),
        (b"METHOD:REQUEST\r\n", "text/plain", "text/plain"),
        (b"METHOD:\r\n", "text/calendar", "text/calendar"),
        (b"METHOD:A;B\r\n", "text/calendar", "text/calendar"),
        (b"X-NOTE:METHOD:REQUEST\r\n", "text/calendar", "text/calendar"),
        (b"BEGIN:VEVENT\r\nDESCRIPTION:a\r\nMETHOD:REQUEST\r\n", "text/calendar", "text/calendar"),
        (b"", "text/calendar", "text/calendar"),
    ],
)
def test_invitation_names_its_method(
    head: bytes, content_type: str, expected: str, serve: Serve
) -> None:
    """https://github.com/sendgrid/sendgrid-nodejs/issues/1313"""
    with serve(Files(socket_server.response(200, CALENDAR % head))):
        message = attached(filename="invite.ics", content_type=content_type).message
        with fetch_attachments(message.attachments, hosts=HOSTS, timeout=LIMIT) as files:
            assert [file.content_type for file in files] == [expected]
