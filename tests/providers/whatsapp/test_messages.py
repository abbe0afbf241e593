"""WhatsApp: what is sent to whom, in whose words, and how often.

Every message is compared with the one that pywa makes of the same words: see ``Checked``.
"""

from dataclasses import replace
from typing import Any

import pytest

from domain.errors import FailureCode, PermanentError, ProviderError, TransientError
from providers.contract import SendRequest, SendResult, WhatsAppTemplateMessage
from providers.whatsapp import provider
from providers.whatsapp.provider import MAX_CAPTION_LENGTH, MAX_TEXT_LENGTH, WhatsApp
from providers.whatsapp.responses import MAX_ID_LENGTH
from tests.support.fakes import socket_server
from tests.support.providers.whatsapp import (
    API_VERSION,
    HELLO,
    ORDER,
    PHONE,
    PHONE_NUMBER_ID,
    REFERENCE,
    acceptance,
    answer,
    attempt,
    number,
    refused,
    whatsapp_message,
)
from tests.support.waiting import LIMIT

LINK = "https://shop.example/orders/1001"


PICTURE = "https://shop.example/1001.png"


def sent(message: SendRequest) -> dict[str, Any]:
    """Send a message; return the one that went."""
    result, got = attempt(message, acceptance())
    assert isinstance(result, SendResult)
    (one,) = got
    return one


# Our own words.


def test_who_has_written_gets_a_text_with_our_reference() -> None:
    assert sent(whatsapp_message()) == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": PHONE,
        "type": "text",
        "text": {"body": "Your payment has arrived.", "preview_url": False},
        "biz_opaque_callback_data": REFERENCE,
    }


def test_a_message_is_one_post_to_the_number_with_the_token() -> None:
    handler = socket_server.KeepAlive(acceptance())
    with socket_server.serving(handler) as server:
        number(base_url=server.url).send(whatsapp_message(), timeout=LIMIT)
    (request,) = handler.requests
    head = request.partition(b"\r\n\r\n")[0].decode()
    assert head.startswith(f"POST /{API_VERSION}/{PHONE_NUMBER_ID}/messages HTTP/1.1\r\n")
    assert "\r\nAuthorization: Bearer EAAsecret\r\n" in head
    assert "\r\nContent-Type: application/json" in head


def test_the_version_of_the_api_can_be_chosen() -> None:
    handler = socket_server.KeepAlive(acceptance())
    with socket_server.serving(handler) as server:
        number(base_url=server.url, version="v27.0").send(whatsapp_message(), timeout=LIMIT)
    assert handler.requests[0].startswith(b"POST /v27.0/")


@pytest.mark.parametrize(
    ("text", "has_preview"),
    [
        (f"See {LINK}", True),
        ("See http://shop.example", True),
        ("See shop.example", False),
        ("https:// is what a link begins with", False),
        ("ftp://shop.example", False),
    ],
)
def test_a_text_with_a_link_shows_what_is_behind_it(text: str, has_preview: bool) -> None:
    assert sent(whatsapp_message(text))["text"] == {"body": text, "preview_url": has_preview}


@pytest.mark.parametrize(
    ("text", "link", "body"),
    [
        ("Shipped.", LINK, f"Shipped.\n\n{LINK}"),
        (f"Shipped: {LINK}.", LINK, f"Shipped: {LINK}."),
        ("Shipped.", "shop://orders/1001", "Shipped."),
        ("Shipped.", "http://shop.example", "Shipped."),
        ("", LINK, LINK),
    ],
    ids=["below the text", "in it already", "for an app", "not secure", "alone"],
)
def test_the_link_of_a_notification_is_in_the_text_once(text: str, link: str, body: str) -> None:
    assert sent(whatsapp_message(text, deep_link=link))["text"]["body"] == body


def test_a_picture_takes_the_text_as_its_caption() -> None:
    message = sent(whatsapp_message("Shipped.", image_url=PICTURE, deep_link=LINK))
    assert message["type"] == "image"
    assert message["image"] == {"link": PICTURE, "caption": f"Shipped.\n\n{LINK}"}


def test_a_picture_without_a_text_has_no_caption() -> None:
    assert sent(whatsapp_message("", image_url=PICTURE))["image"] == {"link": PICTURE}


@pytest.mark.parametrize(
    ("length", "kind"), [(MAX_CAPTION_LENGTH, "image"), (MAX_CAPTION_LENGTH + 1, "text")]
)
def test_words_that_do_not_fit_below_a_picture_go_without_it(length: int, kind: str) -> None:
    assert sent(whatsapp_message("x" * length, image_url=PICTURE))["type"] == kind


def test_a_text_has_a_longest_length() -> None:
    assert len(sent(whatsapp_message("x" * MAX_TEXT_LENGTH))["text"]["body"]) == MAX_TEXT_LENGTH
    for message in (
        whatsapp_message("x" * (MAX_TEXT_LENGTH + 1)),
        whatsapp_message("x" * MAX_TEXT_LENGTH, deep_link=LINK),
    ):
        error, got = attempt(message)
        assert isinstance(error, PermanentError)
        assert (error.code, got) == (FailureCode.TOO_LARGE, [])


@pytest.mark.parametrize(
    "text",
    ["👩‍👩‍👧 café e\u0301 مرحبا", "*bold* _it_ `x`", "a\nb\r\n\r\nc\t", '"\\ \u2028', "{{1}} $x"],
)
def test_texts_are_passed_on_as_they_are(text: str) -> None:
    assert sent(whatsapp_message(text))["text"]["body"] == text


def test_half_a_character_is_refused_before_anybody_is_called() -> None:
    message = whatsapp_message("\ud800")
    handler = socket_server.KeepAlive(acceptance())
    plain = WhatsApp(**{name: getattr(number(), name) for name in WhatsApp.__dataclass_fields__})
    with socket_server.serving(handler) as server, pytest.raises(PermanentError) as error:
        replace(plain, base_url=server.url).send(message, timeout=LIMIT)
    assert handler.requests == []
    assert error.value.code is FailureCode.RENDER_FAILED


# Approved words.


def test_who_has_not_written_gets_the_approved_template() -> None:
    message = sent(
        whatsapp_message(whatsapp_template=ORDER, is_service_window_open=False, image_url=PICTURE)
    )
    assert message["type"] == "template"
    assert message["biz_opaque_callback_data"] == REFERENCE
    assert message["template"] == {
        "name": "order_shipped",
        "language": {"code": "en"},
        "components": [
            {
                "type": "body",
                "parameters": [{"type": "text", "text": "Ada"}, {"type": "text", "text": "1001"}],
            }
        ],
    }


def test_a_template_without_places_has_no_components() -> None:
    message = sent(whatsapp_message(whatsapp_template=HELLO, is_service_window_open=False))
    assert message["template"] == {"name": "hello_world", "language": {"code": "en_US"}}


@pytest.mark.parametrize(
    ("value", "passed_on"),
    [
        ("line one\nline two", "line one line two"),
        ("a \r\n\r\n\t b", "a b"),
        ("a\u2028b\u2029c\u0085d", "a b c d"),
        ("a     b", "a b"),
        ("a    b", "a    b"),
        ("👩‍👩‍👧 {{1}}", "👩‍👩‍👧 {{1}}"),
    ],
)
def test_what_stands_in_a_place_is_one_line_as_whatsapp_wants_it(
    value: str, passed_on: str
) -> None:
    template = WhatsAppTemplateMessage(name="order_shipped", language="pt_PT", parameters=(value,))
    content = sent(whatsapp_message(whatsapp_template=template, is_service_window_open=False))[
        "template"
    ]
    assert content["language"] == {"code": "pt_PT"}
    assert content["components"][0]["parameters"] == [{"type": "text", "text": passed_on}]


def test_who_may_be_sent_our_words_is_not_sent_the_template() -> None:
    assert sent(whatsapp_message(whatsapp_template=ORDER))["type"] == "text"


def test_without_a_template_nobody_is_called() -> None:
    error, got = attempt(whatsapp_message(is_service_window_open=False))
    assert isinstance(error, PermanentError)
    assert (error.code, got) == (FailureCode.WINDOW_CLOSED, [])
    assert "24-hour" in error.reason


def test_a_text_that_is_too_long_does_not_matter_to_the_template() -> None:
    message = whatsapp_message("x" * 5_000, whatsapp_template=ORDER, is_service_window_open=False)
    assert sent(message)["type"] == "template"


# The window was open, as far as we knew.


def test_whatsapp_may_know_better_and_then_gets_the_template_once() -> None:
    result, got = attempt(whatsapp_message(whatsapp_template=ORDER), refused(131047), acceptance())
    assert [message["type"] for message in got] == ["text", "template"]
    assert {message["biz_opaque_callback_data"] for message in got} == {REFERENCE}
    assert result.provider_id == "wamid.1"
    assert result.response.excerpt == "Sent as template order_shipped (en)."


def test_without_a_template_it_is_not_tried_again() -> None:
    error, got = attempt(whatsapp_message(), refused(131047))
    assert isinstance(error, PermanentError)
    assert (error.code, len(got)) == (FailureCode.WINDOW_CLOSED, 1)
    assert error.response is not None
    assert error.response.code == "131047"


def test_a_template_that_is_refused_is_not_tried_again() -> None:
    error, got = attempt(
        whatsapp_message(whatsapp_template=ORDER), refused(131047), refused(131047)
    )
    assert isinstance(error, PermanentError)
    assert (error.code, len(got)) == (FailureCode.WINDOW_CLOSED, 2)


@pytest.mark.parametrize("code", [131026, 131049, 100, 131000, 190])
def test_no_other_refusal_is_answered_with_the_template(code: int) -> None:
    error, got = attempt(whatsapp_message(whatsapp_template=ORDER), refused(code))
    assert isinstance(error, ProviderError)
    assert len(got) == 1


def test_no_doubt_is_answered_with_the_template() -> None:
    with (
        socket_server.serving(socket_server.resetting) as server,
        pytest.raises(TransientError) as error,
    ):
        number(base_url=server.url).send(whatsapp_message(whatsapp_template=ORDER), timeout=LIMIT)
    assert error.value.is_ambiguous
    assert server.connections == 1


def test_a_template_without_time_for_it_waits_for_the_next_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(provider, "MIN_SECOND_REQUEST_SECONDS", LIMIT)
    error, got = attempt(whatsapp_message(whatsapp_template=ORDER), refused(131047))
    assert isinstance(error, TransientError)
    assert (error.is_ambiguous, len(got)) == (False, 1)


# What is accepted.


def test_an_acceptance_has_the_messages_id() -> None:
    result, _ = attempt(whatsapp_message(), acceptance())
    assert (result.provider_id, result.response.status, result.is_delivered) == (
        "wamid.1",
        200,
        False,
    )
    assert result.response.code is None


@pytest.mark.parametrize("state", ["held_for_quality_assessment", "paused"])
def test_a_template_that_is_held_for_a_check_is_sent_and_says_so(state: str) -> None:
    message = whatsapp_message(whatsapp_template=ORDER, is_service_window_open=False)
    result, _ = attempt(message, acceptance(message_status=state))
    assert (result.provider_id, result.response.code) == ("wamid.1", state)
    result, _ = attempt(message, acceptance(message_status="accepted"))
    assert result.response.code is None


def test_an_id_is_kept_up_to_a_length() -> None:
    result, _ = attempt(whatsapp_message(), answer({"messages": [{"id": "w" * 5_000}]}))
    assert result.provider_id == "w" * MAX_ID_LENGTH


# Who sends.


def test_neither_token_nor_secrets_are_shown() -> None:
    shown = repr(number(token="EAAcanary", app_secret="canary", verify_token="canary"))
    assert "canary" not in shown
    assert PHONE_NUMBER_ID in shown


def test_an_account_is_a_number_and_a_token() -> None:
    accounts = {
        number(**fields).account
        for fields in ({}, {"token": "EAAother"}, {"phone_number_id": "2"}, {"base_url": "x"})
    }
    assert len(accounts) == 3
    assert all(one.startswith("whatsapp:") and len(one) == 17 for one in accounts)
