"""One line per event, without addresses or content."""

import ast
import io
import json
import logging
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Never, TypeGuard

import pytest
import structlog
from django.conf import settings
from django.test import RequestFactory

from delivery import sending
from delivery.routing import Route
from delivery.sending import PreparedDelivery
from delivery.targets import address_of
from delivery.window import SendWindows
from notifyproject.platform.logs import buffered_lines, configure, logging_config
from providers.contract import Message, SendRequest, SendResult
from tests.support.factories.notifications import FIXED_NOON, claimed_delivery
from tests.support.source import ROOT, SERVICE, files, nodes
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

ADDRESS, BODY, KEY = "ada@example.com", "Your code is 493817.", "SG.s3cret"
TELLTALE = {
    "address",
    "email",
    "phone",
    "to",
    "recipient",
    "body",
    "subject",
    "text",
    "html",
    "content",
    "data",
    "payload",
    "message",
    "document",
    "key",
    "api_key",
    "token",
    "secret",
    "password",
    "headers",
    "request",
    "outbound",
    "name",
    "recipient_name",
}


GUNICORN = """
import sys
from gunicorn.config import Config
from gunicorn.glogging import Logger
from notifyproject.platform.logs import configure, logging_config
log = Logger(Config())
configure(logging_config(level="INFO", form=sys.argv[1]))
log.warning("Invalid request from ip=%s", "127.0.0.1")
"""


@contextmanager
def logged(form: str, level: str = "INFO") -> Iterator[io.StringIO]:
    """Log into a stream with the real configuration."""
    stream = io.StringIO()
    config = logging_config(level=level, form=form)
    config["handlers"]["stderr"]["stream"] = stream
    configure(config)
    try:
        yield stream
    finally:
        configure(settings.LOGGING)


def fresh_log() -> Any:
    return structlog.get_logger("tests")


@each_case("form", ["json", "console"])
def test_warning_of_gunicorn_is_one_line(form: str) -> None:
    command = [sys.executable, "-c", GUNICORN, form]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    (line,) = done.stderr.splitlines()
    assert "Invalid request from ip=127.0.0.1" in line


def test_event_is_one_line_of_json() -> None:
    with logged("json") as stream:
        fresh_log().info("delivery_attempted", delivery_id="a.email", attempt=1)
    (line,) = stream.getvalue().splitlines()
    event = json.loads(line)
    assert event["event"] == "delivery_attempted"
    assert (event["delivery_id"], event["attempt"], event["level"]) == ("a.email", 1, "info")
    assert event["timestamp"].endswith("Z")
    assert event["logger"] == "tests"


def test_request_id_is_in_every_line() -> None:
    with logged("json") as stream, structlog.contextvars.bound_contextvars(request_id="r-1"):
        fresh_log().info("one")
        logging.getLogger("elsewhere").warning("two")
    assert [json.loads(line)["request_id"] for line in stream.getvalue().splitlines()] == [
        "r-1"
    ] * 2


def written_lines(stream: io.StringIO) -> list[str]:
    return [json.loads(line)["event"] for line in stream.getvalue().splitlines()]


def test_lines_of_a_block_are_written_at_its_end_even_after_an_error() -> None:
    log = fresh_log()

    def fail_in_a_block() -> None:
        with buffered_lines():
            log.info("first")
            with buffered_lines():
                log.info("second")
            assert not stream.getvalue()
            fail(ZeroDivisionError())

    with logged("json") as stream:
        with pytest.raises(ZeroDivisionError):
            fail_in_a_block()
        log.info("third")
    assert written_lines(stream) == ["first", "second", "third"]


def test_block_is_written_in_parts_that_a_pipe_keeps_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    with logged("json") as stream:
        monkeypatch.setattr(stream, "write", written.append)
        with buffered_lines():
            for number in range(100):
                fresh_log().info("event", number=number)
    numbers = [json.loads(line)["number"] for part in written for line in part.splitlines()]
    assert numbers == list(range(100))
    assert all(part.endswith("\n") and len(part) <= select.PIPE_BUF for part in written)
    assert len(written) < 10


def test_block_delays_no_line_of_another_thread() -> None:
    with logged("json") as stream, buffered_lines():
        thread = threading.Thread(target=fresh_log().info, args=["other"])
        thread.start()
        thread.join(LIMIT)
        assert written_lines(stream) == ["other"]


def test_lines_that_cannot_be_written_fail_no_block(capsys: pytest.CaptureFixture[str]) -> None:
    with logged("json") as stream:
        stream.close()
        with buffered_lines():
            fresh_log().info("lost")
    assert "I/O operation on closed file" in capsys.readouterr().err


@each_case("text", ["line one\nline two", '"quoted"', "\x1b[31mred", "\u2028"])
def test_value_stays_on_its_line(text: str) -> None:
    with logged("json") as stream:
        fresh_log().info("event", value=text)
    (line,) = stream.getvalue().split("\n")[:-1]
    assert json.loads(line)["value"] == text


def test_quiet_libraries_stay_quiet_at_debug_level() -> None:
    with logged("json", level="DEBUG") as stream:
        for name in ("python_http_client", "python_http_client.client", "pymongo.command"):
            logging.getLogger(name).debug("Authorization: Bearer %s", KEY)
    assert KEY not in stream.getvalue()


def test_level_is_configurable() -> None:
    with logged("json", level="ERROR") as stream:
        fresh_log().info("hidden")
        fresh_log().error("shown")
    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["shown"]


def fail(error: Exception) -> Never:
    raise error


class Failing:
    """A provider with a defect whose error message contains the address."""

    name = account = "failing"

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        recipient, body = request.recipient, request.message.text
        try:
            fail(KeyError(body))
        except KeyError as error:
            raise ValueError(f"cannot encode {recipient} {len(body)}") from error


def send_by_a_provider_with_a_defect() -> None:
    claim = claimed_delivery()
    message = Message(subject="Code", text=BODY)
    job = PreparedDelivery(claimed=claim, message=message, targets=(address_of(claim),))
    in_flight = sending.InFlight(SendWindows(), lambda: FIXED_NOON)
    in_flight.submit(Route(provider=Failing(), claims=[claim]), [[job]])
    in_flight.collect(timeout=LIMIT)


@each_case("form", ["json", "console"])
def test_send_defect_is_logged_with_ids_and_place_only(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logged(form) as stream:
        monkeypatch.setattr(sending, "log", structlog.get_logger("delivery.sending"))
        send_by_a_provider_with_a_defect()
    text = stream.getvalue()
    assert "provider_adapter_failed" in text
    assert claimed_delivery().delivery_id in text
    assert "in send" in text
    assert "builtins.ValueError" in text
    assert "builtins.KeyError" in text, "what it came from"
    assert ADDRESS not in text
    assert BODY not in text


@each_case("form", ["json", "console"])
@each_case("address", ["ada@example.com", "ada%40example.com", "+351912345678"])
def test_logged_error_hides_the_address(form: str, address: str) -> None:
    with logged(form) as stream:
        try:
            fail(LookupError(f"E11000 duplicate key: {{email: '{address}'}}"))
        except LookupError as error:
            fresh_log().error("request_failed", exc_info=error)
            logging.getLogger("elsewhere").exception("failed")
    assert "E11000 duplicate key" in stream.getvalue()
    assert "test_logs.py" in stream.getvalue()
    assert address not in stream.getvalue()


@each_case("name", ["django.request", "django.server", "celery.app.trace"])
def test_quoting_loggers_hide_addresses(name: str) -> None:
    with logged("json") as stream:
        logging.getLogger(name).error("Not Found: /admin/%s/?q=%s", ADDRESS, "ada%40example.com")
    assert "Not Found: /admin/" in stream.getvalue()
    assert "ada" not in stream.getvalue()


def test_failed_request_is_logged_without_its_query() -> None:
    """Staff search by address: /admin/?q=ada@example.com."""
    request = RequestFactory().get("/admin/", {"q": ADDRESS})
    with logged("json") as stream:
        extra = {"status_code": 404, "request": request, "data": {"args": [ADDRESS]}}
        logging.getLogger("django.request").warning("Not Found: %s", request.path, extra=extra)
    (line,) = stream.getvalue().splitlines()
    assert json.loads(line)["status_code"] == 404
    assert "ada" not in line


def test_worker_name_is_not_an_address() -> None:
    with logged("json") as stream:
        logging.getLogger("celery.apps.worker").warning("celery@worker-1.example.com ready.")
    assert "celery@worker-1.example.com" in stream.getvalue()


def is_log_call(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("log", "logger")
    )


def log_calls() -> list[tuple[str, ast.Call]]:
    found = [
        (f"{path}:{node.lineno}", node)
        for path in files(*SERVICE)
        for node in nodes(path)
        if is_log_call(node)
    ]
    assert len(found) > 10
    return found


@each_case("place, call", log_calls)
def test_log_call_is_an_event_with_ids(place: str, call: ast.Call) -> None:
    (event,), keywords = call.args, call.keywords
    assert isinstance(event, ast.Constant), "the event is a fixed word"
    assert isinstance(event.value, str)
    assert event.value.replace("_", "").isalnum()
    names = {keyword.arg for keyword in keywords}
    assert None not in names, "name what is logged"
    assert not names & TELLTALE
