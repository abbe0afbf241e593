"""Twilio's webhooks: signature, status callbacks, repeats, and inbound messages."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import credentials
from sandbox.credentials import UnreadableKeyError
from tests.support.clients.sandbox import SEPARATE_REPORTS, Receiver, RunSandbox
from tests.support.providers.sandbox_twilio import (
    ADA,
    TwilioClient,
    callbacks,
    fields,
    signature,
    wait_for,
)
from tests.support.tables import each_case
from tests.support.waiting import until


@pytest.fixture
def phones(run: RunSandbox, receiver: Receiver) -> Iterator[TwilioClient]:
    with run(twilio_webhook_url=receiver.url, timings=SEPARATE_REPORTS) as box:
        yield TwilioClient(box=box, callback=receiver.url)


def test_callback_has_twilios_parameters(phones: TwilioClient, receiver: Receiver) -> None:
    sid = phones.send().json()["sid"]
    sent, delivered = wait_for(receiver, "sent", "delivered")
    assert sent == {
        "AccountSid": phones.account.account_sid,
        "ApiVersion": "2010-04-01",
        "From": phones.account.number,
        "MessageSid": sid,
        "MessageStatus": "sent",
        "MessagingServiceSid": phones.account.messaging_service_sid,
        "SmsSid": sid,
        "SmsStatus": "sent",
        "To": ADA,
    }
    assert len(delivered["RawDlrDoneDate"]) == 10


def test_webhook_is_signed_over_its_url_and_parameters(
    phones: TwilioClient, receiver: Receiver
) -> None:
    callback = f"{receiver.url}?ref=ref-1&b=%27%20x&a=+#rc=3&rp=5xx,ct,rt"
    phones.post(phones.form(StatusCallback=callback))
    wait_for(receiver, "sent", "delivered")
    phones.write("été & co + 1 = \n")
    until(lambda: len(receiver.posts) == 3)
    base = receiver.url.removesuffix("/hook")
    for post in receiver.posts:
        expected = signature(base + post.path, post.raw, token=phones.account.auth_token)
        assert post.headers["X-Twilio-Signature"] == expected
        assert post.headers["Content-Type"].startswith("application/x-www-form-urlencoded")
    assert [post.path for post in receiver.posts] == [
        *["/hook?ref=ref-1&b=%27%20x&a=+"] * 2,
        "/hook",
    ]


@each_case(
    "overrides, answers, is_taken",
    [
        ("", [503], False),
        ("#rc=3&rp=5xx,ct,rt", [503], True),
        ("#rc=3&rp=5xx,ct,rt", [503, 503, 503], True),
        ("#rc=2&rp=5xx,ct,rt", [503, 503, 503], False),
        ("#rc=3&rp=5xx,ct,rt", [404], False),
        ("#rc=3&rp=all", [404], True),
        ("#rc=0&rp=5xx", [503], False),
    ],
)
def test_refused_callback_is_repeated_as_its_url_says(
    phones: TwilioClient, receiver: Receiver, overrides: str, answers: list[int], is_taken: bool
) -> None:
    receiver.posts.clear()
    receiver.answers = list(answers)
    phones.box.control("POST", "/reset")
    callback = f"{receiver.url}?ref=ref-1{overrides}"
    phones.post(phones.form("+447700900003", StatusCallback=callback))

    def settled() -> int:
        counts = phones.box.control("GET", "/counters")["webhooks"]
        return counts["sent"] + counts["failed"]

    until(lambda: settled() == 1)
    assert len(callbacks(receiver)) == is_taken


def test_requested_callbacks_are_sent_in_any_order_and_number(
    phones: TwilioClient, receiver: Receiver
) -> None:
    phones.send("+447700900004")
    event = {"reference": "ref-1", "kind": "delivered", "duplicates": 2}
    phones.box.control("POST", "/events", event)
    wait_for(receiver, *["delivered"] * 3)
    phones.box.control("POST", "/events", {"reference": "ref-1", "kind": "failed", "code": 30005})
    failed = wait_for(receiver, *["delivered"] * 3, "undelivered")[-1]
    assert failed["ErrorCode"] == "30005"


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"kind": "read"}, "There are: canceled, delivered, failed, queued, sending, sent"),
        ({"kind": "failed", "code": 5}, "There is no error 5"),
        ({"kind": "sent", "recipient": "+447700900111"}, "no such recipient"),
    ],
)
def test_invalid_callback_request_is_refused(
    phones: TwilioClient, event: dict[str, str | int], words: str
) -> None:
    phones.send()
    answer = phones.box.refused("POST", "/events", {"reference": "ref-1", **event})
    assert (answer.status, words in answer.json()["detail"]) == (400, True)


@each_case(
    "text, asked",
    [
        ("Stop", "STOP"),
        (" optout\n", "STOP"),
        ("stop texting me", None),
        ("yes", "START"),
        ("Help", "HELP"),
        ("Where is it?", None),
    ],
)
def test_inbound_message_is_posted_with_what_it_asks_for(
    phones: TwilioClient, receiver: Receiver, text: str, asked: str | None
) -> None:
    receiver.posts.clear()
    phones.write(text)
    [post] = until(lambda: receiver.posts)
    found = fields(post)
    assert (found["From"], found["To"]) == (ADA, phones.account.number)
    assert (found["Body"], found["SmsStatus"], found["FromCity"]) == (text, "received", "")
    assert found.get("OptOutType") == asked
    assert found["MessageSid"] == found["SmsSid"] == found["SmsMessageSid"]


def test_inbound_message_of_no_number_is_refused(phones: TwilioClient) -> None:
    answer = phones.box.refused("POST", "/twilio/written", {"from": "ada", "text": "STOP"})
    assert (answer.status, "phone number" in answer.json()["detail"]) == (400, True)


def test_account_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    first = credentials.ensure_twilio_account(tmp_path)
    path = tmp_path / credentials.TWILIO_ACCOUNT_FILE
    assert credentials.ensure_twilio_account(tmp_path) == first
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["auth_token"] == first.auth_token
    path.write_text("{}")
    with pytest.raises(UnreadableKeyError, match="delete it to get a new one"):
        credentials.ensure_twilio_account(tmp_path)
