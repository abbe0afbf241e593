"""What SNS posts: genuine envelopes, forged ones, and subscriptions."""

import json
from datetime import timedelta
from threading import Event
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import FailureCode, TransientError
from providers import http
from providers.aws_sns import MAX_FETCHES, Certificates, Notification
from providers.contract import InvalidSignatureError, UnverifiedWebhookError
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.aws import (
    CERTIFICATE,
    ID,
    TOPIC,
    FakeSns,
    certificate,
    changed,
    envelope,
    headers,
    private_key,
    receiver,
)
from tests.support.providers.webhook_requests import webhook_request
from tests.support.tables import each_case
from tests.support.threads import at_once

MESSAGE = {"eventType": "Delivery", "text": "Grüße\n"}
CONFIRMATION = "SubscriptionConfirmation"


def received(raw: bytes, *, kind: str = "Notification", **fields: Any) -> Notification | None:
    return receiver(**fields).receive(webhook_request(raw, headers(kind)))


@each_case("version", ["1", "2"])
@each_case("fields", [{}, {"Subject": None}])
def test_genuine_notification_is_received(version: str, fields: dict[str, Any]) -> None:
    found = received(envelope(MESSAGE, version=version, **fields))
    assert found == Notification(id=ID, at=FIXED_NOON, text=json.dumps(MESSAGE))


def test_null_subject_is_no_subject() -> None:
    raw = envelope(MESSAGE, Subject=None)
    assert received(changed(raw, Subject=None)) == received(raw)


def test_last_line_of_the_signed_text_ends_with_a_line_break() -> None:
    """A list of lines joined by line breaks lacks it, and rejects whatever SNS sends."""
    with pytest.raises(InvalidSignatureError, match="wrong"):
        received(envelope(MESSAGE, signed={"Type": "Notificatio"}))


GENUINE = envelope(MESSAGE)


@given(st.data())
def test_any_changed_byte_is_refused_or_changes_nothing(data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(GENUINE) - 1))
    byte = data.draw(st.integers(0, 255))
    raw = GENUINE[:place] + bytes([byte]) + GENUINE[place + 1 :]
    try:
        found = received(raw)
    except InvalidSignatureError:
        return
    # It was a byte between the fields, or of one that isn't signed.
    assert found == received(GENUINE)


@each_case(
    "raw, reason",
    [
        (envelope(MESSAGE, key="another"), "the signature is wrong"),
        (envelope(MESSAGE, TopicArn=f"{TOPIC}-other"), "topic"),
        (envelope(MESSAGE, at=FIXED_NOON - timedelta(hours=1, seconds=1)), "an hour"),
        (envelope(MESSAGE, at=FIXED_NOON + timedelta(hours=1, seconds=1)), "an hour"),
        (envelope(MESSAGE, Timestamp="yesterday"), "timestamp"),
        (envelope(MESSAGE, Timestamp=None), "timestamp"),
        (changed(GENUINE, SignatureVersion="2"), "wrong"),
        (changed(GENUINE, SignatureVersion="3"), "version"),
        (changed(GENUINE, SignatureVersion=1), "version"),
        (changed(GENUINE, Signature="AAAA"), "wrong"),
        (changed(GENUINE, Signature="*"), "malformed"),
        (changed(GENUINE, Signature=None), "malformed"),
        (changed(GENUINE, Message=7), "Message is missing"),
        (changed(GENUINE, Subject="another"), "wrong"),
        (changed(GENUINE, MessageId="165545c9-2a5c-472c-8df2-7ff2be2b3b1c"), "wrong"),
        # The signed text is the same, and the event would take effect again.
        (
            changed(
                envelope(MESSAGE, Subject="A"),
                Subject=None,
                MessageId=f"{ID}\nSubject\nA",
            ),
            "message ID",
        ),
        (changed(GENUINE, Type=CONFIRMATION), "type"),
        (changed(GENUINE, TopicArn=[TOPIC]), "topic"),
        (b"", "type"),
        (b"[]", "type"),
    ],
)
def test_other_envelope_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(InvalidSignatureError, match=reason):
        received(raw)


HOST = "https://sns.eu-west-1.amazonaws.com"
NAME = CERTIFICATE.rpartition("/")[2]


@each_case(
    "url",
    [
        f"http://sns.eu-west-1.amazonaws.com/{NAME}",
        f"https://sns.eu-west-1.amazonaws.com.evil.example/{NAME}",
        f"https://evil.example/sns.eu-west-1.amazonaws.com/{NAME}",
        f"https://sns.eu-west-1.amazonaws.com@evil.example/{NAME}",
        f"https://s3.amazonaws.com/bucket/{NAME}",
        f"https://sns.amazonaws.com/{NAME}",
        # Anybody can have a topic in another region, whose certificate is genuine.
        f"https://sns.us-east-1.amazonaws.com/{NAME}",
        f"https://sns.eu-west-1.amazonaws.com.cn/{NAME}",
        # SNS answers such a query with texts of the attacker's choice.
        f"{HOST}/?Action=GetEndpointAttributes&EndpointArn=arn&a=.pem",
        f"{HOST}/{NAME}?a=.pem",
        f"{HOST}/{NAME}#.pem",
        f"{HOST}/../{NAME}",
        f"{HOST}:8443/{NAME}",
        f"{HOST}/other.pem",
        f"{HOST}/{NAME}\n",
        "",
        None,
        7,
    ],
)
def test_certificate_of_another_place_is_not_even_fetched(url: Any) -> None:
    sns = FakeSns()
    with pytest.raises(InvalidSignatureError, match="certificate"):
        received(changed(GENUINE, SigningCertURL=url), call=sns)
    assert sns.requests == []


def test_certificate_in_china_is_of_its_own_domain() -> None:
    topic = "arn:aws-cn:sns:cn-north-1:123456789012:notify"
    url = f"https://sns.cn-north-1.amazonaws.com.cn/{NAME}"
    raw = changed(envelope(MESSAGE, TopicArn=topic), SigningCertURL=url)
    sns = FakeSns()
    assert received(raw, topics=frozenset({topic}), call=sns)
    assert [request.url for request in sns.requests] == [url]


@each_case(
    "given, reason",
    [
        ({}, "type"),
        (headers(CONFIRMATION), "type"),
        (headers("Other"), "type"),
        ({**headers(), "x-amz-sns-rawdelivery": "true"}, "raw message delivery"),
    ],
)
def test_header_must_name_the_type(given: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidSignatureError, match=reason):
        receiver().receive(webhook_request(GENUINE, given))


def test_certificate_is_fetched_once_a_day() -> None:
    sns, now = FakeSns(), [FIXED_NOON]
    own = receiver(call=sns, clock=lambda: now[0])
    for hours in (0, 1, 23):
        now[0] = FIXED_NOON + timedelta(hours=hours)
        own.receive(webhook_request(envelope(MESSAGE, at=now[0]), headers()))
    assert [request.url for request in sns.requests] == [CERTIFICATE]
    now[0] = FIXED_NOON + timedelta(days=1)
    own.receive(webhook_request(envelope(MESSAGE, at=now[0]), headers()))
    assert len(sns.requests) == 2


def test_certificate_is_fetched_from_the_configured_address() -> None:
    sns = FakeSns()
    received(GENUINE, call=sns, base_url="http://127.0.0.1:8001/sns")
    assert [request.url for request in sns.requests] == [f"http://127.0.0.1:8001/sns/{NAME}"]


LOST = TransientError("No connection.", code=FailureCode.CONNECTION_FAILED)


@each_case(
    "answer",
    [
        LOST,
        http.Response(status=503, headers={}, body=b""),
        http.Response(status=302, headers={"location": "https://evil.example/"}, body=b""),
        http.Response(status=200, headers={}, body=b"<html>"),
    ],
)
def test_without_a_certificate_sns_is_asked_to_repeat(answer: Any) -> None:
    """It never repeats what was refused with 403: the event would be lost."""
    sns = FakeSns()
    own = receiver(call=sns)
    sns.answer = answer
    with pytest.raises(UnverifiedWebhookError):
        own.receive(webhook_request(GENUINE, headers()))
    sns.answer = None
    assert own.receive(webhook_request(GENUINE, headers())) is not None


@each_case(
    "answer, reason",
    [
        (http.Response(status=403, headers={}, body=b"Forbidden"), "no such"),
        (
            http.Response(
                status=200,
                headers={},
                body=certificate(until=FIXED_NOON - timedelta(seconds=1)),
            ),
            "valid now",
        ),
    ],
)
def test_unknown_or_old_certificate_is_refused(answer: http.Response, reason: str) -> None:
    sns = FakeSns()
    sns.answer = answer
    with pytest.raises(InvalidSignatureError, match=reason):
        received(GENUINE, call=sns)


def test_few_certificates_are_fetched_at_once() -> None:
    """Anybody can name a certificate, and must not occupy every thread of the web."""
    known, begun, go_on = Certificates(), [Event() for _ in range(MAX_FETCHES)], Event()

    def slow(request: Any) -> http.Response:
        begun[int(request.url)].set()
        go_on.wait()
        return http.Response(status=200, headers={}, body=certificate())

    def refuse() -> None:
        for each in begun:
            each.wait()
        try:
            with pytest.raises(UnverifiedWebhookError):
                known.key("9", call=slow, now=FIXED_NOON)
        finally:
            go_on.set()

    at_once(
        refuse,
        *(
            lambda number=number: known.key(str(number), call=slow, now=FIXED_NOON)
            for number in range(MAX_FETCHES)
        ),
    )
    assert known.key("0", call=slow, now=FIXED_NOON).public_numbers() == (
        private_key("sns").public_key().public_numbers()
    )


def test_subscription_is_confirmed_by_a_signed_call() -> None:
    sns = FakeSns()
    raw = envelope("You have chosen to subscribe.", kind=CONFIRMATION)
    assert received(raw, kind=CONFIRMATION, call=sns) is None
    _, call = sns.requests
    assert call.url == f"{HOST}/"
    assert parse_qs((call.body or b"").decode()) == {
        "Action": ["ConfirmSubscription"],
        "Version": ["2010-03-31"],
        "TopicArn": [TOPIC],
        "Token": ["a-token"],
        "AuthenticateOnUnsubscribe": ["true"],
    }
    assert "/eu-west-1/sns/aws4_request" in call.headers["Authorization"]


@each_case(
    "fields",
    [
        {"TopicArn": f"{TOPIC}-other"},
        {"key": "another"},
        {"at": FIXED_NOON - timedelta(hours=2)},
    ],
)
def test_other_subscription_is_not_confirmed(fields: dict[str, Any]) -> None:
    sns = FakeSns()
    raw = envelope("You have chosen to subscribe.", kind=CONFIRMATION, **fields)
    with pytest.raises(InvalidSignatureError):
        received(raw, kind=CONFIRMATION, call=sns)
    assert [request for request in sns.requests if request.body is not None] == []


def test_subscription_that_aws_does_not_confirm_is_asked_for_again() -> None:
    sns = FakeSns()
    own = receiver(call=sns)
    own.receive(webhook_request(GENUINE, headers()))
    sns.answer = http.Response(status=403, headers={}, body=b"<ErrorResponse/>")
    raw = envelope("You have chosen to subscribe.", kind=CONFIRMATION)
    with pytest.raises(UnverifiedWebhookError):
        own.receive(webhook_request(raw, headers(CONFIRMATION)))


def test_end_of_a_subscription_is_no_notification() -> None:
    sns, kind = FakeSns(), "UnsubscribeConfirmation"
    raw = envelope("You have chosen to deactivate subscription.", kind=kind)
    assert received(raw, kind=kind, call=sns) is None
    assert [request for request in sns.requests if request.body is not None] == []
