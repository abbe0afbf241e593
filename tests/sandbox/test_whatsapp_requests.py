"""Requests to the sandbox's Cloud API: accepted and refused bodies."""

from typing import Any

import pytest

from sandbox.config import WHATSAPP_API_VERSION
from sandbox.log import REQUESTS_FILE, read_records
from tests.support.clients.sandbox import Box
from tests.support.providers.sandbox_whatsapp import (
    ADA,
    WhatsAppClient,
    details,
    error,
    message,
    text,
)
from tests.support.tables import each_case

OWN = "+15550100000"


@pytest.fixture
def chats(shared_box: Box) -> WhatsAppClient:
    return WhatsAppClient(box=shared_box)


def test_accepted_text_has_an_id(chats: WhatsAppClient) -> None:
    answer = chats.send()
    body = answer.json()
    assert answer.status == 200
    assert body["messaging_product"] == "whatsapp"
    assert body["contacts"] == [{"input": ADA, "wa_id": ADA.removeprefix("+")}]
    [sent] = body["messages"]
    assert sent["id"].startswith("wamid.")
    assert set(sent) == {"id"}
    assert chats.box.requests()[0]["message_id"] == sent["id"]


def test_text_is_recorded_without_the_access_token(chats: WhatsAppClient) -> None:
    chats.send(key="EAAcanary")
    path = chats.box.sandbox.data / REQUESTS_FILE
    record = list(read_records(path))[-1]
    assert record.json() == text()
    assert (record.provider, record.status, record.accepted) == ("whatsapp", 200, True)
    assert (record.recipients, record.references) == ((ADA,), ("ref-1",))
    assert record.title == "Hello Ada"
    assert "canary" not in path.read_text()


@pytest.mark.parametrize(
    ("key", "status", "code", "subcode"),
    [
        (None, 401, 0, None),
        ("", 401, 0, None),
        ("other", 401, 190, None),
        ("EAAexpired", 401, 190, 463),
        ("EAArevoked", 401, 190, 460),
        ("EAAnoscope", 403, 10, None),
    ],
)
def test_invalid_access_token_is_refused(
    chats: WhatsAppClient, key: str | None, status: int, code: int, subcode: int | None
) -> None:
    answer = chats.send(key=key)
    found = error(answer)
    assert (answer.status, found["code"], found.get("error_subcode")) == (status, code, subcode)
    assert found["type"] == "OAuthException"


def test_other_phone_number_id_is_an_unknown_object(chats: WhatsAppClient) -> None:
    answer = chats.graph("POST", "999/messages", text())
    found = error(answer)
    assert (answer.status, found["code"], found["error_subcode"]) == (400, 100, 33)
    assert found["type"] == "GraphMethodException"
    assert "Object with ID '999' does not exist" in found["message"]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [("GET", "100000000000001/messages", 100), ("POST", "x/y", 2500), ("GET", "me", 2500)],
)
def test_other_path_or_method_is_refused(
    chats: WhatsAppClient, method: str, path: str, code: int
) -> None:
    answer = chats.graph(method, path, text())
    assert (answer.status, error(answer)["code"]) == (400, code)


@pytest.mark.parametrize("version", ["v16.0", "v23.0", WHATSAPP_API_VERSION])
def test_known_version_is_accepted(chats: WhatsAppClient, version: str) -> None:
    assert chats.send(version=version).status == 200


@pytest.mark.parametrize("version", ["v26.1", "v27.0", "v99.0"])
def test_later_version_is_an_unknown_path(chats: WhatsAppClient, version: str) -> None:
    answer = chats.send(version=version)
    assert (answer.status, error(answer)["code"]) == (400, 2500)


def test_errors_have_a_subcode_only_in_old_versions(chats: WhatsAppClient) -> None:
    found = [error(chats.send("x", version=version)) for version in ("v15.0", "v16.0")]
    assert [item.get("error_subcode") for item in found] == [2494010, None]


@pytest.mark.parametrize("raw", [b"", b"{", b'"\xff"', b"[" * 100_000, b"{} {}"])
def test_body_that_is_not_json_is_refused(chats: WhatsAppClient, raw: bytes) -> None:
    answer = chats.post(raw)
    assert (answer.status, error(answer)["code"]) == (400, 100)


@pytest.mark.parametrize("body", [[], "text", 5])
def test_body_that_is_no_object_is_refused(chats: WhatsAppClient, body: Any) -> None:
    assert error(chats.post(body))["code"] == 100


@each_case(
    "changes, code, words",
    [
        ({"messaging_product": None}, 100, "messaging_product is required"),
        ({"messaging_product": "sms"}, 100, "messaging_product is required"),
        ({"recipient_type": "group"}, 100, "recipient_type"),
        ({"to": None}, 100, "The parameter to is required."),
        ({"to": ""}, 100, "The parameter to is required."),
        ({"to": "ada@example.com"}, 131009, "must be a phone number"),
        ({"to": "00447700900123"}, 131009, "must be a phone number"),
        ({"to": 447700900123}, 131009, "must be a phone number"),
        ({"to": "+44"}, 131009, "must be a phone number"),
        ({"to": OWN}, 131021, "the same"),
        ({"type": "poem"}, 100, 'TEXT, VIDEO} - got "poem"'),
        ({"type": 5}, 100, "got"),
        ({"type": []}, 100, "got"),
        ({"type": "location", "text": None, "location": {}}, 131051, "location"),
        ({"type": "interactive", "text": None, "interactive": {}}, 131051, "interactive"),
        ({"texts": {}}, 100, 'Unexpected key "texts".'),
        ({"text": None}, 131008, "text.body"),
        ({"text": "Hello"}, 131008, "text.body"),
        ({"text": {"body": ""}}, 131008, "text.body"),
        ({"text": {"body": 5}}, 131008, "text.body"),
        ({"text": {"body": "x" * 4097}}, 100, "at most 4096 characters"),
        ({"text": {"body": "x", "preview_url": "yes"}}, 100, "must be a boolean"),
        ({"text": {"body": "x", "title": "y"}}, 100, 'Unexpected key "title" on param "text".'),
        ({"biz_opaque_callback_data": 5}, 100, "must be a string"),
        ({"biz_opaque_callback_data": "x" * 513}, 100, "at most 512 characters"),
        ({"context": {}}, 131009, "the id of a message"),
    ],
)
def test_invalid_message_is_refused_with_its_code_and_details(
    chats: WhatsAppClient, changes: dict[str, Any], code: int, words: str
) -> None:
    answer = chats.post({**text(), **changes} if None not in changes.values() else text(**changes))
    found = error(answer)
    assert (answer.status, found["code"]) == (400, code)
    assert found["message"].startswith(f"(#{code}) ")
    assert words in details(answer)
    recorded = chats.box.requests()[0]
    assert (recorded["outcome"], recorded["accepted"]) == ("invalid-request", False)
    assert recorded["reason"].startswith(f"({code}) ")


@pytest.mark.parametrize(
    "body",
    [
        text(to="44 7700 900123"),
        text(to="+44 (7700) 900-123"),
        text(type=None),
        text(context={"message_id": "wamid.x"}),
        text(biz_opaque_callback_data=None),
        message("text", {"body": "x" * 4096, "preview_url": True}),
        message("image", {"link": "https://example.com/a.png", "caption": "A picture"}),
        message("image", {"id": "123"}),
    ],
)
def test_unusual_message_is_accepted(chats: WhatsAppClient, body: Any) -> None:
    answer = chats.post(body)
    assert answer.status == 200, answer.data
    path = f"/messages/{chats.box.requests()[0]['id']}"
    assert chats.box.get(path).status == 200


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ({}, 131008),
        ({"link": "https://example.com/a.png", "id": "1"}, 131008),
        ({"link": "file:///etc/passwd"}, 131009),
        ({"link": "https://["}, 131009),
        ({"id": "1", "caption": "x" * 1025}, 100),
    ],
)
def test_invalid_image_is_refused(chats: WhatsAppClient, content: Any, code: int) -> None:
    assert error(chats.post(message("image", content)))["code"] == code
