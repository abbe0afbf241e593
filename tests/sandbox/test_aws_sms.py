"""The sandbox's AWS SMS: validation, and the operations by which a set-up is checked."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import urllib3

from domain.time import utc_now
from providers.aws_signing import Credentials, Signer
from providers.aws_sms.provider import api_request
from sandbox.providers.aws_sms.validation import MEMBERS
from tests.support.clients.sandbox import Box
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.aws_sms import PHONE, REFERENCE, account, sms
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

KEYS = Credentials(access_key_id="AKIASANDBOX00000001", secret_access_key="sandbox")
SIGNER = Signer(credentials=KEYS, region="eu-west-1", service="sms-voice")
POOL = f"pool-{'0' * 31}1"


def call(
    box: Box,
    fields: Any,
    *,
    operation: str = "SendTextMessage",
    signer: Signer = SIGNER,
    clock: timedelta = timedelta(0),
    path: str = "/sms-voice",
) -> urllib3.BaseHTTPResponse:
    """Call the sandbox. ``clock`` is how far the signer's clock is ahead."""
    request = api_request(
        operation,
        fields,
        base_url=f"{box.sandbox.url}{path}",
        signer=signer,
        now=utc_now() + clock,
        timeout=LIMIT,
    )
    return box.http.request(
        "POST", request.url, body=request.body, headers=dict(request.headers), timeout=LIMIT
    )


def text(**changes: Any) -> dict[str, Any]:
    """Return the members of a request. The value ... leaves one out."""
    found = account(sender=POOL).fields(sms(), now=FIXED_NOON) | changes
    return {name: value for name, value in found.items() if value is not ...}


def refused(answer: urllib3.BaseHTTPResponse) -> tuple[int, str]:
    return answer.status, answer.json()["__type"].rpartition("#")[2]


def test_text_is_accepted_and_shown_as_its_recipient_sees_it(shared_box: Box) -> None:
    answer = call(shared_box, text())
    assert answer.status == 200
    (shown,) = shared_box.control("GET", "/messages?provider=aws_sms")["results"]
    assert answer.json() == {"MessageId": shown["message_id"]}
    assert (shown["text"], shown["to"]) == ("Your code is 123456.", [PHONE])
    assert shown["reference"] == REFERENCE


def test_members_that_the_service_sends_are_known(shared_box: Box) -> None:
    provider = account(protect_configuration="protect-1", max_price="1.0")
    later = FIXED_NOON + timedelta(hours=1)
    assert provider.fields(sms(expires_at=later), now=FIXED_NOON).keys() <= MEMBERS


VALIDATION = "ValidationException"


@each_case(
    "changes, name",
    [
        ({"DestinationPhoneNumber": ...}, VALIDATION),
        ({"DestinationPhoneNumber": "+0"}, VALIDATION),
        ({"DestinationPhoneNumber": 447700900999}, VALIDATION),
        ({"MessageBody": ...}, VALIDATION),
        ({"MessageBody": " \n"}, VALIDATION),
        ({"MessageBody": "x" * 1601}, VALIDATION),
        ({"MessageType": "URGENT"}, VALIDATION),
        ({"TimeToLive": 4}, VALIDATION),
        ({"TimeToLive": 259_201}, VALIDATION),
        ({"TimeToLive": "60"}, VALIDATION),
        ({"Context": {str(number): "x" for number in range(6)}}, VALIDATION),
        ({"Context": {"a b": "x"}}, VALIDATION),
        ({"Context": {"ref": " x"}}, VALIDATION),
        ({"Context": {"ref": 7}}, VALIDATION),
        ({"MaxPrice": "1"}, VALIDATION),
        ({"MaxPrice": "0.01"}, VALIDATION),
        ({"DryRun": "yes"}, VALIDATION),
        ({"Keyword": "x"}, VALIDATION),
        ({"OriginationIdentity": "pool-of-another"}, "ResourceNotFoundException"),
        ({"ConfigurationSetName": "another"}, "ResourceNotFoundException"),
        ({"ProtectConfigurationId": "another"}, "ResourceNotFoundException"),
    ],
)
def test_invalid_text_is_refused(shared_box: Box, changes: dict[str, Any], name: str) -> None:
    assert refused(call(shared_box, text(**changes))) == (400, name)


@each_case(
    "options, expected",
    [
        ({"fields": []}, (400, "SerializationException")),
        ({"operation": "SendVoiceMessage"}, (404, "UnknownOperationException")),
        ({"path": "/sms-voice/other"}, (404, "UnknownOperationException")),
        ({"signer": replace(SIGNER, service="ses")}, (403, "InvalidSignatureException")),
        ({"clock": timedelta(minutes=10)}, (403, "InvalidSignatureException")),
    ],
)
def test_other_request_is_refused(
    shared_box: Box, options: dict[str, Any], expected: tuple[int, str]
) -> None:
    fields = options.pop("fields", text())
    assert refused(call(shared_box, fields, **options)) == expected


def test_dry_run_sends_nothing(shared_box: Box) -> None:
    assert call(shared_box, text(DryRun=True)).status == 200
    assert shared_box.control("GET", "/messages?provider=aws_sms")["results"] == []


@each_case(
    "operation, fields, status",
    [
        ("DescribeAccountAttributes", {}, 200),
        ("DescribePools", {"PoolIds": [POOL]}, 200),
        ("DescribePools", {"PoolIds": ["pool-2"]}, 400),
        ("DescribeConfigurationSets", {"ConfigurationSetNames": ["notify"]}, 200),
        ("DescribeConfigurationSets", {"ConfigurationSetNames": ["another"]}, 400),
        ("DescribeConfigurationSets", [], 400),
    ],
)
def test_account_pool_and_configuration_set_are_described(
    shared_box: Box, operation: str, fields: Any, status: int
) -> None:
    assert call(shared_box, fields, operation=operation).status == status


def test_requested_event_has_no_code(shared_box: Box) -> None:
    call(shared_box, text())
    event = {"reference": REFERENCE, "kind": "invalid"}
    assert shared_box.control("POST", "/events", event)["kind"] == "invalid"
    for wrong in ({"code": 7}, {"recipient": "+447700900998"}):
        assert shared_box.refused("POST", "/events", event | wrong).status == 400


def test_log_of_a_text_has_no_signature(shared_box: Box) -> None:
    call(shared_box, text())
    (request,) = shared_box.requests("?provider=aws_sms")
    assert "authorization" not in request["headers"]
    assert request["body"]["DestinationPhoneNumber"] == PHONE


def test_message_of_a_person_needs_a_number(shared_box: Box) -> None:
    body = {"from": "Ada", "text": "STOP"}
    assert shared_box.refused("POST", "/aws_sms/written", body).status == 400
