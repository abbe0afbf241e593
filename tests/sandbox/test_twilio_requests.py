"""Requests to the sandbox's Twilio: accepted and refused messages."""

import pytest

from sandbox.credentials import TWILIO_API_KEY, TWILIO_API_SECRET
from sandbox.log import REQUESTS_FILE, read_records
from sandbox.providers import segments
from sandbox.providers.twilio.answers import VERIFIED_NUMBER
from sandbox.providers.twilio.validation import EMPTY_SERVICE
from tests.support.clients.sandbox import Box
from tests.support.providers.sandbox_twilio import ADA, TwilioClient
from tests.support.tables import each_case

NUMBER = "+15005550006"
SERVICE = "MG00000000000000000000000000000001"


@pytest.fixture
def phones(shared_box: Box) -> TwilioClient:
    return TwilioClient(box=shared_box, callback="http://127.0.0.1:9/hook")


def test_accepted_message_is_the_full_resource(phones: TwilioClient) -> None:
    answer = phones.send()
    found = answer.json()
    sid, account = found["sid"], phones.account.account_sid
    path = f"/2010-04-01/Accounts/{account}/Messages/{sid}"
    assert answer.status == 201
    assert found.pop("date_created") == found.pop("date_updated")
    assert found == {
        "account_sid": account,
        "api_version": "2010-04-01",
        "body": "Your code is 123456.",
        "date_sent": None,
        "direction": "outbound-api",
        "error_code": None,
        "error_message": None,
        "from": None,
        "messaging_service_sid": SERVICE,
        "num_media": "0",
        "num_segments": "0",
        "price": None,
        "price_unit": "USD",
        "sid": sid,
        "status": "accepted",
        "subresource_uris": {"media": f"{path}/Media.json"},
        "to": ADA,
        "uri": f"{path}.json",
    }
    assert (sid[:2], len(sid)) == ("SM", 34)
    assert phones.box.requests()[0]["message_id"] == sid


def test_message_from_a_number_is_queued_with_its_segments(phones: TwilioClient) -> None:
    form = phones.form(MessagingServiceSid=None, From=NUMBER, Body="“" + "x" * 70)
    found = phones.post(form).json()
    assert (found["from"], found["status"], found["num_segments"]) == (NUMBER, "queued", "2")


def test_message_is_recorded_without_the_credentials(phones: TwilioClient) -> None:
    phones.send()
    path = phones.box.sandbox.data / REQUESTS_FILE
    record = list(read_records(path))[-1]
    assert record.json() == phones.form()
    assert (record.provider, record.status, record.accepted) == ("twilio", 201, True)
    assert (record.recipients, record.references) == ((ADA,), ("ref-1",))
    assert record.title == "Your code is 123456."
    assert phones.account.auth_token not in path.read_text()


@each_case(
    "credentials, status, code",
    [
        ({}, 201, None),
        ({"user": TWILIO_API_KEY, "password": TWILIO_API_SECRET}, 201, None),
        ({"user": TWILIO_API_KEY, "password": "another"}, 401, 20003),
        ({"password": "another"}, 401, 20003),
        ({"password": ""}, 401, 20003),
        ({"user": "AC" + "f" * 32}, 401, 20003),
        ({"sid": "AC" + "f" * 32}, 404, 20404),
        ({"sid": "ACrevoked"}, 401, 20003),
        ({"sid": "ACsuspended"}, 403, 20005),
        ({"sid": "ACtrial"}, 400, 21608),
    ],
)
def test_credentials_and_account_decide(
    phones: TwilioClient, credentials: dict[str, str], status: int, code: int | None
) -> None:
    answer = phones.send(**credentials)
    assert (answer.status, answer.json().get("code")) == (status, code)


def test_trial_account_sends_to_the_verified_number(phones: TwilioClient) -> None:
    assert phones.send(VERIFIED_NUMBER, sid="ACtrial").status == 201


@pytest.mark.parametrize("header", ["", "Bearer x", "Basic ", "Basic ???", "Basic /w=="])
def test_unreadable_credentials_are_refused(phones: TwilioClient, header: str) -> None:
    answer = phones.send(Authorization=header)
    assert (answer.status, answer.json()["code"]) == (401, 20003)


@pytest.mark.parametrize(
    ("method", "resource", "status", "code"),
    [
        ("DELETE", "Messages.json", 405, 20004),
        ("POST", "Messages", 404, 20404),
        ("POST", "Calls.json", 404, 20404),
    ],
)
def test_other_path_or_method_is_refused(
    phones: TwilioClient, method: str, resource: str, status: int, code: int
) -> None:
    answer = phones.call(method, b"", resource=resource)
    assert (answer.status, answer.json()["code"]) == (status, code)


def test_list_of_messages_is_a_page_for_a_known_account(phones: TwilioClient) -> None:
    answer = phones.call("GET", b"", resource="Messages.json?PageSize=1")
    assert (answer.status, answer.json()["messages"]) == (200, [])
    assert phones.call("GET", b"", password="another").status == 401


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'{"To": "+447700900999"}', "application/json"),
        (b"To=%2B447700900999", "text/plain"),
        (b"To=%FF&Body=x", "application/x-www-form-urlencoded"),
        ("To=é".encode(), "application/x-www-form-urlencoded"),
        (b"", "application/x-www-form-urlencoded"),
    ],
)
def test_body_that_is_no_form_has_no_recipient(
    phones: TwilioClient, body: bytes, content_type: str
) -> None:
    answer = phones.call("POST", body, content_type=content_type)
    assert (answer.status, answer.json()["code"]) == (400, 21604)


@each_case(
    "changes, code",
    [
        ({"To": None}, 21604),
        ({"To": ""}, 21604),
        ({"To": "447700900999"}, 21211),
        ({"To": "+0447700900999"}, 21211),
        ({"To": "ada@example.com"}, 21211),
        ({"To": "12345"}, 21265),
        ({"MessagingServiceSid": None}, 21603),
        ({"MessagingServiceSid": "MGx"}, 21702),
        ({"MessagingServiceSid": EMPTY_SERVICE}, 21703),
        ({"MessagingServiceSid": "MG" + "f" * 32}, 21701),
        ({"MessagingServiceSid": None, "From": "+15005550001"}, 21606),
        ({"MessagingServiceSid": None, "From": "VA" + "0" * 32}, 21212),
        ({"MessagingServiceSid": None, "From": NUMBER, "To": NUMBER}, 21266),
        ({"Body": None}, 21602),
        ({"Body": " \n"}, 21602),
        ({"Body": "x" * 1601}, 21617),
        ({"StatusCallback": "notify.example.com/hook"}, 21609),
        ({"StatusCallback": "https://a_b.example.com/hook"}, 21609),
        ({"StatusCallback": "https://["}, 21609),
        ({"ValidityPeriod": "0"}, 21624),
        ({"ValidityPeriod": "36001"}, 21624),
        ({"ValidityPeriod": "1.5"}, 21624),
        ({"RiskCheck": "maybe"}, 20001),
        ({"MediaUrl": "https://example.com/a.png"}, 20001),
        ({"SmartEncoded": "true"}, 20001),
        ({"body": "x"}, 20001),
    ],
)
def test_invalid_message_is_refused_with_its_code(
    phones: TwilioClient, changes: dict[str, str | None], code: int
) -> None:
    answer = phones.post(phones.form(**changes))
    found = answer.json()
    assert (answer.status, found["code"], found["status"]) == (400, code, 400)
    assert found["more_info"] == f"https://www.twilio.com/docs/errors/{code}"
    recorded = phones.box.requests()[0]
    assert (recorded["outcome"], recorded["accepted"]) == ("invalid-request", False)
    assert recorded["reason"].startswith(f"({code}) ")


@each_case(
    "changes",
    [
        {"Body": "x" * 1600},
        {"StatusCallback": None},
        {"StatusCallback": "https://notify.example.com/hook?ref=1#rc=3&rp=5xx,ct,rt"},
        {"MessagingServiceSid": None, "From": "Shop"},
        {"ValidityPeriod": "36000", "RiskCheck": "disable"},
    ],
)
def test_unusual_message_is_accepted(phones: TwilioClient, changes: dict[str, str | None]) -> None:
    answer = phones.post(phones.form(**changes))
    assert answer.status == 201, answer.data
    assert phones.box.get(f"/messages/{phones.box.requests()[0]['id']}").status == 200


@each_case(
    "text, encoding, count",
    [
        ("", "GSM-7", 1),
        ("x" * 160, "GSM-7", 1),
        ("x" * 161, "GSM-7", 2),
        ("x" * 306, "GSM-7", 2),
        ("x" * 307, "GSM-7", 3),
        ("€" * 80, "GSM-7", 1),
        ("€" * 81, "GSM-7", 2),
        # 152 septets, and a pair that doesn't fit into the first part.
        ("x" * 152 + "€" + "x" * 152, "GSM-7", 3),
        ("ç", "UCS-2", 1),
        ("Ç", "GSM-7", 1),
        ("“" * 70, "UCS-2", 1),
        ("“" * 71, "UCS-2", 2),
        ("🙂" * 35, "UCS-2", 1),
        ("🙂" * 36, "UCS-2", 2),
        # 33 of them take 66 of 67 units, and none is divided.
        ("🙂" * 67, "UCS-2", 3),
    ],
)
def test_text_has_as_many_parts_as_on_the_air(text: str, encoding: str, count: int) -> None:
    assert (segments.encoding(text), segments.count(text)) == (encoding, count)
