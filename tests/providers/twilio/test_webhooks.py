"""Twilio's webhooks: signatures, receipts, and what people write."""

import json
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest

from domain.errors import FailureCode
from providers.contract import AddressEffect, InvalidSignatureError, ReceiptKind
from providers.twilio.responses import FAILURE_RULES
from providers.twilio.webhooks import SIGNATURE_HEADER
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.twilio import (
    CALLBACK,
    PHONE,
    REFERENCE,
    SID,
    TOKENS,
    account,
    callback,
    parse,
    sign,
    written,
)
from tests.support.providers.webhook_requests import webhook_request
from tests.support.tables import each_case

F, K, E = FailureCode, ReceiptKind, AddressEffect
FORM = "application/x-www-form-urlencoded; charset=UTF-8"
SIGNED: list[tuple[str, dict[str, str], str, str]] = [
    (
        "https://mycompany.com/myapp.php?foo=1&bar=2",
        {
            "CallSid": "CA1234567890ABCDE",
            "Digits": "1234",
            "From": "+14158675309",
            "To": "+18005551212",
            "Caller": "+14158675309",
        },
        "RSOYDt4T1cUTdK1PDd93/VVr8B8=",
        "kvajT1Ptam85bY51eRf/AJRuM3w=",
    ),
    (
        f"https://notify.example.com/webhooks/twilio?ref={'5f' * 12}.sms.1",
        {
            "MessageSid": f"SM{'0' * 32}",
            "MessageStatus": "delivered",
            "To": "+447700900999",
            "From": "+15005550006",
            "AccountSid": f"AC{'0' * 32}",
            "ApiVersion": "2010-04-01",
        },
        "r00W3LiqtU3s5GBO+ZMjOlfnumk=",
        "YZ3TkgsZHMGjM8t3Spc+pC54xhA=",
    ),
    (
        "https://notify.example.com/webhooks/twilio",
        {
            "Body": "  été & co + 1 = 100 % \n",
            "FromCity": "",
            "SmsStatus": "received",
            "From": "+447700900999",
            "OptOutType": "STOP",
        },
        "RKQjh3QcxpCFM7P9EYbwhWQMwn4=",
        "Pgicku981Y1WVW6fyaQeVZe/khE=",
    ),
    (
        "https://notify.example.com/webhooks/twilio?b=%27x%27&a=1+2&c=%20",
        {"Body": "🙂", "b": "2", "B": "1", "_": "x", "a b": "c"},
        "ETaoE2TvjnLDx3N5/DTJYuFB4ck=",
        "fSCVD1wYE0hXJIubnxSgiPKk2Es=",
    ),
    (
        "http://127.0.0.1:8000/webhooks/twilio?ref=1",
        {"MessageStatus": "sent"},
        "QZCDpPVABai8Y38w0MeCCYyJE/Q=",
        "P7RpABY/LoJDH2U3zvFzJ9ZwMo4=",
    ),
    (
        "https://notify.example.com:8443/n/webhooks/twilio?ref=1",
        {"MessageStatus": "sent"},
        "5bY17gXDiaj3717/4/lJzw5AN1c=",
        "ygnuw/hHtOnA8bYOaeUdlmbGtRk=",
    ),
]
"""URL and parameters, with the signatures that twilio-python 9.13 computes with the token 12345:
without and with a port. The first is an example of its tests."""


def is_accepted(raw: bytes, headers: dict[str, str], url: str, *tokens: str) -> bool:
    provider = account(auth_tokens=tokens or TOKENS)
    try:
        provider.parse_webhook(webhook_request(raw, headers, url=url))
    except InvalidSignatureError:
        return False
    except ValueError:
        # It is signed, and no callback.
        return True
    return True


@each_case("url, parameters, without_port, with_port", SIGNED)
def test_signature_is_that_of_twilios_library(
    url: str, parameters: dict[str, str], without_port: str, with_port: str
) -> None:
    for signature in (without_port, with_port):
        headers = {"content-type": FORM, SIGNATURE_HEADER: signature}
        raw = urlencode(parameters).encode()
        assert is_accepted(raw, headers, url, "12345")
        assert is_accepted(raw, headers, url, "another", "12345")
        assert not is_accepted(raw, headers, url, "another")


@each_case("url, parameters, without_port, with_port", SIGNED)
def test_form_is_signed_however_it_is_encoded(
    url: str, parameters: dict[str, str], without_port: str, with_port: str
) -> None:
    headers = {"content-type": FORM, SIGNATURE_HEADER: without_port}
    pairs = list(parameters.items())
    random.Random(1).shuffle(pairs)
    raw = "&".join(
        "=".join("".join(f"%{byte:02x}" for byte in text.encode()) for text in pair)
        for pair in pairs
    )
    assert is_accepted(raw.encode(), headers, url, "12345")
    assert with_port != without_port


def test_any_other_byte_is_refused() -> None:
    raw, url = urlencode(callback()).encode(), f"{CALLBACK}?ref={REFERENCE}"
    headers = sign(raw, url=url)
    assert is_accepted(raw, headers, url)
    for place in range(len(raw)):
        changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        assert not is_accepted(changed, headers, url), changed
    for place in range(len("https://"), len(url)):
        changed_url = url[:place] + chr(ord(url[place]) ^ 1) + url[place + 1 :]
        assert not is_accepted(raw, headers, changed_url), changed_url
    signature = headers[SIGNATURE_HEADER]
    for place in range(len(signature)):
        forged = signature[:place] + chr(ord(signature[place]) ^ 1) + signature[place + 1 :]
        assert not is_accepted(raw, {**headers, SIGNATURE_HEADER: forged}, url), forged


@each_case(
    "raw, url",
    [
        (b"", f"{CALLBACK}?ref={REFERENCE}"),
        (urlencode(callback()).encode(), CALLBACK),
        (urlencode(callback()).encode(), f"{CALLBACK}?ref={'b' * 24}.sms.1"),
        (urlencode(callback()).encode(), f"{CALLBACK}?ref={REFERENCE}&ref=x"),
        (urlencode(callback(extra="1")).encode(), f"{CALLBACK}?ref={REFERENCE}"),
        (urlencode(callback()).encode() + b"&", f"{CALLBACK}?ref={REFERENCE}"),
    ],
)
def test_signature_of_another_call_is_refused(raw: bytes, url: str) -> None:
    genuine = urlencode(callback()).encode()
    headers = sign(genuine, url=f"{CALLBACK}?ref={REFERENCE}")
    assert not is_accepted(raw, headers, url)


def test_either_token_signs_during_a_rotation_and_none_without_one() -> None:
    raw = urlencode(callback()).encode()
    for token in TOKENS:
        assert is_accepted(raw, sign(raw, url=CALLBACK, token=token), CALLBACK)
    with pytest.raises(InvalidSignatureError, match="no auth token"):
        parse(callback(), auth_tokens=())


@pytest.mark.parametrize("kind", ["application/json", "text/plain", ""])
def test_webhook_that_is_no_form_is_refused(kind: str) -> None:
    raw = urlencode(callback()).encode()
    headers = sign(raw, url=CALLBACK) | {"content-type": kind}
    assert not is_accepted(raw, headers, CALLBACK)


def test_answer_is_empty_so_that_twilio_sends_nothing() -> None:
    for parameters in (callback(), written("STOP"), written()):
        reply = parse(parameters).reply
        assert reply is not None
        assert (reply.status, reply.body) == (204, "")


@each_case(
    "status, kind",
    [
        ("accepted", K.QUEUED),
        ("queued", K.QUEUED),
        ("sending", K.QUEUED),
        ("sent", K.SENT),
        ("delivered", K.DELIVERED),
        ("read", K.READ),
        ("undelivered", K.FAILED),
        ("failed", K.FAILED),
        ("canceled", K.REJECTED),
    ],
)
def test_callback_is_a_receipt(status: str, kind: ReceiptKind) -> None:
    [receipt] = parse(callback(status)).receipts
    assert (receipt.kind, receipt.reference, receipt.provider_id) == (kind, REFERENCE, SID)
    assert (receipt.address, receipt.at) == (PHONE, FIXED_NOON)
    assert receipt.event_id == f"{SID}:{status}:"


def test_callback_tells_of_pumping() -> None:
    found = [parse(callback("undelivered", ErrorCode=code)).receipts for code in ("30450", "30007")]
    assert [receipt.is_pumping for [receipt] in found] == [True, False]


FAILURES: dict[int, tuple[FailureCode, AddressEffect | None]] = {
    30003: (F.REPORTED_FAILED, E.SOFT_BOUNCE),
    **dict.fromkeys((30005, 30006), (F.REPORTED_FAILED, E.PROBABLE_BOUNCE)),
    30004: (F.BLOCKED, None),
    **dict.fromkeys((30007, 30019, 30450), (F.FILTERED, None)),
    **dict.fromkeys((30018, 30024, 30032, 30033, 30034, 30035), (F.SENDER_UNREGISTERED, None)),
    **dict.fromkeys(
        (30001, 30002, 30008, 30017, 30022, 30023, 30027, 30036, 30410), (F.REPORTED_FAILED, None)
    ),
}
LATER: dict[int, tuple[FailureCode, AddressEffect | None]] = {
    21408: (F.DESTINATION_DISABLED, None),
    30610: (F.FILTERED, None),
    21211: (F.REPORTED_FAILED, E.SOFT_BOUNCE),
    21614: (F.REPORTED_FAILED, E.SOFT_BOUNCE),
    21703: (F.REPORTED_FAILED, None),
}
"""Errors of requests, which Twilio finds later with a messaging service."""


def test_every_failure_is_covered() -> None:
    assert FAILURES.keys() == {code for rule in FAILURE_RULES for code in rule.codes}


@each_case("code", FAILURES | LATER)
def test_code_of_a_failure_decides(code: int) -> None:
    [receipt] = parse(callback("undelivered", ErrorCode=str(code))).receipts
    assert (receipt.code, receipt.effect) == (FAILURES | LATER)[code]
    assert f"({code})" in (receipt.reason or "")
    assert (receipt.kind is K.BLOCKED) == (code == 30004)
    assert receipt.event_id == f"{SID}:undelivered:{code}"


def test_stop_that_twilio_finds_later_suppresses() -> None:
    failed, opted_out = parse(callback("failed", ErrorCode="21610")).receipts
    assert (failed.kind, failed.effect) == (K.FAILED, None)
    assert (opted_out.kind, opted_out.address) == (K.UNSUBSCRIBED, PHONE)
    assert opted_out.event_id != failed.event_id


@each_case(
    "code, reason",
    [
        (..., "Twilio gave no reason."),
        ("", "Twilio gave no reason."),
        ("no", "Twilio gave no reason."),
        ("39999", "Twilio gave no known reason. (39999)"),
    ],
)
def test_failure_without_a_known_code_has_no_effect_on_the_address(code: Any, reason: str) -> None:
    [receipt] = parse(callback("failed", ErrorCode=code)).receipts
    assert (receipt.kind, receipt.effect, receipt.reason) == (K.FAILED, None, reason)


@each_case(
    "parameters",
    [
        callback(MessageStatus=..., SmsStatus=...),
        callback(MessageSid=..., SmsSid=...),
        callback(MessageSid="x" * 300, SmsSid="x" * 300),
        callback(MessageSid="SM1"),
        {"a": "b"},
    ],
)
def test_webhook_without_a_message_is_unreadable(parameters: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="no message"):
        parse(parameters)


def test_callback_of_an_older_form_has_the_same_meaning() -> None:
    old = callback("delivered", MessageSid=..., MessageStatus=...)
    assert parse(old).receipts == parse(callback("delivered")).receipts


def test_callback_with_an_unknown_status_is_counted() -> None:
    result = parse(callback("teleported"))
    assert (result.receipts, result.unreadable_count) == ((), 1)


def test_callback_about_no_number_or_no_reference_is_a_receipt() -> None:
    [receipt] = parse(callback(To="whatsapp:+447700900999"), reference=None).receipts
    assert (receipt.address, receipt.reference, receipt.provider_id) == (None, None, SID)


@each_case(
    "parameters, is_wanted",
    [
        (written("STOP"), False),
        (written(" stop \n"), False),
        (written("OptOut"), False),
        (written("Fin", OptOutType="STOP"), False),
        (written("START"), True),
        (written("Unstop"), True),
        (written("Sim", OptOutType="START"), True),
        (written("HELP"), None),
        (written("Info", OptOutType="HELP"), None),
        (written("stop texting me"), None),
        (written("STOP", From="whatsapp:+447700900999"), None),
        (written("STOP", From="Shop"), None),
        (written(""), None),
    ],
)
def test_word_opts_out_and_a_sentence_does_not(
    parameters: dict[str, str], is_wanted: bool | None
) -> None:
    result = parse(parameters, reference=None)
    assert result.receipts == ()
    assert result.inbound is not None
    assert result.inbound.messages == ()
    found = [(p.phone, p.is_wanted, p.at) for p in result.inbound.preferences]
    assert found == ([] if is_wanted is None else [(PHONE, is_wanted, FIXED_NOON)])
    assert {p.event_id for p in result.inbound.preferences} <= {parameters["MessageSid"]}


def test_log_has_no_words_and_is_read_as_the_webhook_was() -> None:
    cases = (callback(), callback("failed", ErrorCode="30005"), written("STOP"), written("Secret"))
    for parameters in cases:
        result = parse(parameters)
        assert result.logged is not None
        assert "Secret" not in result.logged
        assert "Body" not in json.loads(result.logged)
        later = account(clock=lambda: FIXED_NOON + timedelta(days=1))
        again = later.parse_logged(result.logged.encode())
        assert again == replace(result, logged=None, reply=None)


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"at": 5, "MessageStatus": "sent"}', b"\xff"])
def test_log_of_another_provider_is_unreadable(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        account().parse_logged(raw)
