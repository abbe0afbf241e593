"""Twilio's magic numbers: responses and status callbacks."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sandbox.providers.twilio.errors import FAILURES, KINDS
from sandbox.providers.twilio.outcomes import (
    ERRORS,
    FAILURE_CODES,
    OUTCOME_BY_SUFFIX,
    OUTCOMES,
    magic,
    magic_suffix,
)
from tests.support.clients.sandbox import QUICK, SEPARATE_REPORTS, Receiver, RunSandbox
from tests.support.providers.sandbox_twilio import ADA, TwilioClient, callbacks, wait_for
from tests.support.tables import each_case
from tests.support.waiting import until

DOCUMENTED = {
    "211": 21211,
    "408": 21408,
    "610": 21610,
    "611": 21611,
    "612": 21612,
    "614": 21614,
    "429": 20429,
}
"""The last three digits of the numbers that a developer remembers, and the code."""
DOCUMENTED_FAILURES = {"933": 30003, "935": 30005, "937": 30007, "936": 30036, "950": 30450}


@pytest.fixture
def phones(run: RunSandbox, receiver: Receiver) -> Iterator[TwilioClient]:
    with run(timings=replace(SEPARATE_REPORTS, pumping=600)) as box:
        yield TwilioClient(box=box, callback=receiver.url)


def number(outcome: str) -> str:
    return f"+447700{magic_suffix(outcome)}"


def test_outcomes_have_one_number_each() -> None:
    assert sorted(OUTCOME_BY_SUFFIX.values()) == sorted(row.name for row in OUTCOMES.table)
    assert {ERRORS[OUTCOME_BY_SUFFIX[last]]: last for last in DOCUMENTED} == {
        code: last for last, code in DOCUMENTED.items()
    }
    assert {FAILURE_CODES[OUTCOME_BY_SUFFIX[last]] for last in DOCUMENTED_FAILURES} == {
        *DOCUMENTED_FAILURES.values()
    }


def test_number_that_resembles_a_magic_one_has_no_outcome() -> None:
    assert [magic(text) for text in ("447700901211", "211", "447700900999")] == [""] * 3


@each_case(
    "outcome, statuses",
    [
        ("delivered", ["sent", "delivered"]),
        ("sent", ["sent"]),
        ("disordered", ["delivered", "sent", "delivered", "queued", "sent"]),
        ("odd-status", ["teleported", "delivered"]),
        ("failed-30003", ["sent", "undelivered"]),
        ("failed-30036", ["sent", "failed"]),
        ("pumping", ["sent", "failed"]),
        *((name, ["sent", "delivered"]) for name in ("empty", "not-json", "slow")),
    ],
)
def test_accepted_message_causes_its_callbacks(
    phones: TwilioClient, receiver: Receiver, outcome: str, statuses: list[str]
) -> None:
    form = phones.form(number(outcome), reference=outcome)
    assert phones.post(form).status == 201
    found = wait_for(receiver, *statuses, reference=outcome)
    assert {item["To"] for item in found} == {number(outcome)}
    assert {item["MessageSid"] for item in found} == {phones.box.requests()[0]["message_id"]}


def test_callback_has_the_code_of_its_failure(phones: TwilioClient, receiver: Receiver) -> None:
    for code, failure in FAILURES.items():
        outcome = next(name for name, found in FAILURE_CODES.items() if found == code)
        phones.post(phones.form(number(outcome), reference=outcome))
        _, failed = wait_for(receiver, "sent", failure.status, reference=outcome)
        assert failed["ErrorCode"] == str(code)


def test_refusal_has_its_status_and_code(phones: TwilioClient) -> None:
    for outcome, code in ERRORS.items():
        answer = phones.send(number(outcome))
        found = answer.json()
        status = KINDS[code].status
        assert (answer.status, found["status"], found["code"]) == (status, status, code)
        assert "Retry-After" not in answer.headers
        recorded = phones.box.requests()[0]
        assert (recorded["outcome"], recorded["accepted"]) == (outcome, False)


@pytest.mark.parametrize(
    ("outcome", "status", "code"),
    [("no-code", 400, None), ("unknown-code", 400, 29999), ("error-in-200", 200, 21211)],
)
def test_odd_refusal_has_its_status_and_code(
    phones: TwilioClient, outcome: str, status: int, code: int | None
) -> None:
    answer = phones.send(number(outcome))
    assert (answer.status, answer.json().get("code")) == (status, code)
    assert not phones.box.requests()[0]["accepted"]


def test_message_to_no_events_or_without_a_callback_causes_none(
    phones: TwilioClient, receiver: Receiver
) -> None:
    phones.post(phones.form(number("no-events"), reference="silent"))
    phones.post(phones.form(StatusCallback=None))
    phones.post(phones.form(reference="other"))
    wait_for(receiver, "sent", "delivered", reference="other")
    assert callbacks(receiver, "silent") == []
    assert len(receiver.posts) == 2


def test_blocked_prefix_is_let_through_after_a_while(run: RunSandbox, receiver: Receiver) -> None:
    with run(timings=replace(QUICK, pumping=0)) as box:
        phones = TwilioClient(box=box, callback=receiver.url)
        phones.send(number("pumping"))
        wait_for(receiver, "sent", "delivered")


def test_number_that_wrote_stop_is_refused_until_it_writes_start(phones: TwilioClient) -> None:
    def codes() -> list[Any]:
        return [phones.send(to).json().get("code") for to in (ADA, "+447700900998")]

    phones.write("Please stop")
    assert codes() == [None, None]
    phones.write(" stop ")
    assert codes() == [21610, None]
    phones.write("UNSTOP")
    assert codes() == [None, None]
    phones.write("STOP")
    phones.box.control("POST", "/reset")
    assert codes() == [None, None]


def test_outbox_shows_a_message_with_its_parts_and_takes_a_reply(phones: TwilioClient) -> None:
    phones.post(phones.form(Body="“Hello”"))
    html = phones.box.get("/messages/1").data.decode()
    assert "“Hello”" in html
    assert "1 (UCS-2)" in html
    assert 'value="STOP"' in html
    url = f"{phones.box.sandbox.url}/messages/1/reply"
    answer = phones.box.http.request(
        "POST", url, fields={"text": "STOP"}, encode_multipart=False, redirect=False
    )
    assert (answer.status, answer.headers["Location"]) == (303, "/messages/1")
    assert phones.send().json()["code"] == 21610
    assert "Opted out" not in html


@pytest.mark.parametrize(
    ("path", "text", "headers", "status"),
    [
        ("/messages/1/reply", "  ", {}, 404),
        ("/messages/2/reply", "STOP", {}, 404),
        ("/messages/1/reply", "STOP", {"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_reply_that_nobody_writes_is_refused(
    phones: TwilioClient, path: str, text: str, headers: dict[str, str], status: int
) -> None:
    phones.send()
    answer = phones.box.http.request(
        "POST",
        phones.box.sandbox.url + path,
        fields={"text": text},
        encode_multipart=False,
        headers=headers,
    )
    assert answer.status == status
    assert phones.send().status == 201


def test_callbacks_of_a_message_without_an_answer_come_late(
    phones: TwilioClient, receiver: Receiver
) -> None:
    with pytest.raises(Exception, match="timed out"):
        phones.send(number("timeout"), timeout=0.2)
    until(lambda: len(callbacks(receiver)) == 2)
    wait_for(receiver, "sent", "delivered")
