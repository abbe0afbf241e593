"""Twilio against the sandbox: every magic number and webhook."""

import uuid
from collections.abc import Iterator
from dataclasses import replace

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st

from domain import sms as domain_sms
from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from domain.sms import Encoding
from providers.contract import AddressEffect, ReceiptKind, SendResult
from sandbox.config import Config
from sandbox.providers import segments
from sandbox.providers.twilio.outcomes import ERRORS, FAILURE_CODES, OUTCOME_BY_SUFFIX
from sandbox.server import run_in_thread
from tests.support.clients.sandbox import QUICK, Box, receiving
from tests.support.providers.sandbox_twilio import TwilioClient
from tests.support.providers.twilio import PHONE, TwilioAccount
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, SHORT, until

K = ReceiptKind
AMBIGUOUS = {"timeout", "timeout-lost", "reset", "truncated", "empty", "not-json"}
ACCEPTED = {
    "delivered",
    "sent",
    "no-events",
    "disordered",
    "odd-status",
    "slow",
    "dripping",
    *FAILURE_CODES,
}
UNAVAILABLE = (
    *(20003, 20005, 20403, 20404, 20426, 21212, 21603, 21606, 21607, 21608, 21609),
    *(21701, 21702, 21703, 21704, 21705, 21708, 21709),
)
EXPECTED: dict[str, type[ProviderError]] = {
    **dict.fromkeys(AMBIGUOUS, TransientError),
    **dict.fromkeys(
        ("ratelimit", "ratelimit-once", "server-error", "flaky", "bad-gateway"), TransientError
    ),
    **dict.fromkeys(("refused-14107", "refused-20503", "refused-21611"), TransientError),
    **{f"refused-{code}": ProviderUnavailableError for code in UNAVAILABLE},
    "redirect": ProviderUnavailableError,
    **{
        f"refused-{code}": InvalidRecipientError
        for code in (21211, 21265, 21266, 21604, 21610, 21614)
    },
    **{
        f"refused-{code}": PermanentError
        for code in (21408, 21602, 21612, 21617, 21618, 21624, 30610, 30640, 90007)
    },
    **dict.fromkeys(("no-code", "unknown-code"), PermanentError),
    "error-in-200": InvalidRecipientError,
}
"""Expected error for each magic number."""
LETTERS = st.one_of(
    st.sampled_from("abcé€[]\n ç“…🙂ΔÀ"), st.characters(blacklist_categories=["Cs"])
)
"""Those on which encodings differ, and any other."""


@pytest.fixture(scope="module")
def _one_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwilioAccount]:
    with receiving() as receiver:
        config = Config(
            data=tmp_path_factory.mktemp("sandbox"),
            twilio_webhook_url=receiver.url,
            timings=replace(QUICK, delivered=0.15, late=60.0),
        )
        with run_in_thread(config) as sandbox:
            yield TwilioAccount(sandbox=sandbox, receiver=receiver)


@pytest.fixture
def line(_one_account: TwilioAccount, phones: TwilioClient) -> TwilioAccount:
    phones.box.control("POST", "/reset")
    _one_account.receiver.posts.clear()
    return replace(_one_account, reference=f"{uuid.uuid4().hex[:24]}.sms.1")


def test_every_magic_number_is_covered() -> None:
    assert set(OUTCOME_BY_SUFFIX.values()) == ACCEPTED | EXPECTED.keys()


@each_case("outcome", sorted(EXPECTED))
def test_refusal_is_the_expected_error(line: TwilioAccount, outcome: str) -> None:
    error = line.send(outcome, timeout=SHORT if outcome.startswith("timeout") else LIMIT)
    assert type(error) is EXPECTED[outcome]
    assert getattr(error, "is_ambiguous", False) is (outcome in AMBIGUOUS)
    if outcome in ERRORS:
        assert error.response.code == str(ERRORS[outcome])
    assert "447700" not in f"{error}{error.response}"


@each_case("outcome", sorted(FAILURE_CODES))
def test_failure_is_reported_once_with_its_code(line: TwilioAccount, outcome: str) -> None:
    own = replace(line, reference=f"{uuid.uuid4().hex[:24]}.sms.1")
    result = own.send(outcome)
    assert isinstance(result, SendResult)
    is_stop = FAILURE_CODES[outcome] == 21610
    sent, failed, *more = own.receipts(3 if is_stop else 2)
    assert (sent.kind, sent.provider_id) == (K.SENT, result.provider_id)
    assert failed.kind in (K.FAILED, K.BLOCKED)
    assert f"({FAILURE_CODES[outcome]})" in (failed.reason or "")
    assert [receipt.kind for receipt in more] == ([K.UNSUBSCRIBED] if is_stop else [])


def test_message_is_accepted_with_a_callback_to_its_reference(line: TwilioAccount) -> None:
    result = line.send()
    assert isinstance(result, SendResult)
    sent, delivered = line.receipts(2)
    assert [sent.kind, delivered.kind] == [K.SENT, K.DELIVERED]
    assert {sent.provider_id, delivered.provider_id} == {result.provider_id}
    assert delivered.address == PHONE


@each_case("fault", ["reset", "truncated", "empty", "not-json"])
def test_lost_answer_is_resolved_by_the_reference_in_the_callback(
    line: TwilioAccount, fault: str
) -> None:
    own = replace(line, reference=f"{uuid.uuid4().hex[:24]}.sms.1")
    error = own.send(fault)
    assert isinstance(error, TransientError)
    assert error.is_ambiguous
    assert [receipt.kind for receipt in own.receipts(2)] == [K.SENT, K.DELIVERED]


def test_callbacks_in_no_order_have_equal_event_ids(line: TwilioAccount) -> None:
    line.send("disordered")
    receipts = line.receipts(5)
    assert len({receipt.event_id for receipt in receipts}) == 3


def test_unknown_status_does_not_stop_the_next(line: TwilioAccount) -> None:
    line.send("odd-status")
    [delivered] = line.receipts(1)
    assert delivered.kind is K.DELIVERED


def test_auth_token_sends_too(line: TwilioAccount) -> None:
    found = line.sandbox.twilio
    assert isinstance(
        line.send(user=found.account_sid, password=found.auth_token, sender=found.number),
        SendResult,
    )


@each_case(
    "fields, code",
    [
        ({"account_sid": "ACrevoked"}, "20003"),
        ({"account_sid": "ACsuspended"}, "20005"),
        ({"password": "another"}, "20003"),
        ({"sender": f"MG{'0' * 31}2"}, "21703"),
        ({"sender": "+15005550001"}, "21606"),
    ],
)
def test_wrong_account_or_sender_is_unavailable(
    line: TwilioAccount, fields: dict[str, str], code: str
) -> None:
    error = line.send(**fields)
    assert isinstance(error, ProviderUnavailableError)
    assert error.response is not None
    assert error.response.code == code


def test_trial_account_says_so(line: TwilioAccount) -> None:
    found = line.sandbox.twilio
    error = line.send(account_sid="ACtrial", user="ACtrial", password=found.auth_token)
    assert isinstance(error, ProviderUnavailableError)
    assert "trial" in error.reason


@pytest.fixture
def phones(_one_account: TwilioAccount) -> Iterator[TwilioClient]:
    with urllib3.PoolManager(retries=False) as http:
        yield TwilioClient(box=Box(sandbox=_one_account.sandbox, http=http))


def test_stop_is_an_opt_out_and_start_lifts_it(line: TwilioAccount, phones: TwilioClient) -> None:
    for word, is_wanted in (("STOP", False), ("START", True)):
        line.receiver.posts.clear()
        phones.write(word)
        [post] = until(lambda: line.receiver.posts)
        found = line.parsed(post).inbound
        assert found is not None
        assert [(p.phone, p.is_wanted) for p in found.preferences] == [(PHONE, is_wanted)]
        error = line.send()
        assert isinstance(error, ProviderError) is not is_wanted


def test_number_off_the_air_is_a_soft_bounce_and_an_unknown_one_counts_double(
    line: TwilioAccount,
) -> None:
    for outcome, effect in (
        ("failed-30003", AddressEffect.SOFT_BOUNCE),
        ("failed-30005", AddressEffect.PROBABLE_BOUNCE),
        ("failed-30007", None),
    ):
        own = replace(line, reference=f"{uuid.uuid4().hex[:24]}.sms.1")
        own.send(outcome)
        _, failed = own.receipts(2)
        assert failed.address_effect is effect
        assert failed.code is (
            FailureCode.FILTERED if effect is None else FailureCode.REPORTED_FAILED
        )


@given(text=st.text(LETTERS, min_size=1, max_size=400), smart=st.booleans())
def test_parts_are_those_that_the_sandbox_counts(text: str, smart: bool) -> None:
    encoded = domain_sms.encode(text, smart=smart)
    assert encoded.units == segments.count(encoded.text)
    assert (encoded.encoding is Encoding.UCS_2) == (segments.encoding(encoded.text) == "UCS-2")
