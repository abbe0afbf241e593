"""AWS SMS against the sandbox: every magic number, signatures, the topic, and opt-outs."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
import urllib3

from domain.errors import (
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from providers.aws_signing import Credentials
from providers.contract import InvalidSignatureError, Receipt, ReceiptKind, SendResult
from sandbox.config import Config
from sandbox.providers.aws_sms.outcomes import FAILURES, OUTCOME_BY_SUFFIX, PROBLEMS
from sandbox.server import run_in_thread
from tests.support.clients.sandbox import QUICK, Box, Post, receiving
from tests.support.providers.aws_sms import PHONE, AwsSmsAccount
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, SHORT, until

K = ReceiptKind
AMBIGUOUS = {"timeout", "timeout-lost", "reset", "truncated", "empty", "not-json"}
EXPECTED: dict[str, type[ProviderError]] = {
    **dict.fromkeys(AMBIGUOUS, TransientError),
    **dict.fromkeys(
        ("throttled", "throttled-once", "server-error", "flaky", "unavailable", "bad-gateway"),
        TransientError,
    ),
    "daily-limit": TransientError,
    **dict.fromkeys(
        ("spend-limit", "quota", "disabled", "reputation", "no-sender", "not-verified"),
        ProviderUnavailableError,
    ),
    **dict.fromkeys(
        ("wrong-type", "not-active", "no-channel", "not-registered", "invalid-sender", "redirect"),
        ProviderUnavailableError,
    ),
    **dict.fromkeys(("opted-out", "invalid-number"), InvalidRecipientError),
    **dict.fromkeys(
        ("protected", "protected-number", "not-enabled", "too-dear"),
        PermanentError,
    ),
    **dict.fromkeys(("too-long", "invalid", "unknown-error"), PermanentError),
}
DELIVERED = [K.QUEUED, K.DELIVERED]
RECEIPTS: dict[str, list[ReceiptKind]] = {
    "delivered": DELIVERED,
    "successful": [K.QUEUED, K.SENT],
    "unknown": [K.QUEUED, K.SENT],
    "disordered": [K.DELIVERED, K.QUEUED, K.DELIVERED, K.SENT],
    "retried": [K.DEFERRED, K.DELIVERED],
    "forged": DELIVERED,
    "other-topic": DELIVERED,
    "twice": [K.QUEUED, K.DELIVERED, K.DELIVERED],
    "slow": DELIVERED,
    "dripping": DELIVERED,
    **{f"failed-{kind}": [K.QUEUED, K.FAILED] for kind in FAILURES},
    "failed-blocked": [K.QUEUED, K.BLOCKED],
}
"""The receipts of accepted texts."""
REFUSED = {"forged": 1, "other-topic": 1}
"""How many notifications of an outcome are refused."""
REPEATS = {"twice": 1, "disordered": 1}


@pytest.fixture(scope="module")
def _one_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AwsSmsAccount]:
    with receiving() as receiver:
        config = Config(
            data=tmp_path_factory.mktemp("sandbox"),
            mail_webhooks_url=receiver.url,
            timings=replace(QUICK, delivered=0.15, late=60.0),
        )
        with run_in_thread(config) as sandbox:
            account = AwsSmsAccount(sandbox=sandbox, receiver=receiver)
            replace(account, reference=new_reference()).send()
            first = until(lambda: receiver.posts)[0]
            assert first.headers["x-amz-sns-message-type"] == "SubscriptionConfirmation"
            assert account.parsed(first).receipts == ()
            yield account


@pytest.fixture
def line(_one_account: AwsSmsAccount) -> AwsSmsAccount:
    return replace(_one_account, reference=new_reference())


@pytest.fixture
def box(_one_account: AwsSmsAccount) -> Iterator[Box]:
    with urllib3.PoolManager(retries=False) as http:
        yield Box(sandbox=_one_account.sandbox, http=http)


def new_reference() -> str:
    return f"{uuid.uuid4().hex[:24]}.sms.1"


def receipts(account: AwsSmsAccount, posts: list[Post]) -> Iterator[Receipt]:
    for post in posts:
        try:
            yield from account.parsed(post).receipts
        except InvalidSignatureError:
            continue


def test_every_magic_number_is_covered() -> None:
    covered = EXPECTED.keys() | RECEIPTS.keys() | {"no-events"}
    assert set(OUTCOME_BY_SUFFIX.values()) == covered
    assert PROBLEMS.keys() <= EXPECTED.keys()


@each_case("outcome", sorted(EXPECTED))
def test_refusal_is_the_expected_error(line: AwsSmsAccount, outcome: str) -> None:
    error = line.send(outcome, timeout=SHORT if outcome.startswith("timeout") else LIMIT)
    assert type(error) is EXPECTED[outcome]
    assert getattr(error, "is_ambiguous", False) is (outcome in AMBIGUOUS)
    if outcome in PROBLEMS:
        found = PROBLEMS[outcome]
        assert error.response.code == (found.reason or found.name)
    assert "447700" not in f"{error}{error.response}"


@each_case("outcome", sorted(RECEIPTS))
def test_events_are_received_and_others_refused(line: AwsSmsAccount, outcome: str) -> None:
    own = replace(line, reference=new_reference())
    result = own.send(outcome)
    assert isinstance(result, SendResult)
    found = list(receipts(own, own.posts(len(RECEIPTS[outcome]) + REFUSED.get(outcome, 0))))
    # SNS promises no order.
    assert sorted(each.kind for each in found) == sorted(RECEIPTS[outcome])
    assert {(each.reference, each.provider_id) for each in found} == {
        (own.reference, result.provider_id)
    }
    assert len({each.event_id for each in found}) == len(found) - REPEATS.get(outcome, 0)


def test_events_have_parts_and_price(line: AwsSmsAccount) -> None:
    line.send()
    _, delivered = receipts(line, line.posts(2))
    assert (delivered.units, delivered.cost) == (1, Decimal("0.053"))
    assert (delivered.currency, delivered.address) == ("USD", PHONE)


@each_case("fault", ["reset", "truncated", "empty", "not-json"])
def test_lost_answer_is_resolved_by_the_reference_in_the_context(
    line: AwsSmsAccount, fault: str
) -> None:
    own = replace(line, reference=new_reference())
    error = own.send(fault)
    assert isinstance(error, TransientError)
    assert error.is_ambiguous
    if fault in ("empty", "not-json"):
        assert [each.kind for each in receipts(own, own.posts(2))] == DELIVERED


def test_texts_of_every_setting_are_accepted(line: AwsSmsAccount) -> None:
    found = line.sandbox.aws
    for fields in (
        {"sender": ""},
        {"sender": found.number},
        {"sender": "Shop"},
        {"configuration_set": ""},
        {"protect_configuration": found.protect_configuration, "max_price": "0.05"},
    ):
        assert isinstance(line.send(**fields), SendResult)


def key(access_key_id: str, secret: str = "sandbox") -> Credentials:
    return Credentials(access_key_id=access_key_id, secret_access_key=secret)


@each_case(
    "fields, code",
    [
        ({"region": "us-east-1"}, "InvalidSignatureException"),
        ({"credentials": key("AKIASANDBOX00000001", "another")}, "InvalidSignatureException"),
        ({"credentials": key("AKIAREVOKED00000001")}, "UnrecognizedClientException"),
        ({"credentials": key("ASIAEXPIRED00000001")}, "ExpiredTokenException"),
        ({"credentials": key("AKIADENIED000000001")}, "AccessDeniedException"),
        ({"sender": "pool-another"}, "ResourceNotFoundException"),
        ({"configuration_set": "another"}, "ResourceNotFoundException"),
        ({"protect_configuration": "another"}, "ResourceNotFoundException"),
    ],
)
def test_wrong_account_or_sender_is_unavailable(
    line: AwsSmsAccount, fields: dict[str, Any], code: str
) -> None:
    error = line.send(**fields)
    assert isinstance(error, ProviderUnavailableError)
    assert error.response is not None
    assert error.response.code == code


def test_text_over_the_price_is_refused(line: AwsSmsAccount) -> None:
    error = line.send(max_price="0.04")
    assert isinstance(error, PermanentError)
    assert "AWS_SMS_MAX_PRICE" in error.reason


def test_stop_is_an_opt_out_and_start_lifts_it(line: AwsSmsAccount, box: Box) -> None:
    for word, is_wanted in (("Stop", False), ("START", True)):
        line.receiver.posts.clear()
        box.control("POST", "/aws_sms/written", {"from": PHONE, "text": word})
        [post] = until(lambda: [each for each in line.receiver.posts if b"inbound" in each.raw])
        found = line.parsed(post).inbound
        assert found is not None
        assert [(p.phone, p.is_wanted) for p in found.preferences] == [(PHONE, is_wanted)]
        error = line.send()
        assert isinstance(error, ProviderError) is not is_wanted
        if not is_wanted:
            assert isinstance(error, InvalidRecipientError)
