"""SendGrid's events: signed, posted in batches, and retried until the receiver accepts."""

import base64
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_der_public_key

from providers.contract import InvalidSignatureError, ReceiptKind
from sandbox import credentials
from tests.support.clients.sandbox import Box, Post, Receiver, RunSandbox, mail
from tests.support.waiting import until

K = ReceiptKind


def test_service_accepts_the_signature(box: Box, receiver: Receiver) -> None:
    box.send(mail("spam@example.com"))
    receiver.wait_for("ref-1", "processed", "delivered", "spamreport")
    kinds = [receipt.kind for post in receiver.posts for receipt in box.receipts(post)]
    assert kinds == [K.QUEUED, K.DELIVERED, K.COMPLAINED]


def test_service_refuses_a_changed_body(box: Box, receiver: Receiver) -> None:
    box.send(mail())
    until(lambda: bool(receiver.posts))
    post = receiver.posts[0]
    changed = Post(headers=post.headers, raw=post.raw.replace(b"processed", b"delivered"))
    with pytest.raises(InvalidSignatureError):
        box.receipts(changed)


@pytest.mark.parametrize(
    ("recipient", "kind", "fields"),
    [
        ("bounce", K.BOUNCED, {"type": "bounce", "status": "5.1.1"}),
        ("blocked", K.BLOCKED, {"type": "blocked", "status": "5.7.1"}),
        ("dropped", K.REJECTED, {"reason": "Bounced Address"}),
        ("soft-bounce", K.DEFERRED, {"attempt": "1"}),
        ("unsubscribed", K.UNSUBSCRIBED, {}),
    ],
)
def test_event_has_sendgrids_fields(
    box: Box, receiver: Receiver, recipient: str, kind: ReceiptKind, fields: dict[str, str]
) -> None:
    args = {"reference": "ref-1", "shop": "main"}
    to = [{"email": f"{recipient}@example.com"}]
    before = int(time.time())
    message_id = box.send(mail(personalizations=[{"to": to, "custom_args": args}])).headers[
        "X-Message-Id"
    ]

    def receipts() -> list[ReceiptKind]:
        return [receipt.kind for post in receiver.posts for receipt in box.receipts(post)]

    until(lambda: kind in receipts())
    after = time.time()
    event = receiver.events[receipts().index(kind)]
    assert fields.items() <= event.items()
    assert (event["reference"], event["shop"]) == ("ref-1", "main")
    assert event["email"] == f"{recipient}@example.com"
    assert before <= event["timestamp"] <= after
    assert event["sg_message_id"].startswith(f"{message_id}.")
    assert message_id in event["smtp-id"]
    assert len({event["sg_event_id"] for event in receiver.events}) == len(receiver.events)


def test_simultaneous_events_share_a_post(box: Box, receiver: Receiver) -> None:
    for number in range(120):
        box.send(mail(reference=f"ref-{number}"))
    until(lambda: len(receiver.events) == 240)
    sizes = [len(post.events) for post in receiver.posts]
    assert max(sizes) <= 100
    assert len(sizes) < 60


def test_refused_webhook_is_repeated(box: Box, receiver: Receiver) -> None:
    receiver.answers = [500, 403, 302]
    box.send(mail("dropped@example.com"))
    receiver.wait_for("ref-1", "dropped")
    until(lambda: box.control("GET", "/counters")["webhooks"]["sent"] == 1)
    assert box.control("GET", "/counters")["webhooks"] == {
        "requests": 4,
        "refused": 3,
        "sent": 1,
        "failed": 0,
        "waiting": 0,
    }
    [event] = box.control("GET", "/messages")["results"][0]["events"]
    assert (event["state"], event["tries"], event["answer"]) == ("sent", 4, "200")


def test_webhook_fails_after_its_retries(box: Box, receiver: Receiver) -> None:
    receiver.answers = [503] * 1000
    box.send(mail("dropped@example.com"))
    until(lambda: box.control("GET", "/counters")["webhooks"]["failed"] == 1)
    [event] = box.control("GET", "/messages")["results"][0]["events"]
    assert (event["state"], event["answer"]) == ("failed", "503")
    # Each pause is twice the one before: in a second there is room for no more, and a busy machine
    # has time for fewer.
    assert 2 <= event["tries"] <= 6


def test_unavailable_receiver_does_not_delay_requests(run: RunSandbox, receiver: Receiver) -> None:
    receiver.answering.clear()
    for url in ("http://127.0.0.1:9/", receiver.url):
        with run(webhook_url=url) as box:
            assert {box.send(mail()).status for _ in range(50)} == {202}
            until(lambda box=box: box.control("GET", "/counters")["webhooks"]["waiting"] > 0)
            assert receiver.posts == []


def test_events_without_a_receiver_fail_with_the_reason(run: RunSandbox) -> None:
    with run() as box:
        box.send(mail("dropped@example.com"))
        until(lambda: box.control("GET", "/counters")["webhooks"]["failed"] == 1)
        [event] = box.control("GET", "/messages")["results"][0]["events"]
        assert event["answer"] == "There is no webhook URL."


def test_key_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    data = tmp_path / "new" / "folder"
    public = credentials.ensure_webhook_key(data)
    assert credentials.ensure_webhook_key(data) == public
    assert (data / credentials.WEBHOOK_PUBLIC_KEY_FILE).read_text() == f"{public}\n"
    assert (data / credentials.WEBHOOK_PRIVATE_KEY_FILE).stat().st_mode & 0o777 == 0o600
    load_der_public_key(base64.b64decode(public))


def test_deleted_public_key_is_written_again(tmp_path: Path) -> None:
    public = credentials.ensure_webhook_key(tmp_path)
    (tmp_path / credentials.WEBHOOK_PUBLIC_KEY_FILE).unlink()
    assert credentials.ensure_webhook_key(tmp_path) == public
    assert (tmp_path / credentials.WEBHOOK_PUBLIC_KEY_FILE).read_text().strip() == public


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN PRIVATE KEY-----\n"])
def test_unreadable_key_raises_an_error_that_names_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / credentials.WEBHOOK_PRIVATE_KEY_FILE).write_bytes(content)
    with pytest.raises(credentials.UnreadableKeyError, match=credentials.WEBHOOK_PRIVATE_KEY_FILE):
        credentials.ensure_webhook_key(tmp_path)
