"""Mail by SendGrid to many at once: one request, and to each the outcome that is theirs."""

from collections.abc import Iterator
from typing import Any

import pytest

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from providers.contract import Message, NotAttemptedError, SendResult
from providers.sendgrid import provider
from sandbox.server import Sandbox
from tests.support.providers.sendgrid import LINK, Account, leaving, mails, people
from tests.support.waiting import LIMIT, SHORT


@pytest.fixture
def account(_sandbox: Sandbox) -> Iterator[Account]:
    """Give a test a SendGrid account that nothing was sent by."""
    account = Account(sandbox=_sandbox)
    account.reset()
    yield account
    account.reset()


def kinds(outcomes: list[SendResult | ProviderError]) -> list[type]:
    return [type(outcome) for outcome in outcomes]


# One request.


def test_a_thousand_go_in_one_request(account: Account) -> None:
    everybody = people(1_000)
    outcomes = account.send(mails(*everybody))
    assert set(kinds(outcomes)) == {SendResult}
    (body,) = account.bodies()
    assert [p["to"] for p in body["personalizations"]] == [[{"email": a}] for a in everybody]
    assert body["content"][0] == {"type": "text/plain", "value": "There is news."}


def test_each_recipient_has_a_reference_of_their_own_and_sees_nobody_else(account: Account) -> None:
    account.send(mails(*people(3)))
    (body,) = account.bodies()
    assert [p["custom_args"] for p in body["personalizations"]] == [
        {"reference": f"{number:024x}.email.1"} for number in range(3)
    ]
    assert all(len(p["to"]) == 1 for p in body["personalizations"])


def test_more_than_a_thousand_are_several_requests(account: Account) -> None:
    outcomes = account.send(mails(*people(1_001)))
    assert set(kinds(outcomes)) == {SendResult}
    assert [len(body["personalizations"]) for body in account.bodies()] == [1_000, 1]


def test_an_address_is_in_a_request_only_once(account: Account) -> None:
    """SendGrid refuses one that has it twice, however it is written."""
    outcomes = account.send(mails("ada@example.com", "bob@example.com", "Ada@example.com"))
    assert set(kinds(outcomes)) == {SendResult}
    assert [len(body["personalizations"]) for body in account.bodies()] == [2, 1]


def test_one_alone_is_sent_as_ever(account: Account) -> None:
    (mail,) = mails("ada@example.com")
    account.send([mail])
    account.sendgrid().send(mail, timeout=LIMIT)
    first, second = account.bodies()
    assert first == second


def test_nobody_is_nothing(account: Account) -> None:
    assert account.send([]) == []
    assert account.requests() == []


def test_all_have_the_requests_id_and_one_without_has_none(account: Account) -> None:
    outcomes = account.send(mails(*people(3)))
    assert len({one.provider_id for one in outcomes if isinstance(one, SendResult)}) == 1
    outcomes = account.send(mails(*people(3, "no-id@example.com")))
    assert [one.provider_id for one in outcomes if isinstance(one, SendResult)] == [None] * 4


def test_different_mails_are_never_sent_as_one(account: Account) -> None:
    """Somebody would be told what is meant for somebody else."""
    (one,) = mails("ada@example.com")
    for message in (
        Message(subject="Other news", text="There is news.", html="<p>There is news.</p>"),
        Message(subject="News", text="Dear Bob, there is news.", html="<p>There is news.</p>"),
        Message(subject="News", text="There is news."),
    ):
        (other,) = mails("bob@example.com", message=message)
        assert account.sendgrid().batch_key(one.message) != account.sendgrid().batch_key(
            other.message
        )
        with pytest.raises(ValueError, match="differ"):
            account.send([one, other])
    assert account.requests() == []


# A link of one's own.


def test_each_unsubscribes_by_their_own_link_and_it_is_still_one_request(account: Account) -> None:
    tokens = ["first-token", "second-token", "third-token"]
    news = [leaving(f"p{n}@example.com", number=n, token=t) for n, t in enumerate(tokens)]
    account.send(news)
    (body,) = account.bodies()
    for token, one in zip(tokens, body["personalizations"], strict=True):
        assert one["headers"] == {
            "List-Unsubscribe": f"<{LINK}{token}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        }
        ((tag, value),) = one["substitutions"].items()
        assert value == token
        texts = [part["value"].replace(tag, value) for part in body["content"]]
        assert texts == [
            f"There is news.\n\nUnsubscribe: {LINK}{token}",
            f'<p>There is news.</p><a href="{LINK}{token}">Unsubscribe</a>',
        ]


def test_nobodys_link_is_in_what_all_get(account: Account) -> None:
    account.send([leaving(f"p{n}@example.com", number=n, token=f"token-{n}") for n in range(3)])
    (body,) = account.bodies()
    assert "token-" not in str(body["content"])
    assert LINK in body["content"][0]["value"]


def test_the_tag_is_another_each_time(account: Account) -> None:
    """Nobody can write a text in which it stands."""
    for _ in range(2):
        account.send([leaving("ada@example.com", token="t")])
    tags = [next(iter(b["personalizations"][0]["substitutions"])) for b in account.bodies()]
    assert tags[0] != tags[1]


def test_a_mail_with_a_link_and_one_without_are_different(account: Account) -> None:
    sendgrid = account.sendgrid()
    with_link = leaving("ada@example.com", token="t")
    elsewhere = leaving("ada@example.com", token="x/t")
    (without,) = mails("ada@example.com")
    keys = {sendgrid.batch_key(mail.message) for mail in (with_link, elsewhere, without)}
    assert len(keys) == 3


# Refused because of some.


def test_one_whom_sendgrid_does_not_take_does_not_spoil_it_for_the_others(
    account: Account,
) -> None:
    outcomes = account.send(mails(*people(9), "invalid@example.com", *people(0)))
    assert kinds(outcomes) == [SendResult] * 9 + [InvalidRecipientError]
    assert account.reached() == sorted(people(9))


def test_an_address_that_is_none_to_sendgrid_is_blamed_alone(account: Account) -> None:
    outcomes = account.send(mails(*people(3), '"a b"@example.com', "last@example.com"))
    assert kinds(outcomes) == [SendResult] * 3 + [InvalidRecipientError, SendResult]
    assert account.reached() == sorted(people(3, "last@example.com"))


def test_an_address_that_cannot_be_sent_to_is_left_out_before_anybody_is_asked(
    account: Account,
) -> None:
    outcomes = account.send(mails("ada@example.com", "bob@\u2602\u2602", "eve@example.com"))
    assert kinds(outcomes) == [SendResult, PermanentError, SendResult]
    assert len(account.requests()) == 1


def test_a_subject_that_is_refused_is_refused_for_all_at_once(account: Account) -> None:
    message = Message(subject="", text="There is news.")
    outcomes = account.send(mails(*people(50), message=message))
    assert set(kinds(outcomes)) == {PermanentError}
    assert len(account.requests()) == 1


def test_a_text_that_cannot_be_sent_is_refused_for_all_before_anybody_is_asked(
    account: Account,
) -> None:
    outcomes = account.send(mails(*people(3), message=Message(subject="News", text="\ud800")))
    assert [o.code for o in outcomes if isinstance(o, ProviderError)] == [
        FailureCode.RENDER_FAILED
    ] * 3
    assert account.requests() == []


# The nasty cases.


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
def test_an_answer_for_the_whole_request_is_everybodys(
    account: Account, outcome: str, kind: type[ProviderError], code: FailureCode
) -> None:
    outcomes = account.send(mails(*people(9), f"{outcome}@example.com"))
    assert set(kinds(outcomes)) == {kind}
    assert {o.code for o in outcomes if isinstance(o, ProviderError)} == {code}
    assert not any(getattr(o, "is_ambiguous", False) for o in outcomes)
    assert len(account.requests()) == 1
    assert account.reached() == []


def test_a_rate_limit_tells_everybody_when_it_is_over(account: Account) -> None:
    outcomes = account.send(mails(*people(2), "ratelimit@example.com"))
    assert all(isinstance(o, TransientError) and o.retry_after for o in outcomes)


@pytest.mark.parametrize("key", ["SG.revoked", "SG.exhausted", "SG.noscope"])
def test_an_account_that_is_refused_blames_nobody(account: Account, key: str) -> None:
    outcomes = account.send(mails(*people(3)), api_key=key)
    assert set(kinds(outcomes)) == {ProviderUnavailableError}
    assert len(account.requests()) == 1


@pytest.mark.parametrize("outcome", ["timeout", "timeout-lost", "reset", "truncated"])
def test_no_whole_answer_is_an_unknown_outcome_for_all_of_the_request(
    account: Account, outcome: str
) -> None:
    timeout = SHORT if outcome.startswith("timeout") else LIMIT
    outcomes = account.send(mails(*people(9), f"{outcome}@example.com"), timeout=timeout)
    assert set(kinds(outcomes)) == {TransientError}
    assert all(isinstance(o, TransientError) and o.is_ambiguous for o in outcomes)
    assert len(account.requests()) == 1


def test_an_unknown_outcome_after_a_refusal_is_that_of_its_half(account: Account) -> None:
    outcomes = account.send(mails("invalid@example.com", *people(2), "reset@example.com"))
    assert kinds(outcomes)[:2] == [InvalidRecipientError, SendResult]
    rest = outcomes[2:]
    assert all(isinstance(o, TransientError) and o.is_ambiguous for o in rest)
    reached = account.until_reached(3)
    assert len(reached) == len(set(reached))


def test_a_failure_after_a_refusal_ends_it(account: Account) -> None:
    outcomes = account.send(mails("invalid@example.com", *people(2), "server-error@example.com"))
    assert set(kinds(outcomes)) == {TransientError}
    assert {o.code for o in outcomes if isinstance(o, TransientError) and not o.is_ambiguous} == {
        FailureCode.PROVIDER_ERROR
    }
    assert [request["outcome"] for request in account.requests()] == [
        *("invalid", "invalid", "server-error")
    ]


def test_what_there_is_no_time_for_is_given_back_and_has_not_left(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "MIN_REQUEST_SECONDS", LIMIT)
    outcomes = account.send(mails("invalid@example.com", *people(7)), timeout=LIMIT)
    assert set(kinds(outcomes)) == {NotAttemptedError}
    assert account.reached() == []


def test_a_provider_that_is_not_there_got_nothing(account: Account) -> None:
    outcomes = account.send(mails(*people(3)), base_url="http://127.0.0.1:1")
    assert [o.code for o in outcomes if isinstance(o, TransientError) and not o.is_ambiguous] == [
        FailureCode.CONNECTION_FAILED
    ] * 3


def test_no_reason_holds_an_address(account: Account) -> None:
    outcomes: list[Any] = account.send(mails("invalid@example.com", "server-error@example.com"))
    assert all("@" not in outcome.reason for outcome in outcomes)
