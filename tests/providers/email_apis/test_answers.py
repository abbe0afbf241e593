"""Every kind of answer has its class, and no rule is without a recorded answer."""

import json
from dataclasses import replace

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    ProviderError,
    ProviderUnavailableError,
)
from providers.discovery import SPECS
from providers.email_api import EmailApi
from providers.http import Response
from providers.registry import get_provider
from providers.response_rules import ResponseRule
from tests.providers.email_apis.cases import EVERY, KINDS
from tests.providers.email_apis.kinds import ADDRESS, Answer, KindCase
from tests.support.factories.notifications import outbound


def response(answer: Answer) -> Response:
    return Response(status=answer.status, headers=answer.headers, body=answer.raw)


def result(account: EmailApi, answer: Answer) -> ProviderError:
    found = response(answer)
    assert account.build(outbound()).accepted_id(found) is None
    return account.refusal(found)


def test_every_kind_is_under_test() -> None:
    kinds = {
        name
        for name, spec in SPECS.items()
        if spec.channel == "email" and isinstance(get_provider(name), EmailApi)
    }
    assert kinds == {case.name for case in KINDS}


@EVERY
def test_acceptance_has_the_message_id(case: KindCase) -> None:
    built = case.account().build(outbound(recipient=ADDRESS))
    body = json.dumps(case.accepted).encode()
    accepted = Response(status=case.success, headers={}, body=body)
    assert built.accepted_id(accepted) == case.message_id


@EVERY
def test_recorded_answer_has_its_class(case: KindCase) -> None:
    account = case.account()
    for answer in case.answers:
        error = result(account, answer)
        assert type(error) is answer.error, (answer, error)
        assert error.code is answer.code, answer
        assert getattr(error, "is_ambiguous", False) == answer.is_ambiguous, answer
        assert getattr(error, "retry_after", None) == answer.retry_after, answer


@EVERY
def test_every_rule_has_a_recorded_answer(case: KindCase) -> None:
    def deciding(answer: Answer) -> ResponseRule | None:
        found = json.loads(answer.raw) if answer.raw[:1] == b"{" else {}
        refusal = case.kind.read_refusal(found)
        plain = answer.raw.decode() if answer.raw.decode() in case.kind.plain_refusals else ""
        names = [name for name in (refusal.code, refusal.text or plain) if name]
        matching = (r for r in case.kind.rules if r.matches(status=answer.status, fields=names))
        return next(matching, None)

    decided = {id(deciding(answer)) for answer in case.answers}
    assert [rule.reason for rule in case.kind.rules if id(rule) not in decided] == []


@EVERY
def test_quotas_and_rates_never_fail_a_message_or_an_address(case: KindCase) -> None:
    for answer in case.answers:
        error = result(case.account(), replace(answer, headers={}))
        if answer.status in (402, 429) or answer.code is FailureCode.RATE_LIMITED:
            is_limited = error.code is FailureCode.RATE_LIMITED
            assert is_limited or isinstance(error, ProviderUnavailableError), answer


PAGES = (
    "To view this page, the recipient must log in",
    "Invalid 'To' address. It was suppressed. Email is not valid in to. Error 406",
    "<html>recipient suppressed: 'to' parameter is not a valid address</html>",
    '{"detail": "recipient suppressed", "to": "invalid address"}',
)


@EVERY
def test_page_of_a_proxy_says_nothing_about_a_recipient(case: KindCase) -> None:
    for page in PAGES:
        for status in (*range(200, 206), *range(300, 309), *range(400, 452), *range(500, 505)):
            body = page.encode()
            error = case.account().refusal(Response(status=status, headers={}, body=body))
            assert not isinstance(error, InvalidRecipientError), (status, page)
            assert error.code is not FailureCode.INVALID_RECIPIENT, (status, page)
            if status < 300:
                assert getattr(error, "is_ambiguous", False), (status, page)


@EVERY
def test_error_quotes_no_address(case: KindCase) -> None:
    for answer in case.answers:
        error = result(case.account(), answer)
        assert ADDRESS not in f"{error} {error!r} {error.response!r}"
