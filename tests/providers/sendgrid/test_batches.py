"""SendGrid batches: one request, one outcome per recipient, and bisection."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from notifyproject.platform import event_loop
from providers.contract import Message, NotAttemptedError, SendResult
from providers.sendgrid import provider
from providers.sendgrid.provider import MAX_REQUESTS, Outcome, RequestResult, send_bisecting
from sandbox.assembly import Sandbox
from tests.support.providers.sendgrid import LINK, Account, leaving, mails, people
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, SHORT


@pytest.fixture
def account(_sandbox: Sandbox) -> Iterator[Account]:
    account = Account(sandbox=_sandbox)
    account.reset()
    yield account
    account.reset()


def kinds(outcomes: list[SendResult | ProviderError]) -> list[type]:
    return [type(outcome) for outcome in outcomes]


def test_thousand_recipients_are_one_request(account: Account) -> None:
    everybody = people(1_000)
    outcomes = account.send(mails(*everybody))
    assert set(kinds(outcomes)) == {SendResult}
    (body,) = account.bodies()
    assert [p["to"] for p in body["personalizations"]] == [[{"email": a}] for a in everybody]
    assert [p["custom_args"] for p in body["personalizations"]] == [
        {"reference": f"{number:024x}.email.1"} for number in range(1_000)
    ]
    assert body["content"][0] == {"type": "text/plain", "value": "There is news."}


def test_more_than_a_thousand_are_several_requests(account: Account) -> None:
    outcomes = account.send(mails(*people(1_001)))
    assert set(kinds(outcomes)) == {SendResult}
    assert [len(body["personalizations"]) for body in account.bodies()] == [1_000, 1]


def test_address_is_in_a_request_only_once(account: Account) -> None:
    """SendGrid refuses duplicates in a request, regardless of case."""
    outcomes = account.send(mails("ada@example.com", "bob@example.com", "Ada@example.com"))
    assert set(kinds(outcomes)) == {SendResult}
    assert [len(body["personalizations"]) for body in account.bodies()] == [2, 1]


def test_batch_of_one_equals_a_single_send(account: Account) -> None:
    (mail,) = mails("ada@example.com")
    account.send([mail])
    event_loop.run(account.sendgrid().send(mail, timeout=LIMIT))
    first, second = account.bodies()
    assert first == second


def test_empty_batch_sends_nothing(account: Account) -> None:
    assert account.send([]) == []
    assert account.requests() == []


def test_batch_shares_the_message_id(account: Account) -> None:
    outcomes = account.send(mails(*people(3)))
    assert (
        len({outcome.provider_id for outcome in outcomes if isinstance(outcome, SendResult)}) == 1
    )
    outcomes = account.send(mails(*people(3, "no-id@example.com")))
    assert [outcome.provider_id for outcome in outcomes if isinstance(outcome, SendResult)] == [
        None
    ] * 4


def test_different_mails_are_not_batched(account: Account) -> None:
    (first,), sendgrid = mails("ada@example.com"), account.sendgrid()
    for message in (
        Message(subject="Other news", text="There is news.", html="<p>There is news.</p>"),
        Message(subject="News", text="Dear Bob, there is news.", html="<p>There is news.</p>"),
        Message(subject="News", text="There is news."),
    ):
        (other,) = mails("bob@example.com", message=message)
        assert sendgrid.batch_key(first.message) != sendgrid.batch_key(other.message)
        with pytest.raises(ValueError, match="differ"):
            account.send([first, other])
    assert account.requests() == []


def test_batch_has_an_unsubscribe_link_per_recipient(account: Account) -> None:
    tokens = ["first-token", "second-token", "third-token"]
    news = [leaving(f"p{n}@example.com", number=n, token=t) for n, t in enumerate(tokens)]
    account.send(news)
    (body,) = account.bodies()
    for token, personalization in zip(tokens, body["personalizations"], strict=True):
        assert personalization["headers"] == {
            "Auto-Submitted": "auto-generated",
            "List-Unsubscribe": f"<{LINK}{token}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        }
        ((tag, value),) = personalization["substitutions"].items()
        assert value == token
        texts = [part["value"].replace(tag, value) for part in body["content"]]
        assert texts == [
            f"There is news.\n\nUnsubscribe: {LINK}{token}",
            f'<p>There is news.</p><a href="{LINK}{token}">Unsubscribe</a>',
        ]


def test_shared_content_contains_no_unsubscribe_token(account: Account) -> None:
    account.send([leaving(f"p{n}@example.com", number=n, token=f"token-{n}") for n in range(3)])
    (body,) = account.bodies()
    assert "token-" not in str(body["content"])
    assert LINK in body["content"][0]["value"]


def test_substitution_tag_is_random(account: Account) -> None:
    """The tag is random so that no content can contain it."""
    for _ in range(2):
        account.send([leaving("ada@example.com", token="t")])
    tags = [next(iter(b["personalizations"][0]["substitutions"])) for b in account.bodies()]
    assert tags[0] != tags[1]


def test_batch_key_differs_by_unsubscribe_link(account: Account) -> None:
    sendgrid = account.sendgrid()
    with_link = leaving("ada@example.com", token="t")
    elsewhere = leaving("ada@example.com", token="x/t")
    (without,) = mails("ada@example.com")
    keys = {sendgrid.batch_key(mail.message) for mail in (with_link, elsewhere, without)}
    assert len(keys) == 3


def test_refused_recipient_does_not_fail_the_others(account: Account) -> None:
    outcomes = account.send(mails(*people(9), "invalid@example.com", *people(0)))
    assert kinds(outcomes) == [SendResult] * 9 + [InvalidRecipientError]
    assert account.reached() == sorted(people(9))


def test_address_invalid_for_sendgrid_fails_alone(account: Account) -> None:
    outcomes = account.send(mails(*people(3), '"a b"@example.com', "last@example.com"))
    assert kinds(outcomes) == [SendResult] * 3 + [InvalidRecipientError, SendResult]
    assert account.reached() == sorted(people(3, "last@example.com"))


def test_unencodable_address_is_left_out_unsent(account: Account) -> None:
    outcomes = account.send(mails("ada@example.com", "bob@\u2602\u2602", "eve@example.com"))
    assert kinds(outcomes) == [SendResult, PermanentError, SendResult]
    assert len(account.requests()) == 1


def test_refused_subject_fails_all_at_once(account: Account) -> None:
    message = Message(subject="", text="There is news.")
    outcomes = account.send(mails(*people(50), message=message))
    assert set(kinds(outcomes)) == {PermanentError}
    assert len(account.requests()) == 1


def test_unencodable_text_fails_all_unsent(account: Account) -> None:
    outcomes = account.send(mails(*people(3), message=Message(subject="News", text="\ud800")))
    assert [o.code for o in outcomes if isinstance(o, ProviderError)] == [
        FailureCode.RENDER_FAILED
    ] * 3
    assert account.requests() == []


@pytest.mark.parametrize(
    ("outcome", "kind", "code"),
    [
        ("ratelimit", TransientError, FailureCode.RATE_LIMITED),
        ("server-error", TransientError, FailureCode.PROVIDER_ERROR),
        ("unavailable", TransientError, FailureCode.PROVIDER_ERROR),
        ("bad-gateway", TransientError, FailureCode.PROVIDER_ERROR),
        ("redirect", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        ("too-large", PermanentError, FailureCode.TOO_LARGE),
    ],
)
def test_answer_applies_to_every_recipient(
    account: Account, outcome: str, kind: type[ProviderError], code: FailureCode
) -> None:
    outcomes = account.send(mails(*people(9), f"{outcome}@example.com"))
    assert set(kinds(outcomes)) == {kind}
    assert {o.code for o in outcomes if isinstance(o, ProviderError)} == {code}
    assert not any(getattr(o, "is_ambiguous", False) for o in outcomes)
    assert len(account.requests()) == 1
    assert account.reached() == []


def test_rate_limit_gives_every_recipient_a_retry_time(account: Account) -> None:
    outcomes = account.send(mails(*people(2), "ratelimit@example.com"))
    assert all(isinstance(o, TransientError) and o.retry_after for o in outcomes)


@pytest.mark.parametrize("key", ["SG.revoked", "SG.exhausted", "SG.noscope"])
def test_refused_account_fails_no_recipient(account: Account, key: str) -> None:
    outcomes = account.send(mails(*people(3)), api_key=key)
    assert set(kinds(outcomes)) == {ProviderUnavailableError}
    assert len(account.requests()) == 1


@pytest.mark.parametrize("outcome", ["timeout", "timeout-lost", "reset", "truncated"])
def test_missing_answer_is_ambiguous_for_every_recipient(account: Account, outcome: str) -> None:
    timeout = SHORT if outcome.startswith("timeout") else LIMIT
    outcomes = account.send(mails(*people(9), f"{outcome}@example.com"), timeout=timeout)
    assert set(kinds(outcomes)) == {TransientError}
    assert all(isinstance(o, TransientError) and o.is_ambiguous for o in outcomes)
    assert len(account.requests()) == 1


def test_missing_answer_after_bisection_is_ambiguous_for_its_half(account: Account) -> None:
    outcomes = account.send(mails("invalid@example.com", *people(2), "reset@example.com"))
    assert kinds(outcomes)[:2] == [InvalidRecipientError, SendResult]
    rest = outcomes[2:]
    assert all(isinstance(o, TransientError) and o.is_ambiguous for o in rest)
    reached = account.until_reached(3)
    assert len(reached) == len(set(reached))


def test_failure_after_bisection_ends_it(account: Account) -> None:
    outcomes = account.send(mails("invalid@example.com", *people(2), "server-error@example.com"))
    assert set(kinds(outcomes)) == {TransientError}
    assert {o.code for o in outcomes if isinstance(o, TransientError) and not o.is_ambiguous} == {
        FailureCode.PROVIDER_ERROR
    }
    assert [request["outcome"] for request in account.requests()] == [
        "invalid",
        "invalid",
        "server-error",
    ]


def test_bisection_without_time_returns_unattempted(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "MIN_REQUEST_SECONDS", LIMIT)
    outcomes = account.send(mails("invalid@example.com", *people(7)), timeout=LIMIT)
    assert set(kinds(outcomes)) == {NotAttemptedError}
    assert account.reached() == []


def test_refused_connection_is_not_ambiguous(account: Account) -> None:
    outcomes = account.send(mails(*people(3)), base_url="http://127.0.0.1:1")
    assert [o.code for o in outcomes if isinstance(o, TransientError) and not o.is_ambiguous] == [
        FailureCode.CONNECTION_FAILED
    ] * 3


SENT = SendResult(provider_id="sg-1", response=ProviderResponse(status=202))
BLAMED = InvalidRecipientError("no such address", action=RecipientAction.SUSPECT)
LOST = TransientError("no answer", code=FailureCode.TIMEOUT, is_ambiguous=True)
BUSY = TransientError("busy", code=FailureCode.RATE_LIMITED, retry_after=5)
BROKEN = TransientError("broken", code=FailureCode.PROVIDER_ERROR)
LOCKED = ProviderUnavailableError("wrong key")
TOO_LARGE = PermanentError("too large", code=FailureCode.TOO_LARGE)


class Provider:
    """Refuses requests that contain one of ``bad``. Returns ``answers`` or success for others."""

    def __init__(self, bad: Sequence[int] = (), answers: Sequence[Outcome] = ()) -> None:
        self.bad = set(bad)
        self.answers = list(answers)
        self.requests: list[list[int]] = []
        self.sent: Counter[int] = Counter()

    async def __call__(self, group: Sequence[int]) -> RequestResult:
        self.requests.append(list(group))
        if self.bad.intersection(group):
            return RequestResult(outcome=BLAMED, can_bisect=True)
        outcome = self.answers.pop(0) if self.answers else SENT
        if isinstance(outcome, SendResult) or outcome is LOST:
            self.sent.update(group)
        return RequestResult(outcome=outcome)


def bisect(
    provider: Provider, *requests: Sequence[int], seconds: int = 10**6
) -> dict[int, Outcome]:
    """Send a batch; after the first request, time remains for ``seconds`` further requests."""
    left = iter(range(seconds))
    return asyncio.run(
        send_bisecting(requests, send=provider, has_time=lambda: next(left, None) is not None)
    )


@given(count=st.integers(1, 200), bad=st.sets(st.integers(0, 199), max_size=4))
def test_only_refused_recipients_fail_and_others_get_one_mail(count: int, bad: set[int]) -> None:
    provider = Provider(sorted(bad))
    outcomes = bisect(provider, range(count))
    blamed = bad & set(range(count))
    assert {n for n, outcome in outcomes.items() if outcome is BLAMED} == blamed
    assert {n for n, outcome in outcomes.items() if outcome is SENT} == set(range(count)) - blamed
    assert provider.sent == Counter(set(range(count)) - blamed)


def test_one_bad_address_in_a_thousand_takes_about_twenty_requests() -> None:
    provider = Provider([617])
    outcomes = bisect(provider, range(1_000))
    assert outcomes[617] is BLAMED
    assert len(provider.requests) <= 21


def test_larger_groups_go_first() -> None:
    provider = Provider([0])
    bisect(provider, range(16))
    sizes = [len(group) for group in provider.requests]
    assert sizes == sorted(sizes, reverse=True)


@each_case("outcome", [BUSY, BROKEN, LOCKED])
def test_unavailable_provider_ends_bisection(outcome: ProviderError) -> None:
    provider = Provider([0], [SENT, outcome])
    outcomes = bisect(provider, range(16))
    taken = sorted(n for n, outcome in outcomes.items() if outcome is SENT)
    assert taken == list(range(8, 16))
    assert {outcomes[n] for n in range(8)} == {outcome}
    assert provider.sent == Counter(taken)


def test_ambiguous_outcome_stays_in_its_request() -> None:
    provider = Provider([0], [LOST])
    outcomes = bisect(provider, range(8))
    assert {n for n, outcome in outcomes.items() if outcome is LOST} == {4, 5, 6, 7}
    assert outcomes[0] is BLAMED
    assert {n for n, outcome in outcomes.items() if outcome is SENT} == {1, 2, 3}
    assert max(provider.sent.values()) == 1


def test_bisection_out_of_time_returns_unattempted() -> None:
    provider = Provider([0])
    outcomes = bisect(provider, range(16), seconds=2)
    assert len(provider.requests) == 3
    assert {n for n, outcome in outcomes.items() if outcome is SENT} == set(range(8, 16))
    left = [outcomes[n] for n in range(8)]
    assert all(
        isinstance(outcome, NotAttemptedError) and not outcome.is_ambiguous for outcome in left
    )


def test_first_request_needs_no_time() -> None:
    provider = Provider()
    assert bisect(provider, [0, 1], seconds=0) == {0: SENT, 1: SENT}


def test_entirely_bad_batch_ends() -> None:
    provider = Provider(range(1_000))
    outcomes = bisect(provider, range(1_000))
    assert len(provider.requests) == MAX_REQUESTS
    assert outcomes.keys() == set(range(1_000))
    assert all(
        isinstance(outcome, NotAttemptedError) or outcome is BLAMED for outcome in outcomes.values()
    )
    assert provider.sent == Counter()


def test_several_requests_go_in_turn() -> None:
    provider = Provider([1])
    outcomes = bisect(provider, [0, 1], [2, 3], [4])
    assert provider.requests[:3] == [[0, 1], [2, 3], [4]]
    assert [outcomes[n] for n in range(5)] == [SENT, BLAMED, SENT, SENT, SENT]
