"""WhatsApp against the sandbox: every magic number and webhook."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from domain.errors import (
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    Reach,
    TransientError,
)
from notifyproject.platform.event_loop import run
from providers.contract import ReceiptKind, SendResult, WhatsAppTemplateMessage
from sandbox.config import Config
from sandbox.providers.whatsapp.outcomes import ERRORS, OUTCOME_BY_SUFFIX
from sandbox.server import run_in_thread
from tests.support.clients.sandbox import QUICK, receiving
from tests.support.providers.whatsapp import API_VERSION, WhatsAppNumber, whatsapp_message
from tests.support.waiting import LIMIT, SHORT

K = ReceiptKind
AMBIGUOUS = {"timeout", "timeout-lost", "reset", "truncated", "empty", "not-json"}
ACCEPTED = {
    "delivered",
    "read",
    "sent",
    "no-events",
    "disordered",
    "failed",
    "failed-at-once",
    "window-closed-later",
    "chosen-not",
    "held",
    "slow",
    "dripping",
    "user-name",
    "odd-item",
}

EXPECTED: dict[str, type[ProviderError]] = {
    **dict.fromkeys(AMBIGUOUS, TransientError),
    **dict.fromkeys(
        (
            "ratelimit",
            "ratelimit-400",
            "ratelimit-once",
            "pair-ratelimit",
            "flaky",
            "account-ratelimit",
            "app-ratelimit",
            "server-error",
            "unavailable",
            "bad-gateway",
            "api-unknown",
            "api-service",
            "maintenance",
        ),
        TransientError,
    ),
    **dict.fromkeys(
        (
            "auth",
            "capability",
            "no-permission",
            "number-deleted",
            "missing-permission",
            "policy",
            "access-denied",
            "locked",
            "name-not-approved",
            "payment",
            "certificate",
            "not-registered",
            "spam-ratelimit",
            "expired-token",
            "redirect",
            "unknown-403",
        ),
        ProviderUnavailableError,
    ),
    **dict.fromkeys(("undeliverable", "opted-out", "same-number"), InvalidRecipientError),
    **dict.fromkeys(
        (
            "window-closed",
            "not-delivered",
            "experiment",
            "invalid",
            "missing",
            "unsupported",
            "no-code",
            "unknown-code",
            "country",
            "not-allowed",
        ),
        PermanentError,
    ),
}
"""Expected error for each magic number."""


@pytest.fixture(scope="module")
def _one_line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WhatsAppNumber]:
    with receiving() as receiver:
        config = Config(
            data=tmp_path_factory.mktemp("sandbox"),
            whatsapp_webhook_url=receiver.url,
            timings=replace(QUICK, delivered=0.15, late=60.0),
        )
        with run_in_thread(config) as sandbox:
            yield WhatsAppNumber(sandbox=sandbox, receiver=receiver)


@pytest.fixture
def line(_one_line: WhatsAppNumber) -> WhatsAppNumber:
    _one_line.call("POST", "_sandbox/reset", {})
    _one_line.receiver.posts.clear()
    return replace(_one_line, reference=f"{uuid.uuid4().hex[:24]}.whatsapp.1")


def test_every_magic_number_is_covered() -> None:
    assert set(OUTCOME_BY_SUFFIX.values()) == ACCEPTED | EXPECTED.keys()


@pytest.mark.parametrize("outcome", sorted(EXPECTED))
def test_refusal_is_the_expected_error(line: WhatsAppNumber, outcome: str) -> None:
    error = line.send(outcome, timeout=SHORT if outcome.startswith("timeout") else LIMIT)
    assert type(error) is EXPECTED[outcome]
    assert getattr(error, "is_ambiguous", False) is (outcome in AMBIGUOUS)
    assert len(line.requests()) == 1
    if outcome in ERRORS:
        assert error.response.code == str(ERRORS[outcome])
    assert "447700" not in str(error)


@pytest.mark.parametrize(
    ("outcome", "reach"),
    [
        ("country", Reach.RECIPIENT),
        ("pair-ratelimit", Reach.RECIPIENT),
        ("undeliverable", Reach.RECIPIENT),
        ("unknown-403", Reach.UNCERTAIN),
        ("payment", Reach.UNCERTAIN),
        ("ratelimit", Reach.ACCOUNT),
        ("locked", Reach.ACCOUNT),
        ("expired-token", Reach.ACCOUNT),
    ],
)
def test_refusal_has_its_reach(line: WhatsAppNumber, outcome: str, reach: Reach) -> None:
    error = line.send(outcome)
    assert isinstance(error, ProviderError)
    assert error.reach is reach


def test_person_with_a_user_name_is_told_by_the_user_id(line: WhatsAppNumber) -> None:
    line.send("user-name")
    assert {receipt.address for receipt in line.receipts(2)} == {None}
    (post, *_) = line.receiver.posts
    (identity, *_) = line.number().parse_logged(post.raw).inbound.identities
    assert (identity.phone, identity.reference) == (None, line.reference)


def test_odd_item_stands_beside_each_receipt(line: WhatsAppNumber) -> None:
    line.send("odd-item")
    assert {receipt.kind for receipt in line.receipts(2)} == {K.SENT, K.DELIVERED}
    posts = [line.number().parse_logged(post.raw) for post in line.receiver.posts]
    assert sum(post.unreadable_count for post in posts) == 2


@pytest.mark.parametrize(
    ("phone", "other"),
    [
        ("+541123456789", None),
        ("+525512345678", None),
        ("+5531987654321", None),
        ("+2250712345678", "+22512345678"),
        ("+351912345678", None),
    ],
)
def test_other_form_in_the_response_is_told(
    line: WhatsAppNumber, phone: str, other: str | None
) -> None:
    message = whatsapp_message(reference=line.reference, recipient=phone)
    assert run(line.number().send(message, timeout=LIMIT)).other_address == other


def test_long_code_is_refused(line: WhatsAppNumber) -> None:
    account = line.sandbox.whatsapp
    button = {"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy"}
    wanted = {
        "name": "login_code",
        "language": "en",
        "category": "AUTHENTICATION",
        "components": [{"type": "BODY"}, {"type": "BUTTONS", "buttons": [button]}],
    }
    path = f"{API_VERSION}/{account.business_account_id}/message_templates"
    line.call("POST", path, wanted, Authorization=f"Bearer {account.access_token}")
    code = WhatsAppTemplateMessage(
        name="login_code", language="en", parameters=("1" * 16,), button="1" * 16
    )
    error = line.send(whatsapp_template=code, is_service_window_open=False)
    assert isinstance(error, PermanentError)
    assert error.response.code == "131009"
    fits = replace(code, parameters=("1" * 15,), button="1" * 15)
    assert isinstance(line.send(whatsapp_template=fits, is_service_window_open=False), SendResult)


@pytest.mark.parametrize("outcome", sorted(ACCEPTED))
def test_acceptance_has_the_message_id(line: WhatsAppNumber, outcome: str) -> None:
    result = line.send(outcome)
    assert isinstance(result, SendResult)
    (request,) = line.requests()
    assert result.provider_id == request["message_id"]
    assert request["references"] == [line.reference]


def test_closed_window_is_followed_by_the_template(line: WhatsAppNumber) -> None:
    result = line.send("window-closed", whatsapp_template=line.add_template("order_shipped"))
    assert isinstance(result, SendResult)
    assert [request["accepted"] for request in line.requests()] == [True, False]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"name": "nothing_like_it"}, "132001"),
        ({"language": "pt_PT"}, "132001"),
        ({"parameters": ("Ada",)}, "132000"),
        ({"parameters": ("Ada", "x" * 2_000)}, "132005"),
    ],
)
def test_mismatched_template_is_refused(
    line: WhatsAppNumber, change: dict[str, Any], code: str
) -> None:
    template = replace(line.add_template("order_shipped"), **change)
    error = line.send(whatsapp_template=template, is_service_window_open=False)
    assert type(error) is PermanentError
    assert error.response.code == code


@pytest.mark.parametrize(
    "fields",
    [
        {"token": ""},
        {"token": "EAAexpired"},
        {"token": "EAArevoked"},
        {"token": "EAAnoscope"},
        {"token": "nonsense"},
        {"phone_number_id": "100000000000009"},
        {"phone_number_id": ""},
        {"version": "v26"},
    ],
)
def test_wrong_configuration_is_about_the_account(
    line: WhatsAppNumber, fields: dict[str, str]
) -> None:
    with pytest.raises(ProviderUnavailableError):
        run(line.number(**fields).send(whatsapp_message(), timeout=LIMIT))


@pytest.mark.parametrize(
    ("outcome", "kinds"),
    [
        ("delivered", {K.SENT, K.DELIVERED}),
        ("read", {K.SENT, K.DELIVERED, K.READ}),
        ("failed", {K.SENT, K.FAILED}),
        ("failed-at-once", {K.FAILED}),
        ("chosen-not", {K.REJECTED}),
        ("window-closed-later", {K.FAILED}),
    ],
)
def test_receipts_are_about_the_sent_message(
    line: WhatsAppNumber, outcome: str, kinds: set[ReceiptKind]
) -> None:
    result = line.send(outcome)
    assert isinstance(result, SendResult)
    receipts = line.receipts(len(kinds))
    assert {receipt.kind for receipt in receipts} == kinds
    assert {receipt.provider_id for receipt in receipts} == {result.provider_id}


def test_receipts_may_be_repeated_and_out_of_order(line: WhatsAppNumber) -> None:
    line.send("disordered")
    receipts = line.receipts(6)
    assert receipts[0].kind is K.READ
    assert len({receipt.event_id for receipt in receipts}) == 3
    by_time = sorted(receipts, key=lambda receipt: receipt.at)
    assert [receipt.kind for receipt in by_time[::2]] == [K.SENT, K.DELIVERED, K.READ]
