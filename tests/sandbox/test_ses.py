"""The sandbox's SES: signatures, validation, and subscriptions of SNS."""

import base64
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import urllib3

from domain.time import utc_now
from providers.aws_signing import Credentials, Signer
from providers.http import Request
from sandbox.providers.aws.signature import REFUSED_KEYS
from tests.support.clients.sandbox import Box
from tests.support.factories.notifications import outbound
from tests.support.providers.ses import account
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

SEND = "/v2/email/outbound-emails"
KEYS = Credentials(access_key_id="AKIASANDBOX00000001", secret_access_key="sandbox")
SIGNER = Signer(credentials=KEYS, region="eu-west-1", service="ses")
JSON = {"Content-Type": "application/json"}


def mail(**changes: Any) -> dict[str, Any]:
    """Return the body of a request. The value None leaves a member out."""
    body = json.loads(account().body(outbound())) | changes
    return {name: value for name, value in body.items() if value is not None}


def raw(text: str) -> dict[str, Any]:
    return {"Raw": {"Data": base64.b64encode(text.encode()).decode()}}


def call(
    box: Box,
    path: str = SEND,
    body: bytes | None = None,
    *,
    signer: Signer = SIGNER,
    clock: timedelta = timedelta(0),
    changes: dict[str, str | None] | None = None,
    headers: dict[str, str] = JSON,
) -> urllib3.BaseHTTPResponse:
    """Call the sandbox. ``changes`` replace headers after they were signed, and None drops one.

    ``clock`` is how far the signer's clock is ahead.
    """
    request = Request(url=f"{box.sandbox.url}{path}", headers=headers, body=body)
    signed = dict(signer.sign(request, now=utc_now() + clock).headers) | (changes or {})
    return box.http.request(
        "GET" if body is None else "POST",
        request.url,
        body=body,
        headers={name: value for name, value in signed.items() if value is not None},
        redirect=False,
        timeout=LIMIT,
    )


def send(box: Box, **changes: Any) -> urllib3.BaseHTTPResponse:
    return call(box, body=json.dumps(mail(**changes)).encode())


def refused(answer: urllib3.BaseHTTPResponse) -> tuple[int, str]:
    return answer.status, answer.headers["x-amzn-ErrorType"]


def test_mail_is_accepted_and_shown_as_its_recipient_sees_it(shared_box: Box) -> None:
    answer = send(shared_box)
    assert answer.status == 200
    (shown,) = shared_box.control("GET", "/messages?provider=ses")["results"]
    assert answer.json() == {"MessageId": shown["message_id"]}
    assert shown["from"] == "The Shöp <shop@example.com>"
    assert (shown["subject"], shown["to"]) == ("Paid", ["ada@example.com"])
    assert shown["text"].strip() == "Your payment has arrived."
    assert shown["html"].strip() == "<p>Paid</p>"
    assert shown["reference"] == f"{'a' * 24}.email.1"


SIGNATURE = "InvalidSignatureException"
OTHER_KEY = replace(KEYS, secret_access_key="another")


@each_case(
    "options, name, words",
    [
        ({"signer": replace(SIGNER, region="us-east-1")}, SIGNATURE, "valid region"),
        ({"signer": replace(SIGNER, service="sns")}, SIGNATURE, "correct service: 'ses'"),
        ({"clock": timedelta(minutes=-10)}, SIGNATURE, "Signature expired"),
        ({"clock": timedelta(minutes=10)}, SIGNATURE, "not yet current"),
        ({"signer": replace(SIGNER, credentials=OTHER_KEY)}, SIGNATURE, "does not match"),
        ({"changes": {"Content-Type": "application/json "}}, "", ""),
        ({"changes": {"X-Amz-Date": None}}, SIGNATURE, "x-amz-date is missing"),
        ({"changes": {"X-Added": "1"}}, SIGNATURE, "'x-added' must be"),
        ({"changes": {"Authorization": None}}, "MissingAuthenticationTokenException", "Missing"),
        ({"changes": {"Authorization": "AWS4"}}, "IncompleteSignatureException", "requires"),
        ({"changes": {"Content-Type": "text/plain"}}, SIGNATURE, "does not match"),
    ],
)
def test_each_part_of_a_signature_is_verified(
    shared_box: Box, options: dict[str, Any], name: str, words: str
) -> None:
    answer = call(shared_box, body=json.dumps(mail()).encode(), **options)
    if not name:
        assert answer.status == 200
        return
    assert refused(answer) == (403, name)
    assert words in answer.json()["message"]


def test_changed_body_and_path_do_not_match(shared_box: Box) -> None:
    url = f"{shared_box.sandbox.url}{SEND}"
    body = json.dumps(mail()).encode()
    signed = SIGNER.sign(Request(url=url, headers=JSON, body=body), now=utc_now())
    for path, sent in ((SEND, body + b" "), ("/v2/email/account", body)):
        answer = shared_box.http.request(
            "POST", f"{shared_box.sandbox.url}{path}", body=sent, headers=dict(signed.headers)
        )
        assert refused(answer) == (403, SIGNATURE)


@each_case("key", REFUSED_KEYS)
def test_refused_key_has_its_error(shared_box: Box, key: str) -> None:
    signer = replace(SIGNER, credentials=replace(KEYS, access_key_id=key))
    answer = call(shared_box, "/v2/email/account", signer=signer)
    assert refused(answer) == (403, REFUSED_KEYS[key].name)


def test_unknown_key_is_not_told_from_a_revoked_one(shared_box: Box) -> None:
    signer = replace(SIGNER, credentials=replace(KEYS, access_key_id="AKIAUNKNOWN"))
    answer = call(shared_box, "/v2/email/account", signer=signer)
    assert refused(answer) == (403, "UnrecognizedClientException")


HEAD = (
    "From: a@example.com\r\nTo: b@example.com\r\nSubject: x\r\nDate: now\r\nMIME-Version: 1.0\r\n"
)
BAD = "BadRequestException"


@each_case(
    "changes, status, name",
    [
        ({"Subject": "x"}, 400, BAD),
        ({"Content": None}, 400, BAD),
        ({"Content": {"Simple": {}}}, 400, BAD),
        ({"Content": {"Raw": {"Data": "*"}}}, 400, BAD),
        ({"Content": raw("To: b@example.com\r\n\r\nHello")}, 400, BAD),
        ({"Content": raw(f"{HEAD}From: c@example.com\r\n\r\nHello")}, 400, BAD),
        ({"Content": raw(f"{HEAD}\r\nGrüße")}, 400, BAD),
        ({"Content": raw(f"{HEAD}\r\nHello\nAda")}, 400, BAD),
        ({"Content": raw(f"{HEAD}\r\n{'x' * 999}")}, 400, BAD),
        ({"Destination": {}}, 400, BAD),
        ({"Destination": {"ToAddresses": ["ada"]}}, 400, BAD),
        ({"Destination": {"ToAddresses": ["zoë@example.com"]}}, 400, BAD),
        ({"Destination": {"ToAddresses": ["a@example.com"] * 51}}, 400, BAD),
        ({"EmailTags": "reference"}, 400, BAD),
        # SES's own text is about such a value.
        ({"EmailTags": [{"Name": "reference", "Value": "a.email.1"}]}, 400, BAD),
        ({"EmailTags": [{"Name": "a b", "Value": "1"}]}, 400, BAD),
        ({"EmailTags": [{"Name": "a"}]}, 400, BAD),
        ({"ConfigurationSetName": "another"}, 404, "NotFoundException"),
        ({"FromEmailAddress": "a@unverified.example"}, 400, "MessageRejected"),
    ],
)
def test_invalid_mail_is_refused(
    shared_box: Box, changes: dict[str, Any], status: int, name: str
) -> None:
    assert refused(send(shared_box, **changes)) == (status, name)


@each_case(
    "options, expected",
    [
        ({"body": b"{"}, (400, "SerializationException")),
        ({"body": b"[]"}, (400, "SerializationException")),
        (
            {"body": b"{}", "headers": {"Content-Type": "text/plain"}},
            (415, "UnsupportedMediaType"),
        ),
        ({"body": b"{}", "path": "/v2/email/other"}, (404, "UnknownOperationException")),
    ],
)
def test_other_request_is_refused(
    shared_box: Box, options: dict[str, Any], expected: tuple[int, str]
) -> None:
    assert refused(call(shared_box, **options)) == expected


@each_case(
    "path, status",
    [
        ("account", 200),
        ("identities/example.com", 200),
        ("identities/shop%40example.com", 404),
        ("identities/unverified.example", 404),
        ("configuration-sets/notify", 200),
        ("configuration-sets/another", 404),
        ("contact-lists", 404),
    ],
)
def test_account_identities_and_configuration_sets_are_read(
    shared_box: Box, path: str, status: int
) -> None:
    assert call(shared_box, f"/v2/email/{path}").status == status


def test_requested_event_has_no_code(shared_box: Box) -> None:
    send(shared_box)
    event = {"reference": f"{'a' * 24}.email.1", "kind": "bounce"}
    assert shared_box.control("POST", "/events", event)["kind"] == "bounce"
    assert shared_box.refused("POST", "/events", event | {"code": 7}).status == 400
    other = event | {"recipient": "eve@example.com"}
    assert shared_box.refused("POST", "/events", other).status == 400


SNS = replace(SIGNER, service="sns")
FORM = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}


@each_case(
    "changes, signer, status, code",
    [
        ({}, SNS, 400, "InvalidParameter"),
        ({"TopicArn": "arn:aws:sns:eu-west-1:000000000000:other"}, SNS, 400, "InvalidParameter"),
        ({"Action": "Publish"}, SNS, 400, "InvalidAction"),
        ({"More": "x"}, SNS, 400, "InvalidAction"),
        ({}, SIGNER, 403, "InvalidSignatureException"),
    ],
)
def test_subscription_with_an_unknown_token_is_not_confirmed(
    shared_box: Box, changes: dict[str, str], signer: Signer, status: int, code: str
) -> None:
    form = {
        "Action": "ConfirmSubscription",
        "Version": "2010-03-31",
        "TopicArn": "arn:aws:sns:eu-west-1:000000000000:notify",
        "Token": "unknown",
        **changes,
    }
    answer = call(shared_box, "/sns/", urlencode(form).encode(), signer=signer, headers=FORM)
    assert answer.status == status
    assert f"<Code>{code}</Code>" in answer.data.decode()


def test_certificate_has_one_name(shared_box: Box) -> None:
    assert shared_box.get(f"/sns/SimpleNotificationService-{'0' * 32}.pem").status == 403


def test_log_of_a_mail_has_no_signature(shared_box: Box) -> None:
    send(shared_box)
    (request,) = shared_box.requests("?provider=ses")
    assert "authorization" not in request["headers"]
