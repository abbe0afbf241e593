"""WhatsApp: what each answer other than the documented one means."""

import json
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from providers.contract import ReceiptKind
from providers.response_rules import ResponseKind
from providers.whatsapp.responses import CODE_RULES, rule_for
from tests.support.factories.records import NOON
from tests.support.fakes import socket_server
from tests.support.providers.whatsapp import (
    PHONE,
    acceptance,
    answer,
    attempt,
    number,
    refused,
    whatsapp_message,
)
from tests.support.waiting import LIMIT, SHORT

K, F, A = ResponseKind, FailureCode, RecipientAction


TABLE = {
    K.TRANSIENT: (1, 2, 4, 80007, 130429, 131000, 131016, 131056, 131057),
    K.UNAVAILABLE: (
        *(0, 3, 10, 33, 190, *range(200, 300), 368, 131005, 131031, 131037, 131042, 131045),
        *(131048, 133010, 2500),
    ),
    K.INVALID_RECIPIENT: (131026, 131050, 131021, 131030),
    K.PERMANENT: (
        *(100, 131008, 131009, 131047, 131049, 130472, 131051, 131052, 131053),
        *(132000, 132001, 132005, 132007, 132012, 132015, 132016, 132068, 132999),
    ),
}
"""Which codes belong to which class."""


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


# The table.


@pytest.mark.parametrize(
    ("code", "kind"), [(code, kind) for kind, codes in TABLE.items() for code in codes]
)
def test_every_code_has_its_class(code: int, kind: ResponseKind) -> None:
    rule = rule_for(code)
    assert rule is not None
    assert rule.kind is kind


@pytest.mark.parametrize(
    ("code", "kind"), [(code, kind) for kind, codes in TABLE.items() for code in codes[:6]]
)
def test_an_answer_is_the_error_of_its_code_with_whatever_status(
    code: int, kind: ResponseKind
) -> None:
    for status in (400, 429, 500, 200):
        error = refusal(refused(code, status=status))
        assert type(error) is ERRORS[kind]
        assert error.response is not None
        assert (error.response.status, error.response.code) == (status, str(code))
        assert error.reason.endswith(f"({code})")
        assert not getattr(error, "is_ambiguous", False)


def test_no_code_is_in_two_rows() -> None:
    special = [code for rule in CODE_RULES for code in rule.codes if len(rule.codes) < 100]
    twice = {code for code, count in Counter(special).items() if count > 1}
    assert twice == {100}, "one of them is for a subcode only"


def test_every_row_has_words_for_people() -> None:
    assert all(rule.reason.endswith(".") and rule.reason[0].isupper() for rule in CODE_RULES)
    assert all("@" not in rule.reason and "{" not in rule.reason for rule in CODE_RULES)


@pytest.mark.parametrize("code", [131051 + 3, 139999, 5, 300, 199, 131999, 133000])
def test_a_code_nobody_knows_has_no_row(code: int) -> None:
    assert rule_for(code) is None


@pytest.mark.parametrize(
    ("code", "ours"),
    [
        (4, F.RATE_LIMITED),
        (80007, F.RATE_LIMITED),
        (130429, F.RATE_LIMITED),
        (131056, F.RECIPIENT_RATE_LIMITED),
        (131000, F.PROVIDER_ERROR),
        (131057, F.PROVIDER_ERROR),
        (131047, F.WINDOW_CLOSED),
        (131026, F.INVALID_RECIPIENT),
        (190, F.CHANNEL_UNAVAILABLE),
        (132001, F.REJECTED),
    ],
)
def test_every_code_is_a_word_of_ours(code: int, ours: FailureCode) -> None:
    assert refusal(refused(code)).code is ours


@pytest.mark.parametrize(
    ("code", "action"),
    [
        (131026, A.SUSPECT),
        (131050, A.SUPPRESS_MARKETING),
        (131021, A.SUSPECT),
        (131030, A.SUSPECT),
    ],
)
def test_a_recipient_is_suspected_and_not_given_up_at_once(
    code: int, action: RecipientAction
) -> None:
    error = refusal(refused(code))
    assert isinstance(error, InvalidRecipientError)
    assert error.action is action


def test_who_wants_no_marketing_is_not_a_dead_number() -> None:
    rule = rule_for(131050)
    assert rule is not None
    assert rule.receipt_kind is ReceiptKind.REJECTED


def test_a_sending_number_that_is_wrong_is_nobodys_fault_but_ours() -> None:
    for subcode in (33, "33"):
        error = refusal(refused(100, error_subcode=subcode))
        expected = ProviderUnavailableError if subcode == 33 else PermanentError
        assert type(error) is expected
    assert type(refusal(refused(100, error_subcode=2494010))) is PermanentError


@pytest.mark.parametrize("status", [400, 429])
def test_a_rate_limit_is_one_with_either_status(status: int) -> None:
    error = refusal(refused(130429, status=status))
    assert isinstance(error, TransientError)
    assert (error.code, error.is_ambiguous, error.retry_after) == (F.RATE_LIMITED, False, None)


@pytest.mark.parametrize(
    ("header", "pause"),
    [
        ("Retry-After: 7", 7.0),
        (f"Retry-After: {NOON + timedelta(minutes=2):%a, %d %b %Y %H:%M:%S} GMT", 120.0),
        ("Retry-After: soon", None),
    ],
)
def test_a_pause_that_is_asked_for_is_passed_on(header: str, pause: float | None) -> None:
    for code in (130429, 131048):
        error = refusal(refused(code, headers=(header,)))
        assert isinstance(error, TransientError | ProviderUnavailableError)
        assert error.retry_after == pause


# No code, or one that nobody knows: the status.


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (answer({"error": {"message": "An error"}}, 400), PermanentError),
        (refused(139999), PermanentError),
        (refused(139999, status=500), TransientError),
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
def test_without_a_code_the_status_decides(raw: bytes, kind: type[ProviderError]) -> None:
    error = refusal(raw)
    assert type(error) is kind
    assert not getattr(error, "is_ambiguous", False)


@pytest.mark.parametrize(
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
def test_a_success_that_is_not_the_documented_one_may_mean_that_it_went(raw: bytes) -> None:
    error = refusal(raw)
    assert isinstance(error, TransientError)
    assert error.is_ambiguous


def test_a_redirect_gets_neither_the_message_nor_the_token() -> None:
    with socket_server.serving(socket_server.KeepAlive(acceptance())) as other:
        error = refusal(socket_server.response(302, b"", f"Location: {other.url}/messages"))
        assert other.connections == 0
    assert isinstance(error, ProviderUnavailableError)


# No whole answer.


@pytest.mark.parametrize(
    "handler",
    [
        socket_server.resetting,
        socket_server.answering(acceptance()[:-5]),
        socket_server.answering(b""),
    ],
    ids=["accepts then resets", "truncated 200", "accepts then hangs up"],
)
def test_a_message_that_left_and_got_no_whole_answer_may_have_gone(
    handler: socket_server.Handler,
) -> None:
    with socket_server.serving(handler) as server, pytest.raises(TransientError) as error:
        number(base_url=server.url).send(whatsapp_message(), timeout=LIMIT)
    assert error.value.is_ambiguous
    assert error.value.code is F.CONNECTION_LOST
    assert server.connections == 1


def test_a_message_that_was_taken_and_never_answered_may_have_gone() -> None:
    with (
        socket_server.serving(socket_server.stopping()) as server,
        pytest.raises(TransientError) as error,
    ):
        number(base_url=server.url).send(whatsapp_message(), timeout=SHORT)
    assert (error.value.is_ambiguous, error.value.code) == (True, F.TIMEOUT)


def test_a_provider_that_is_not_there_got_nothing() -> None:
    with pytest.raises(TransientError) as error:
        number().send(whatsapp_message(), timeout=LIMIT)
    assert not error.value.is_ambiguous


def test_a_token_that_cannot_be_one_is_a_matter_of_the_configuration() -> None:
    handler = socket_server.KeepAlive(acceptance())
    with socket_server.serving(handler) as server, pytest.raises(ProviderUnavailableError) as error:
        number(base_url=server.url, token="EAA\r\nX: canary").send(
            whatsapp_message(), timeout=LIMIT
        )
    assert handler.requests == []
    assert "canary" not in str(error.value)


# What is kept of an answer.


def test_what_whatsapp_says_is_kept_without_the_number() -> None:
    details: Any = {"details": f"The number {PHONE} is not on WhatsApp."}
    error = refusal(refused(131026, error_data=details))
    assert error.response is not None
    assert "is not on WhatsApp" in error.response.excerpt
    assert PHONE[1:] not in json.dumps([error.response.excerpt, error.reason])


def test_no_reason_holds_a_number_or_the_token() -> None:
    for code in (100, 131026, 131047, 190, 130429, 139999):
        error = refusal(refused(code, message=f"{PHONE} EAAsecret"))
        assert PHONE[1:] not in error.reason
        assert "EAA" not in error.reason
