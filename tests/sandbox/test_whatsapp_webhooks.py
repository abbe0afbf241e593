"""WhatsApp's webhooks: handshake, signature, statuses, and inbound messages."""

import json
import time
from pathlib import Path

import pytest

from sandbox import credentials
from sandbox.credentials import MetaAccount, UnreadableKeyError
from tests.support.clients.sandbox import Box, Receiver
from tests.support.providers.sandbox_whatsapp import (
    ADA,
    WhatsAppClient,
    is_signed,
    message,
    reports,
    template,
    text,
    values,
    wait_for,
)
from tests.support.waiting import until

WA_ID = ADA.removeprefix("+")
HELLO = {"name": "hello_world", "language": {"code": "en_US"}, "components": []}


@pytest.fixture
def chats(chat_box: Box) -> WhatsAppClient:
    return WhatsAppClient(box=chat_box)


def test_receiver_is_verified_once(chats: WhatsAppClient, meta_receiver: Receiver) -> None:
    for number in range(3):
        chats.post(text(reference=f"ref-{number}"))
        wait_for(meta_receiver, "sent", "delivered", reference=f"ref-{number}")
    [handshake] = meta_receiver.handshakes
    assert handshake["hub.mode"] == "subscribe"
    assert handshake["hub.verify_token"] == chats.account.verify_token
    assert handshake["hub.challenge"].isdigit()


@pytest.mark.parametrize(
    ("answers", "challenge", "words"),
    [
        ([403], None, "the handshake was answered with 403"),
        ([], "other", "something else than the challenge"),
        ([], "1", "something else than the challenge"),
    ],
)
def test_unverified_receiver_gets_nothing(
    chats: WhatsAppClient,
    meta_receiver: Receiver,
    answers: list[int],
    challenge: str | None,
    words: str,
) -> None:
    meta_receiver.answers, meta_receiver.challenge = answers * 1000, challenge
    chats.send()
    until(lambda: words in chats.box.get("/").data.decode())
    assert meta_receiver.posts == []
    meta_receiver.answers, meta_receiver.challenge = [], None
    until(lambda: len(reports(meta_receiver)) == 2)


def test_post_is_signed(chats: WhatsAppClient, meta_receiver: Receiver) -> None:
    chats.send()
    wait_for(meta_receiver, "sent", "delivered")
    for post in meta_receiver.posts:
        assert is_signed(post, chats.account.app_secret)
        assert post.headers["X-Hub-Signature"].startswith("sha1=")
        assert post.headers["Content-Type"] == "application/json"


def test_post_is_ascii_with_escaped_slashes(chats: WhatsAppClient, meta_receiver: Receiver) -> None:
    chats.post(text(reference="ref/é☂"))
    wait_for(meta_receiver, "sent", "delivered", reference="ref/é☂")
    raw = meta_receiver.posts[0].raw
    assert raw.isascii()
    assert b"ref\\/\\u00e9\\u2602" in raw


def test_status_has_metas_fields(chats: WhatsAppClient, meta_receiver: Receiver) -> None:
    before = int(time.time())
    chats.send()
    sent, _ = wait_for(meta_receiver, "sent", "delivered")
    after = time.time()
    value = values(meta_receiver.posts[0])[0]
    assert value["messaging_product"] == "whatsapp"
    assert value["metadata"] == {
        "display_phone_number": chats.account.display_phone_number,
        "phone_number_id": chats.account.phone_number_id,
    }
    assert (sent["recipient_id"], sent["biz_opaque_callback_data"]) == (WA_ID, "ref-1")
    assert before <= int(sent["timestamp"]) <= after
    assert value["contacts"] == [{"wa_id": WA_ID, "user_id": sent["recipient_user_id"]}]
    assert sent["conversation"]["origin"] == {"type": "service"}
    assert sent["pricing"]["category"] == "service"


def test_price_of_a_template_has_its_category(
    chats: WhatsAppClient, meta_receiver: Receiver
) -> None:
    chats.post(template(**HELLO))
    sent, _ = wait_for(meta_receiver, "sent", "delivered")
    assert sent["pricing"]["category"] == "utility"


def test_status_without_a_reference_has_only_the_message_id(
    chats: WhatsAppClient, meta_receiver: Receiver
) -> None:
    message_id = chats.post(text(biz_opaque_callback_data=None)).json()["messages"][0]["id"]
    until(lambda: len(meta_receiver.posts) > 0)
    [status] = values(meta_receiver.posts[0])[0]["statuses"]
    assert (status["id"], "biz_opaque_callback_data" in status) == (message_id, False)


def test_failed_status_has_its_error(chats: WhatsAppClient, meta_receiver: Receiver) -> None:
    chats.send("+447700900149")
    [failed] = wait_for(meta_receiver, "failed")
    [error] = failed["errors"]
    assert (error["code"], error["title"]) == (131049, "Meta chose not to deliver")
    assert error["error_data"]["details"]
    assert "conversation" not in failed


@pytest.mark.parametrize("name", ["a.webp", "a.GIF", "a.svg?x=1"])
def test_image_of_another_format_is_accepted_and_fails(
    chats: WhatsAppClient, meta_receiver: Receiver, name: str
) -> None:
    """As in https://github.com/chatwoot/chatwoot/issues/12260."""
    image = {"link": f"https://example.com/{name}"}
    assert chats.post(message("image", image)).status == 200
    [failed] = wait_for(meta_receiver, "failed")
    [error] = failed["errors"]
    assert error["code"] == 131053
    assert error["error_data"]["details"].startswith("Unsupported Image mime type image/")


def test_statuses_out_of_order_have_their_own_times(
    chats: WhatsAppClient, meta_receiver: Receiver
) -> None:
    chats.send("+447700900005")
    found = wait_for(meta_receiver, "read", "sent", "read", "delivered", "sent", "delivered")
    times = {item["status"]: int(item["timestamp"]) for item in found}
    assert times["sent"] < times["delivered"] < times["read"]


def test_simultaneous_statuses_share_a_post(chats: WhatsAppClient, meta_receiver: Receiver) -> None:
    for number in range(30):
        chats.post(text(reference=f"ref-{number}"))
    until(lambda: sum(len(values(post)) for post in meta_receiver.posts) == 60)
    sizes = [len(values(post)) for post in meta_receiver.posts]
    assert 1 < max(sizes) <= 10


def test_requested_statuses_are_sent_in_any_order_and_number(
    chats: WhatsAppClient, meta_receiver: Receiver
) -> None:
    chats.send("+447700900004")
    event = {"reference": "ref-1", "kind": "read", "duplicates": 2}
    chats.box.control("POST", "/events", event)
    wait_for(meta_receiver, "read", "read", "read")
    late = {"reference": "ref-1", "kind": "failed", "code": 131031, "timestamp": 1_700_000_000}
    chats.box.control("POST", "/events", late)
    failed = wait_for(meta_receiver, "read", "read", "read", "failed")[-1]
    assert (failed["errors"][0]["code"], failed["timestamp"]) == (131031, "1700000000")
    assert len({json.dumps(item) for item in wait_for(meta_receiver, *["read"] * 3, "failed")}) == 2


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ({"kind": "bounce"}, "There are: delivered, failed, read, sent"),
        ({"kind": "failed", "code": 5}, "There is no error 5"),
        ({"kind": "read", "recipient": "+447700900111"}, "no such recipient"),
    ],
)
def test_invalid_status_request_is_refused(
    chats: WhatsAppClient, event: dict[str, str | int], words: str
) -> None:
    chats.send()
    answer = chats.box.refused("POST", "/events", {"reference": "ref-1", **event})
    assert (answer.status, words in answer.json()["detail"]) == (400, True)


def test_inbound_text_is_posted(chats: WhatsAppClient, meta_receiver: Receiver) -> None:
    words = {"from": ADA, "text": "Where is it?", "name": "Ada", "duplicates": 1}
    answer = chats.box.control("POST", "/whatsapp/written", words)
    assert answer == {"request": 0, "kind": "written", "copies": 2}
    until(lambda: sum(len(values(post)) for post in meta_receiver.posts) == 2)
    first, second = [value for post in meta_receiver.posts for value in values(post)]
    assert first == second
    [contact], [message] = first["contacts"], first["messages"]
    assert (contact["wa_id"], contact["profile"]) == (WA_ID, {"name": "Ada"})
    assert (message["from"], message["type"]) == (WA_ID, "text")
    assert message["from_user_id"] == contact["user_id"]
    assert message["text"] == {"body": "Where is it?"}
    assert is_signed(meta_receiver.posts[0], chats.account.app_secret)


def test_inbound_button_is_posted_with_its_time(
    chats: WhatsAppClient, meta_receiver: Receiver
) -> None:
    words = {"from": ADA, "text": "Stop", "button": "b-stop", "timestamp": 1_700_000_000}
    chats.box.control("POST", "/whatsapp/written", words)
    until(lambda: len(meta_receiver.posts) > 0)
    [message] = values(meta_receiver.posts[0])[0]["messages"]
    assert message["timestamp"] == "1700000000"
    assert message["interactive"]["button_reply"] == {"id": "b-stop", "title": "Stop"}


@pytest.mark.parametrize(
    ("provider", "words", "status", "detail"),
    [
        ("whatsapp", {"from": "ada", "text": "x"}, 400, "must be a phone number"),
        ("whatsapp", {"from": ADA, "text": " "}, 400, "must not be empty"),
        ("whatsapp", {"from": ADA}, 400, "missing required field `text`"),
        ("whatsapp", {"from": ADA, "text": "x", "duplicates": -1}, 400, "duplicates"),
        ("sendgrid", {"from": "ada@example.com", "text": "x"}, 400, "takes no messages"),
        ("fcm", {"from": "device-1", "text": "x"}, 400, "takes no messages"),
        ("sms", {"from": ADA, "text": "x"}, 404, "There is no provider"),
    ],
)
def test_invalid_inbound_message_is_refused(
    chats: WhatsAppClient, provider: str, words: dict[str, str | int], status: int, detail: str
) -> None:
    answer = chats.box.refused("POST", f"/{provider}/written", words)
    assert (answer.status, detail in answer.json()["detail"]) == (status, True)


def test_account_is_created_once_and_readable_only_by_its_owner(tmp_path: Path) -> None:
    first = credentials.ensure_whatsapp_account(tmp_path)
    path = tmp_path / credentials.WHATSAPP_ACCOUNT_FILE
    assert credentials.ensure_whatsapp_account(tmp_path) == first
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_text())["verify_token"] == first.verify_token
    assert isinstance(first, MetaAccount)
    path.write_text("{}")
    with pytest.raises(UnreadableKeyError, match="delete it to get a new one"):
        credentials.ensure_whatsapp_account(tmp_path)
