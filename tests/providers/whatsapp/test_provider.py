"""WhatsApp messages, templates, and answers. ``Checked`` compares messages with those of pywa."""

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import pywa

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from notifyproject.platform.event_loop import run
from providers.contract import SendRequest, SendResult, WhatsAppTemplateMessage
from providers.response_rules import ResponseKind
from providers.whatsapp import provider
from providers.whatsapp.provider import MAX_CAPTION_LENGTH, MAX_TEXT_LENGTH, WhatsApp
from providers.whatsapp.responses import CODE_RULES, MAX_ID_LENGTH, rule_for
from tests.support.factories.notifications import FIXED_NOON
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
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

LINK = "https://shop.example/orders/1001"
PICTURE = "https://shop.example/1001.png"


def sent(message: SendRequest) -> dict[str, Any]:
    result, got = attempt(message, acceptance())
    assert isinstance(result, SendResult)
    (only,) = got
    return only


def test_text_has_our_reference() -> None:
    assert sent(whatsapp_message()) == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": PHONE,
        "type": "text",
        "text": {"body": "Your payment has arrived.", "preview_url": False},
        "biz_opaque_callback_data": REFERENCE,
    }


@each_case("version", [API_VERSION, "v27.0"])
def test_message_is_one_post_with_the_token(version: str) -> None:
    handler = socket_server.KeepAlive(acceptance())
    with socket_server.serving(handler) as server:
        run(number(base_url=server.url, version=version).send(whatsapp_message(), timeout=LIMIT))
    (request,) = handler.requests
    head = request.partition(b"\r\n\r\n")[0].decode()
    assert head.startswith(f"POST /{version}/{PHONE_NUMBER_ID}/messages HTTP/1.1\r\n")
    assert "\r\nAuthorization: Bearer EAAsecret\r\n" in head
    assert "\r\nContent-Type: application/json" in head


@each_case(
    "text, has_preview",
    [
        (f"See {LINK}", True),
        ("See http://shop.example", True),
        ("See shop.example", False),
        ("https:// is what a link begins with", False),
        ("ftp://shop.example", False),
    ],
)
def test_link_in_the_text_has_a_preview(text: str, has_preview: bool) -> None:
    assert sent(whatsapp_message(text))["text"] == {"body": text, "preview_url": has_preview}


@each_case(
    "text, link, body",
    [
        ("Shipped.", LINK, f"Shipped.\n\n{LINK}"),
        (f"Shipped: {LINK}.", LINK, f"Shipped: {LINK}."),
        ("Shipped.", "shop://orders/1001", "Shipped."),
        ("Shipped.", "http://shop.example", "Shipped."),
        ("", LINK, LINK),
    ],
)
def test_deep_link_is_in_the_text_once(text: str, link: str, body: str) -> None:
    assert sent(whatsapp_message(text, deep_link=link))["text"]["body"] == body


def test_image_has_the_text_as_caption() -> None:
    assert sent(whatsapp_message("", image_url=PICTURE))["image"] == {"link": PICTURE}
    message = sent(whatsapp_message("Shipped.", image_url=PICTURE, deep_link=LINK))
    assert message["type"] == "image"
    assert message["image"] == {"link": PICTURE, "caption": f"Shipped.\n\n{LINK}"}


@each_case("length, kind", [(MAX_CAPTION_LENGTH, "image"), (MAX_CAPTION_LENGTH + 1, "text")])
def test_text_too_long_for_a_caption_is_sent_without_image(length: int, kind: str) -> None:
    assert sent(whatsapp_message("x" * length, image_url=PICTURE))["type"] == kind


OTHER_IMAGES = ["a.webp", "a.gif", "A.WEBP", "a.svg?v=2", "x/a.avif#1", "a.heic", "a.bmp", "a.tiff"]


@each_case("name", OTHER_IMAGES)
def test_image_that_whatsapp_cannot_show_is_left_out(name: str) -> None:
    """As in https://github.com/chatwoot/chatwoot/issues/12260: accepted, and failed later."""
    message = sent(whatsapp_message("Shipped.", image_url=f"https://cdn.example.com/{name}"))
    assert (message["type"], message["text"]["body"]) == ("text", "Shipped.")


@each_case("name", ["a.jpg", "a.JPEG", "a.png", "a", "a.php?f=b.webp", "webp", "a.jfif"])
def test_other_image_is_sent(name: str) -> None:
    url = f"https://cdn.example.com/{name}"
    assert sent(whatsapp_message("Shipped.", image_url=url))["image"]["link"] == url


def test_text_has_a_maximum_length() -> None:
    assert len(sent(whatsapp_message("x" * MAX_TEXT_LENGTH))["text"]["body"]) == MAX_TEXT_LENGTH
    for message in (
        whatsapp_message("x" * (MAX_TEXT_LENGTH + 1)),
        whatsapp_message("x" * MAX_TEXT_LENGTH, deep_link=LINK),
    ):
        error, got = attempt(message)
        assert isinstance(error, PermanentError)
        assert (error.code, got) == (FailureCode.TOO_LARGE, [])


@each_case(
    "text",
    ["👩‍👩‍👧 café e\u0301 مرحبا", "*bold* _it_ `x`", "a\nb\r\n\r\nc\t", '"\\ \u2028', "{{1}} $x"],
)
def test_texts_are_passed_on_unchanged(text: str) -> None:
    assert sent(whatsapp_message(text))["text"]["body"] == text


def test_unencodable_text_is_not_sent() -> None:
    message = whatsapp_message("\ud800")
    handler = socket_server.KeepAlive(acceptance())
    plain = WhatsApp(**{name: getattr(number(), name) for name in WhatsApp.__dataclass_fields__})
    with socket_server.serving(handler) as server, pytest.raises(PermanentError) as error:
        run(replace(plain, base_url=server.url).send(message, timeout=LIMIT))
    assert handler.requests == []
    assert error.value.code is FailureCode.RENDER_FAILED


def test_closed_window_uses_the_template() -> None:
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


def test_template_without_parameters_has_no_components() -> None:
    message = sent(whatsapp_message(whatsapp_template=HELLO, is_service_window_open=False))
    assert message["template"] == {"name": "hello_world", "language": {"code": "en_US"}}


def test_authentication_template_has_the_code_in_body_and_button() -> None:
    code = WhatsAppTemplateMessage(
        name="mfa_code", language="en", parameters=("123456",), button="123456"
    )
    message = sent(whatsapp_message(whatsapp_template=code, is_service_window_open=False))
    text = [{"type": "text", "text": "123456"}]
    assert message["template"]["components"] == [
        {"type": "body", "parameters": text},
        {"type": "button", "sub_type": "url", "index": "0", "parameters": text},
    ]


@each_case(
    "value, passed_on",
    [
        ("line one\nline two", "line one line two"),
        ("a \r\n\r\n\t b", "a b"),
        ("a\u2028b\u2029c\u0085d", "a b c d"),
        ("a     b", "a b"),
        ("a    b", "a    b"),
        ("👩‍👩‍👧 {{1}}", "👩‍👩‍👧 {{1}}"),
    ],
)
def test_template_parameter_is_one_line(value: str, passed_on: str) -> None:
    template = WhatsAppTemplateMessage(name="order_shipped", language="pt_PT", parameters=(value,))
    content = sent(whatsapp_message(whatsapp_template=template, is_service_window_open=False))[
        "template"
    ]
    assert content["language"] == {"code": "pt_PT"}
    assert content["components"][0]["parameters"] == [{"type": "text", "text": passed_on}]


def test_open_window_uses_the_text() -> None:
    assert sent(whatsapp_message(whatsapp_template=ORDER))["type"] == "text"


def test_closed_window_without_template_sends_nothing() -> None:
    error, got = attempt(whatsapp_message(is_service_window_open=False))
    assert isinstance(error, PermanentError)
    assert (error.code, got) == (FailureCode.WINDOW_CLOSED, [])
    assert "24-hour" in error.reason


def test_template_ignores_the_length_of_the_text() -> None:
    message = whatsapp_message("x" * 5_000, whatsapp_template=ORDER, is_service_window_open=False)
    assert sent(message)["type"] == "template"


def test_window_closed_answer_is_followed_by_the_template() -> None:
    result, got = attempt(whatsapp_message(whatsapp_template=ORDER), refused(131047), acceptance())
    assert [message["type"] for message in got] == ["text", "template"]
    assert {message["biz_opaque_callback_data"] for message in got} == {REFERENCE}
    assert result.provider_id == "wamid.1"
    assert result.response.excerpt == "Sent as template order_shipped (en)."


def test_window_closed_without_template_is_permanent() -> None:
    error, got = attempt(whatsapp_message(), refused(131047))
    assert isinstance(error, PermanentError)
    assert (error.code, len(got)) == (FailureCode.WINDOW_CLOSED, 1)
    assert error.response.code == "131047"


def test_refused_template_is_not_repeated() -> None:
    error, got = attempt(
        whatsapp_message(whatsapp_template=ORDER), refused(131047), refused(131047)
    )
    assert isinstance(error, PermanentError)
    assert (error.code, len(got)) == (FailureCode.WINDOW_CLOSED, 2)


@each_case("code", [131026, 131049, 100, 131000, 190])
def test_other_refusal_is_not_followed_by_the_template(code: int) -> None:
    error, got = attempt(whatsapp_message(whatsapp_template=ORDER), refused(code))
    assert isinstance(error, ProviderError)
    assert len(got) == 1


def test_ambiguous_outcome_is_not_followed_by_the_template() -> None:
    with (
        socket_server.serving(socket_server.resetting) as server,
        pytest.raises(TransientError) as error,
    ):
        run(
            number(base_url=server.url).send(
                whatsapp_message(whatsapp_template=ORDER), timeout=LIMIT
            )
        )
    assert error.value.is_ambiguous
    assert server.connections == 1


def test_template_without_time_waits_for_the_next_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "MIN_SECOND_REQUEST_SECONDS", LIMIT)
    error, got = attempt(whatsapp_message(whatsapp_template=ORDER), refused(131047))
    assert isinstance(error, TransientError)
    assert (error.is_ambiguous, len(got)) == (False, 1)


def test_acceptance_has_the_message_id() -> None:
    result, _ = attempt(whatsapp_message(), acceptance())
    assert (result.provider_id, result.response.status, result.is_delivered) == (
        "wamid.1",
        200,
        False,
    )
    assert result.response.code is None


@each_case("state", ["held_for_quality_assessment", "paused"])
def test_template_held_for_review_counts_as_sent(state: str) -> None:
    message = whatsapp_message(whatsapp_template=ORDER, is_service_window_open=False)
    result, _ = attempt(message, acceptance(message_status=state))
    assert (result.provider_id, result.response.code) == ("wamid.1", state)
    result, _ = attempt(message, acceptance(message_status="accepted"))
    assert result.response.code is None


def test_message_id_is_truncated() -> None:
    result, _ = attempt(whatsapp_message(), answer({"messages": [{"id": "w" * 5_000}]}))
    assert result.provider_id == "w" * MAX_ID_LENGTH


def test_repr_hides_token_and_secrets() -> None:
    shown = repr(number(token="EAAcanary", app_secret="canary", verify_token="canary"))
    assert "canary" not in shown
    assert PHONE_NUMBER_ID in shown


def test_account_is_number_and_token() -> None:
    accounts = {
        number(**fields).account
        for fields in ({}, {"token": "EAAother"}, {"phone_number_id": "2"}, {"base_url": "x"})
    }
    assert len(accounts) == 3
    assert all(account.startswith("whatsapp:") and len(account) == 17 for account in accounts)


K, F, A = ResponseKind, FailureCode, RecipientAction


TABLE = {
    K.TRANSIENT: (
        1,
        2,
        4,
        17,
        32,
        613,
        *range(80_000, 80_015),
        130429,
        131000,
        131016,
        131056,
        131057,
        341,
        133004,
        134101,
        2494100,
    ),
    K.UNAVAILABLE: (
        0,
        3,
        10,
        33,
        190,
        *range(200, 300),
        368,
        131005,
        131031,
        131037,
        131042,
        131045,
        102,
        131044,
        131048,
        131064,
        133010,
        2500,
    ),
    K.INVALID_RECIPIENT: (131026, 131050, 131021),
    K.PERMANENT: (
        100,
        131008,
        131009,
        131047,
        131049,
        130472,
        130497,
        131030,
        131062,
        131051,
        131052,
        131053,
        131001,
        131002,
        131020,
        131041,
        131043,
        131063,
        131207,
        134100,
        134102,
        135000,
        137000,
        132000,
        132001,
        132005,
        132007,
        132012,
        132015,
        132016,
        132068,
        132999,
    ),
}
"""Codes by class."""

ERRORS: dict[ResponseKind, type[ProviderError]] = {
    K.TRANSIENT: TransientError,
    K.UNAVAILABLE: ProviderUnavailableError,
    K.INVALID_RECIPIENT: InvalidRecipientError,
    K.PERMANENT: PermanentError,
}


def refusal(raw: bytes) -> ProviderError:
    error, got = attempt(whatsapp_message(), raw)
    assert isinstance(error, ProviderError)
    assert len(got) == 1
    return error


@each_case("code, kind", [(code, kind) for kind, codes in TABLE.items() for code in codes])
def test_code_has_its_class(code: int, kind: ResponseKind) -> None:
    rule = rule_for(code)
    assert rule.kind is kind


@each_case("code, kind", [(code, kind) for kind, codes in TABLE.items() for code in codes[:6]])
def test_code_decides_with_any_status(code: int, kind: ResponseKind) -> None:
    for status in (400, 429, 500, 200):
        error = refusal(refused(code, status=status))
        assert type(error) is ERRORS[kind]
        assert (error.response.status, error.response.code) == (status, str(code))
        assert error.reason.endswith(f"({code})")
        assert not getattr(error, "is_ambiguous", False)


ACCOUNT_MESSAGES = [
    "Unsupported post request. Object with ID '1' does not exist, cannot be loaded due to missing",
    "(#100) Unsupported post request.",
    "API calls from the server require an appsecret_proof argument",
    "Invalid appsecret_proof provided in the API argument",
]


@each_case("message", ACCOUNT_MESSAGES)
def test_invalid_parameter_of_the_account_costs_no_message(message: str) -> None:
    """As in https://github.com/netflie/whatsapp-cloud-api/issues/42 and
    https://github.com/restfb/restfb/issues/1311. Newer versions of the API send no subcode.
    """
    assert type(refusal(refused(100, message=message))) is ProviderUnavailableError
    assert type(refusal(refused(100, message="(#100) Invalid parameter"))) is PermanentError
    assert type(refusal(refused(100, message=7))) is PermanentError


def test_each_documented_error_of_a_message_has_a_rule() -> None:
    """pywa lists the codes of Meta's page."""
    kinds = (
        pywa.errors.AuthorizationError,
        pywa.errors.ThrottlingError,
        pywa.errors.IntegrityError,
        pywa.errors.SendMessageError,
    )
    codes = {
        code
        for kind in kinds
        for subclass in kind.__subclasses__()
        for code in subclass.__error_codes__ or ()
    }
    # No message causes it.
    registration = set(pywa.errors.RegistrationOrDeregistrationFailed.__error_codes__)
    assert [code for code in sorted(codes - registration) if rule_for(code) is None] == []


def test_code_is_in_one_rule() -> None:
    special = [code for rule in CODE_RULES for code in rule.codes if len(rule.codes) < 100]
    twice = {code for code, count in Counter(special).items() if count > 1}
    assert twice == {100}, "one of them is for a subcode only"


def test_rule_reasons_are_sentences() -> None:
    assert all(rule.reason.endswith(".") and rule.reason[0].isupper() for rule in CODE_RULES)
    assert all("@" not in rule.reason and "{" not in rule.reason for rule in CODE_RULES)


@each_case(
    "code, details, told",
    [
        (132000, "body: number of params (1)", "template. (132000): body: number of params (1)"),
        (132001, "order does not exist in en_US", "(132001): order does not exist in en_US"),
        (131008, "Button at index 0 requires a parameter", "(131008): Button at index 0 requires"),
        (100, f"{PHONE} is \ud83d odd", "(100): [address] is ? odd"),
        *((100, odd, "invalid. (100)") for odd in (None, "", 7, [])),
        *((code, "Wait.", f" ({code})") for code in (131026, 131047, 131049, 130429, 190)),
    ],
)
def test_reason_of_a_vague_code_has_its_details(code: int, details: Any, told: str) -> None:
    """As in https://github.com/chatwoot/chatwoot/issues/13142: which parameter is it?"""
    error, _ = attempt(whatsapp_message(), refused(code, error_data={"details": details}))
    assert told in error.reason
    assert "Wait" not in error.reason


@each_case("code", [131051 + 3, 139999, 5, 300, 199, 131999, 133000])
def test_unknown_code_has_no_rule(code: int) -> None:
    assert rule_for(code) is None


@each_case(
    "code, ours",
    [
        *((code, F.RATE_LIMITED) for code in (4, 80007, 130429)),
        (131056, F.RECIPIENT_RATE_LIMITED),
        (131000, F.PROVIDER_ERROR),
        (131057, F.PROVIDER_ERROR),
        (131047, F.WINDOW_CLOSED),
        (131026, F.INVALID_RECIPIENT),
        (190, F.CHANNEL_UNAVAILABLE),
        (132001, F.REJECTED),
    ],
)
def test_code_has_our_failure_code(code: int, ours: FailureCode) -> None:
    assert refusal(refused(code)).code is ours


@each_case("code, action", [(131026, A.SUSPECT), (131050, A.UNSUBSCRIBE), (131021, A.SUSPECT)])
def test_recipient_error_has_its_action(code: int, action: RecipientAction) -> None:
    error = refusal(refused(code))
    assert isinstance(error, InvalidRecipientError)
    assert error.action is action


def test_wrong_sending_number_is_about_the_account() -> None:
    for subcode in (33, "33"):
        error = refusal(refused(100, error_subcode=subcode))
        expected = ProviderUnavailableError if subcode == 33 else PermanentError
        assert type(error) is expected
    assert type(refusal(refused(100, error_subcode=2494010))) is PermanentError


@each_case(
    "header, pause",
    [
        ("Retry-After: 7", 7.0),
        (f"Retry-After: {FIXED_NOON + timedelta(minutes=2):%a, %d %b %Y %H:%M:%S} GMT", 120.0),
        ("Retry-After: soon", None),
    ],
)
def test_retry_after_is_passed_on(header: str, pause: float | None) -> None:
    for code in (130429, 131048):
        error = refusal(refused(code, headers=(header,)))
        assert isinstance(error, TransientError | ProviderUnavailableError)
        assert error.retry_after == pause


@each_case(
    "raw, kind",
    [
        (answer({"error": {"message": "An error"}}, 400), PermanentError),
        (refused(139999), PermanentError),
        (refused(139999, status=500), TransientError),
        (refused(139999, is_transient=True), TransientError),
        (refused(139999, is_transient="true"), PermanentError),
        (refused(139999, status=404), PermanentError),
        (refused(139999, status=403), ProviderUnavailableError),
        (refused(True), PermanentError),
        (refused("131026"), PermanentError),
        (refused(-1), PermanentError),
        (refused(10**30), PermanentError),
        (answer({"error": "no"}, 400), PermanentError),
        (answer([], 400), PermanentError),
        (socket_server.response(400, b"\xff{"), PermanentError),
        (socket_server.response(400, b"[" * 10_000), PermanentError),
        (socket_server.response(404, b"<html>"), ProviderUnavailableError),
        (socket_server.response(405), ProviderUnavailableError),
        (socket_server.response(401), ProviderUnavailableError),
        (socket_server.response(429), TransientError),
        (socket_server.response(408), TransientError),
        (socket_server.response(502, b"<html>Bad gateway</html>"), TransientError),
        (socket_server.response(503), TransientError),
        (
            socket_server.response(302, b"", "Location: http://127.0.0.1:1/"),
            ProviderUnavailableError,
        ),
    ],
)
def test_status_decides_without_a_known_code(raw: bytes, kind: type[ProviderError]) -> None:
    error = refusal(raw)
    assert type(error) is kind
    assert not getattr(error, "is_ambiguous", False)


@each_case(
    "raw",
    [
        answer({}),
        answer([]),
        answer({"messages": []}),
        answer({"messages": {}}),
        answer({"messages": ["wamid.1"]}),
        answer({"messages": [{}]}),
        answer({"messages": [{"id": ""}]}),
        answer({"messages": [{"id": 7}]}),
        answer({"error": {"code": 139999}}),
        socket_server.response(200, b"<html></html>"),
        socket_server.response(200),
        socket_server.response(200, b'{"messages": [{"id": "wamid.1"'),
        answer({"messages": [{"id": "wamid.1"}]}, 202),
        answer({"messages": [{"id": "wamid.1"}]}, 201),
        socket_server.response(299 - 95, b""),
    ],
)
def test_undocumented_success_is_ambiguous(raw: bytes) -> None:
    error = refusal(raw)
    assert isinstance(error, TransientError)
    assert error.is_ambiguous


def test_invalid_token_is_about_the_account() -> None:
    handler = socket_server.KeepAlive(acceptance())
    with socket_server.serving(handler) as server, pytest.raises(ProviderUnavailableError) as error:
        run(
            number(base_url=server.url, token="EAA\r\nX: canary").send(
                whatsapp_message(), timeout=LIMIT
            )
        )
    assert handler.requests == []
    assert "canary" not in str(error.value)


def test_response_excerpt_is_redacted() -> None:
    details: Any = {"details": f"The number {PHONE} is not on WhatsApp."}
    error = refusal(refused(131026, error_data=details))
    assert "is not on WhatsApp" in error.response.excerpt
    assert PHONE[1:] not in json.dumps([error.response.excerpt, error.reason])
