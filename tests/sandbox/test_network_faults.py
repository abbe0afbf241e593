"""Outcomes that all providers share: network faults, proxy answers, and temporary failures."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from urllib3.exceptions import ProtocolError, ReadTimeoutError

from sandbox.providers.twilio import outcomes as twilio
from sandbox.providers.whatsapp.outcomes import magic_suffix
from tests.support.clients.sandbox import QUICK, Box, RunSandbox, mail
from tests.support.providers.sandbox_fcm import FCMClient, push
from tests.support.providers.sandbox_twilio import TwilioClient
from tests.support.providers.sandbox_whatsapp import WhatsAppClient
from tests.support.waiting import LIMIT, ending, until

ACCEPTED = {"sendgrid": 202, "fcm": 200, "whatsapp": 200, "twilio": 201}
SEND_PATHS = {
    "sendgrid": "/v3/mail/send",
    "fcm": "/v1/projects/",
    "whatsapp": "/messages",
    "twilio": "/2010-04-01/Accounts/",
}


@pytest.fixture(params=list(ACCEPTED))
def provider(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def send(box: Box, provider: str) -> Callable[..., Any]:
    """Return a function that sends a message to the magic recipient of an outcome."""
    pushes, chats = FCMClient(box=box), WhatsAppClient(box=box)
    access = pushes.sign_in()

    def send(outcome: str, **options: Any) -> Any:
        to = recipient(provider, outcome)
        if provider == "sendgrid":
            return box.send(mail(to), **options)
        if provider == "fcm":
            return pushes.post({"message": push(to)}, access=access, **options)
        if provider == "twilio":
            return TwilioClient(box=box).send(to, **options)
        return chats.send(to, **options)

    return send


def recipient(provider: str, outcome: str) -> str:
    if provider == "twilio":
        return f"+447700{twilio.magic_suffix(outcome)}"
    if provider == "whatsapp":
        return f"+447700{magic_suffix(outcome)}"
    return f"{outcome}@example.com" if provider == "sendgrid" else f"{outcome}-1"


@pytest.mark.parametrize(
    ("fault", "status"),
    [("timeout", "stalled"), ("timeout-lost", "stalled"), ("reset", "reset"), ("truncated", None)],
)
def test_fault_spoils_the_answer_and_is_recorded(
    box: Box, provider: str, send: Callable[..., Any], fault: str, status: str | None
) -> None:
    is_stalled = status == "stalled"
    with pytest.raises(ReadTimeoutError if is_stalled else ProtocolError) as caught:
        send(fault, timeout=0.3 if is_stalled else LIMIT)
    if fault == "reset":
        assert isinstance(caught.value.args[1], ConnectionResetError)
    [recorded] = until(lambda: box.requests(f"?provider={provider}"))
    assert recorded["status"] == (status or ACCEPTED[provider])
    assert recorded["accepted"] == (fault != "timeout-lost")


@pytest.mark.parametrize(("fault", "least"), [("slow", QUICK.slow), ("dripping", 100 * QUICK.drip)])
def test_slow_answer_takes_its_time_and_is_complete(
    provider: str, send: Callable[..., Any], fault: str, least: float
) -> None:
    with ending(after=least):
        answer = send(fault)
    assert answer.status == ACCEPTED[provider]
    assert ("X-Message-Id" in answer.headers) == (provider == "sendgrid")


def test_every_response_takes_the_time_of_the_configuration(run: RunSandbox) -> None:
    timings = replace(QUICK, response=0.1)
    with run(timings=timings) as box, ending(after=timings.response):
        assert box.send(mail()).status == ACCEPTED["sendgrid"]


def test_bad_gateway_answers_with_a_page(send: Callable[..., Any]) -> None:
    answer = send("bad-gateway")
    assert (answer.status, answer.headers["Content-Type"]) == (502, "text/html")
    assert answer.data.startswith(b"<html>")


def test_redirect_points_to_a_host_that_does_not_exist(
    provider: str, send: Callable[..., Any]
) -> None:
    answer = send("redirect")
    assert answer.status == 302
    expected = f"http://elsewhere.invalid{SEND_PATHS[provider]}"
    assert answer.headers["Location"].startswith(expected)


@pytest.mark.parametrize(
    ("outcome", "failures"),
    [("ratelimit-once", [429]), ("flaky", [500, 500]), ("server-error", [500] * 6)],
)
def test_outcome_fails_as_often_as_it_says_and_begins_anew(
    provider: str, send: Callable[..., Any], outcome: str, failures: list[int]
) -> None:
    cycle = [*failures, ACCEPTED[provider]]
    assert [send(outcome).status for _ in range(6)] == (cycle * 6)[:6]


def test_script_fixes_a_failing_recipient_until_it_is_deleted(
    box: Box, provider: str, send: Callable[..., Any]
) -> None:
    path = f"/behaviours/{recipient(provider, 'server-error')}"
    assert send("server-error").status == 500
    box.control("PUT", path, {"outcome": "delivered"})
    assert send("server-error").status == ACCEPTED[provider]
    box.control("DELETE", path)
    assert send("server-error").status == 500
