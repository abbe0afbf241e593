"""Events of every kind: what each means, and that only the provider's own count."""

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta

import pytest

from providers.contract import InvalidSignatureError, WebhookResult
from providers.email_api import EmailApi
from tests.providers.email_apis.cases import EVERY
from tests.providers.email_apis.kinds import ADDRESS, NOW, REFERENCE, KindCase, as_list
from tests.providers.email_apis.mailgun import MAILGUN
from tests.providers.email_apis.mailtrap import MAILTRAP
from tests.support.providers.webhook_requests import webhook_request
from tests.support.tables import each_case

Call = tuple[str, Mapping[str, str], bytes]


def parse(account: EmailApi, headers: Mapping[str, str], raw: bytes) -> WebhookResult:
    return account.parse_webhook(webhook_request(raw, headers))


def genuine(case: KindCase, number: int = 0) -> bytes:
    return case.encode(case.events[number].event, True)


@EVERY
def test_each_event_has_its_meaning(case: KindCase) -> None:
    account = case.account()
    for reported in case.events:
        raw = case.encode(reported.event, True)
        result = parse(account, case.sign(raw, True), raw)
        found = [(receipt.kind, receipt.address_effect) for receipt in result.receipts]
        expected = [(reported.kind, reported.effect)] if reported.kind else []
        assert (found, result.unreadable_count) == (expected, 0), reported
        for receipt in result.receipts:
            assert (receipt.reference, receipt.address) == (REFERENCE, ADDRESS)
            assert receipt.provider_id
            assert ADDRESS not in (receipt.reason or "")
        assert result.logged == raw.decode()
        assert account.parse_logged(raw).receipts == result.receipts


@EVERY
def test_every_event_of_the_table_was_recorded(case: KindCase) -> None:
    recorded = {case.kind.event_name(reported.event) for reported in case.events}
    first = {name.partition(" ")[0] for name in recorded - case.kind.events.keys()}
    assert case.kind.events.keys() - recorded - first == set()


@EVERY
def test_repeated_event_has_the_same_id_and_another_event_has_another(case: KindCase) -> None:
    account, ids = case.account(), list[str]()
    for number, reported in enumerate(case.events):
        raws = [genuine(case, number)] * 2
        found = [parse(account, case.sign(raw, True), raw).receipts for raw in raws]
        assert found[0] == found[1]
        ids += [receipt.event_id for receipt in found[0]] if reported.kind else []
    assert len(ids) == len(set(ids))


def mutations(case: KindCase) -> Iterator[Call]:
    """Yield calls that aren't the provider's, or not as it made them."""
    event = case.events[0].event
    raw = case.encode(event, True)
    headers = dict(case.sign(raw, True))
    yield "nothing shows who calls", {}, raw
    other = case.encode(event, False)
    yield "somebody else's secret", case.sign(other, False), other
    for name in headers:
        yield f"no {name}", {key: value for key, value in headers.items() if key != name}, raw
        for value in ("", "0", "x" * 5_000, "é\u2028", headers[name][:-1], "Basic", "v1,"):
            yield f"{name} is {value[:9]!r}", {**headers, name: value}, raw
    if case.signs_body:
        yield "another body", headers, raw.replace(REFERENCE.encode(), b"f" * len(REFERENCE))
        yield "a longer body", headers, raw + b" "


@EVERY
def test_forged_webhook_is_refused(case: KindCase) -> None:
    account, accepted = case.account(), list[str]()
    for why, headers, raw in mutations(case):
        try:
            parse(account, headers, raw)
        except InvalidSignatureError:
            continue
        accepted.append(why)
    assert accepted == []


@EVERY
def test_replayed_webhook_is_refused_or_has_no_effect(case: KindCase) -> None:
    raw = genuine(case)
    headers = case.sign(raw, True)
    first = parse(case.account(), headers, raw)
    later = case.account(clock=lambda: NOW + timedelta(minutes=16))
    if "signing_key" in case.secrets:
        with pytest.raises(InvalidSignatureError):
            parse(later, headers, raw)
    else:
        # Nothing is signed, and an event with a known ID has no effect.
        repeated = parse(later, headers, raw)
        assert repeated.receipts[0].event_id == first.receipts[0].event_id


@EVERY
def test_each_secret_is_required(case: KindCase) -> None:
    raw = genuine(case)
    account = case.account()
    for name in case.secrets:
        secrets = type(account.secrets)(**{**case.secrets, name: ""})
        with pytest.raises(InvalidSignatureError):
            parse(case.account(secrets=secrets), case.sign(raw, True), raw)


@EVERY
def test_signed_nonsense_is_unreadable(case: KindCase) -> None:
    account = case.account()
    for raw in (b"", b"{", b"null", b"7", b'"x"', b"\xff", b"{}", b'{"a": 1}', b"[" * 9_000):
        with pytest.raises((ValueError, InvalidSignatureError)):
            parse(account, case.sign(raw, True), raw)


def changed_signature(**fields: str) -> bytes:
    found = json.loads(MAILGUN.encode(MAILGUN.events[0].event, True))
    found["signature"] |= fields
    return json.dumps(found).encode()


@each_case(
    "fields",
    [
        {"signature": ""},
        {"signature": "0" * 64},
        {"signature": "é" * 64},
        {"token": ""},
        {"token": "another"},
        {"timestamp": "1"},
        {"timestamp": str(int(NOW.timestamp()) + 1)},
        {"timestamp": str(int(NOW.timestamp()) + 10_000)},
        {"timestamp": "soon"},
    ],
)
def test_changed_signature_of_mailgun_is_refused(fields: dict[str, str]) -> None:
    raw = changed_signature(**fields)
    with pytest.raises(InvalidSignatureError):
        parse(MAILGUN.account(), MAILGUN.sign(raw, True), raw)


def test_other_event_with_a_used_token_of_mailgun_has_its_id_and_so_no_effect() -> None:
    """The signature doesn't cover the event, so that somebody who knows one could forge another."""
    raw = genuine(MAILGUN)
    forged = raw.replace(b'"delivered"', b'"complained"')
    assert forged != raw
    found = [parse(MAILGUN.account(), MAILGUN.sign(r, True), r).receipts for r in (raw, forged)]
    assert found[0][0].event_id == found[1][0].event_id


@EVERY
def test_event_of_an_unknown_kind_is_counted_and_acknowledged(case: KindCase) -> None:
    """A refused webhook is repeated for hours, and in the end the provider turns it off."""
    name = case.kind.event_name(case.events[0].event)
    found = json.dumps(case.events[0].event).replace(f'"{name}"', '"event.of.tomorrow"')
    raw = case.encode(json.loads(found), True)
    result = parse(case.account(), case.sign(raw, True), raw)
    assert (result.receipts, result.unreadable_count) == ((), 1)
    assert result.logged


@EVERY
def test_unreadable_event_of_a_list_is_counted_and_others_take_effect(case: KindCase) -> None:
    if case.encode not in (as_list, MAILTRAP.encode):
        return
    events = [case.events[0].event, {"event": 7}, 7, case.events[1].event]
    field = case.kind.list_field
    raw = json.dumps({field: events} if field else events).encode()
    found = case.account().parse_logged(raw)
    assert (len(found.receipts), found.unreadable_count) == (2, 2)
