"""SES against the sandbox: every magic address, signatures, and the topic."""

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.errors import PermanentError, ProviderError, ProviderUnavailableError, TransientError
from domain.time import utc_now
from providers.aws_signing import Credentials
from providers.contract import (
    AddressEffect,
    InvalidSignatureError,
    Receipt,
    ReceiptKind,
    SendResult,
    UnverifiedWebhookError,
    WebhookRequest,
)
from sandbox.config import Config
from sandbox.providers.ses.outcomes import OUTCOMES, PROBLEMS
from sandbox.server import run_in_thread
from tests.support.clients.sandbox import QUICK, Post, receiving
from tests.support.providers.ses import SesAccount
from tests.support.providers.webhook_requests import webhook_request
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, SHORT, until

K = ReceiptKind
AMBIGUOUS = {"timeout", "timeout-lost", "reset", "truncated", "empty", "not-json"}
EXPECTED: dict[str, type[ProviderError]] = {
    **dict.fromkeys(AMBIGUOUS, TransientError),
    **dict.fromkeys(("ratelimit", "ratelimit-once", "throttled"), TransientError),
    **dict.fromkeys(("server-error", "flaky", "unavailable", "bad-gateway"), TransientError),
    **dict.fromkeys(
        ("quota", "limit", "suspended", "paused", "mail-from", "no-set", "not-verified", "shut"),
        ProviderUnavailableError,
    ),
    "redirect": ProviderUnavailableError,
    **dict.fromkeys(
        ("rejected", "invalid", "too-long", "too-large", "unknown-error"), PermanentError
    ),
}
RECEIPTS: dict[str, list[tuple[ReceiptKind, AddressEffect | None]]] = {
    "ada": [(K.SENT, None), (K.DELIVERED, None)],
    "bounce": [(K.SENT, None), (K.BOUNCED, AddressEffect.HARD_BOUNCE)],
    "suppressed": [(K.BOUNCED, AddressEffect.HARD_BOUNCE)],
    "blocked": [(K.SENT, None), (K.BLOCKED, None)],
    "transient": [(K.SENT, None), (K.DEFERRED, None), (K.BLOCKED, None)],
    "full": [(K.SENT, None), (K.BOUNCED, AddressEffect.SOFT_BOUNCE)],
    "undetermined": [(K.BLOCKED, None)],
    "out-of-office": [(K.SENT, None), (K.DELIVERED, None)],
    "delayed": [(K.SENT, None), (K.DEFERRED, None), (K.DELIVERED, None)],
    "complaint": [
        (K.SENT, None),
        (K.DELIVERED, None),
        (K.COMPLAINED, AddressEffect.COMPLAINT),
    ],
    "not-spam": [(K.SENT, None), (K.DELIVERED, None)],
    "virus": [(K.REJECTED, None)],
    "twice": [(K.SENT, None), (K.DELIVERED, None), (K.DELIVERED, None)],
    "forged": [(K.SENT, None), (K.DELIVERED, None)],
    "other-topic": [(K.SENT, None), (K.DELIVERED, None)],
    "slow": [(K.SENT, None), (K.DELIVERED, None)],
    "dripping": [(K.SENT, None), (K.DELIVERED, None)],
}
"""The receipts of accepted mails."""
REFUSED = {"forged": 1, "other-topic": 1}
"""How many notifications of an outcome are refused."""
SILENT = {"out-of-office": 1, "not-spam": 1}
"""How many notifications of an outcome say nothing."""


@pytest.fixture(scope="module")
def _one_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SesAccount]:
    with receiving() as receiver:
        config = Config(
            data=tmp_path_factory.mktemp("sandbox"),
            mail_webhooks_url=receiver.url,
            timings=replace(QUICK, delivered=0.15, late=60.0),
        )
        with run_in_thread(config) as sandbox:
            account = SesAccount(sandbox=sandbox, receiver=receiver)
            confirm(account)
            yield account


def confirm(account: SesAccount) -> None:
    """Let a mail ask for the subscription, and confirm it."""
    replace(account, reference=f"{uuid.uuid4().hex[:24]}.email.1").send()
    first = until(lambda: account.receiver.posts)[0]
    assert first.headers["x-amz-sns-message-type"] == "SubscriptionConfirmation"
    assert account.parsed(first).receipts == ()


@pytest.fixture
def line(_one_account: SesAccount) -> SesAccount:
    return replace(_one_account, reference=f"{uuid.uuid4().hex[:24]}.email.1")


def test_every_magic_address_is_covered() -> None:
    names = {row.name for row in OUTCOMES.table}
    assert names - {"delivered", "no-events"} == (EXPECTED.keys() | RECEIPTS.keys()) - {"ada"}
    assert PROBLEMS.keys() <= EXPECTED.keys()


@each_case("outcome", sorted(EXPECTED))
def test_refusal_is_the_expected_error(line: SesAccount, outcome: str) -> None:
    error = line.send(outcome, timeout=SHORT if outcome.startswith("timeout") else LIMIT)
    assert type(error) is EXPECTED[outcome]
    assert getattr(error, "is_ambiguous", False) is (outcome in AMBIGUOUS)
    if outcome in PROBLEMS and outcome != "too-large":
        assert error.response.code == PROBLEMS[outcome].name


def receipts(account: SesAccount, posts: list[Post]) -> Iterator[Receipt]:
    for post in posts:
        try:
            yield from account.parsed(post).receipts
        except InvalidSignatureError:
            continue


@each_case("outcome", sorted(RECEIPTS))
def test_events_are_received_and_others_refused(line: SesAccount, outcome: str) -> None:
    own = replace(line, reference=f"{uuid.uuid4().hex[:24]}.email.1")
    result = own.send(outcome)
    assert isinstance(result, SendResult)
    extra = REFUSED.get(outcome, 0) + SILENT.get(outcome, 0)
    found = list(receipts(own, own.posts(len(RECEIPTS[outcome]) + extra)))
    assert [(each.kind, each.address_effect) for each in found] == RECEIPTS[outcome]
    assert {(each.reference, each.provider_id) for each in found} == {
        (own.reference, result.provider_id)
    }
    repeats = 1 if outcome == "twice" else 0
    assert len({each.event_id for each in found}) == len(found) - repeats


@each_case("fault", ["reset", "truncated", "empty", "not-json"])
def test_lost_answer_is_resolved_by_the_reference(line: SesAccount, fault: str) -> None:
    own = replace(line, reference=f"{uuid.uuid4().hex[:24]}.email.1")
    assert isinstance(own.send(fault), TransientError)
    if fault in ("empty", "not-json"):
        assert [each.kind for each in receipts(own, own.posts(2))] == [K.SENT, K.DELIVERED]


@each_case(
    "fields, code, words",
    [
        ({"region": "us-east-1"}, "InvalidSignatureException", "signature"),
        (
            {"clock": lambda: utc_now() - timedelta(minutes=10)},
            "InvalidSignatureException",
            "clock",
        ),
        (
            {"clock": lambda: utc_now() + timedelta(minutes=10)},
            "InvalidSignatureException",
            "clock",
        ),
        (
            {
                "credentials": Credentials(
                    access_key_id="AKIASANDBOX00000001", secret_access_key="another"
                )
            },
            "InvalidSignatureException",
            "signature",
        ),
        (
            {
                "credentials": Credentials(
                    access_key_id="AKIAREVOKED00000001", secret_access_key="sandbox"
                )
            },
            "UnrecognizedClientException",
            "access key",
        ),
        (
            {
                "credentials": Credentials(
                    access_key_id="ASIAEXPIRED00000001", secret_access_key="sandbox"
                )
            },
            "ExpiredTokenException",
            "expired",
        ),
        (
            {
                "credentials": Credentials(
                    access_key_id="AKIADENIED000000001", secret_access_key="sandbox"
                )
            },
            "AccessDeniedException",
            "permission",
        ),
        ({"configuration_set": "another"}, "NotFoundException", "configuration set"),
        ({"sender": "shop@unverified.example"}, "MessageRejected", "verified"),
    ],
)
def test_wrong_account_is_unavailable_and_says_why(
    line: SesAccount, fields: dict[str, Any], code: str, words: str
) -> None:
    error = line.send(**fields)
    assert isinstance(error, ProviderUnavailableError)
    assert error.response is not None
    assert (error.response.code, words in error.reason) == (code, True)


def test_subscription_of_another_topic_or_key_is_not_confirmed(line: SesAccount) -> None:
    first = _request(line.receiver.posts[0])
    other_topic = line.account(topics=frozenset({"arn:aws:sns:eu-west-1:000000000000:other"}))
    with pytest.raises(InvalidSignatureError):
        other_topic.parse_webhook(first)
    credentials = Credentials(access_key_id="AKIAREVOKED00000001", secret_access_key="sandbox")
    revoked = line.account(credentials=credentials)
    with pytest.raises(UnverifiedWebhookError):
        revoked.parse_webhook(first)


def test_notification_is_refused_while_its_certificate_cannot_be_fetched(
    line: SesAccount,
) -> None:
    line.send()
    post = line.posts(2)[0]
    with pytest.raises(UnverifiedWebhookError):
        line.account(sns_url="http://127.0.0.1:1/sns").parse_webhook(_request(post))


def _request(post: Post) -> WebhookRequest:
    return webhook_request(post.raw, {name.lower(): text for name, text in post.headers.items()})
