"""Signatures of requests to AWS. The expected ones were computed by botocore 1.44.8."""

from datetime import UTC, datetime, timedelta, timezone

from providers.aws_signing import Credentials, Signer
from providers.http import Request
from tests.support.tables import each_case

NOW = datetime(2026, 7, 1, 12, 0, 5, tzinfo=UTC)
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SES = ("ses", "eu-west-1")
HOST = "https://email.eu-west-1.amazonaws.com"
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
SMS = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "PinpointSMSVoiceV2.SendTextMessage",
}


def signed(
    scope: tuple[str, str], request: Request, *, token: str = "", now: datetime = NOW
) -> Request:
    credentials = Credentials(
        access_key_id="AKIDEXAMPLE", secret_access_key=SECRET, session_token=token
    )
    signer = Signer(credentials=credentials, region=scope[1], service=scope[0])
    return signer.sign(request, now=now)


@each_case(
    "scope, unsigned, token, names, signature",
    [
        (
            SES,
            Request(url=f"{HOST}/v2/email/outbound-emails", headers=JSON, body=b'{"Content":{}}'),
            "",
            "content-type;host;x-amz-date",
            "ccd71d09f4bf0292326ad0cadd44590efa11d4afcf326fab9a0604a0e4d5e09f",
        ),
        (
            ("ses", "us-east-1"),
            Request(
                url="https://email.us-east-1.amazonaws.com/v2/email/outbound-emails",
                headers=JSON,
                body='{"a":"é\\n"}'.encode(),
            ),
            "IQoJb3JpZ2luX2VjE//+8aDGV1LXdlc3QtMQ==",
            "content-type;host;x-amz-date;x-amz-security-token",
            "ce224a1d64801e8da429aa7dfadec2e73bec5ad0a479f022320f473046e8cd5b",
        ),
        (
            SES,
            Request(url=f"{HOST}/v2/email/identities/shop%40example.com", headers={}, body=None),
            "",
            "host;x-amz-date",
            "7c7dc947ce5cc878b124da80ae408cede550002872962f8e08e26fb49f4466fb",
        ),
        (
            ("ses", "cn-north-1"),
            Request(
                url="https://email.cn-north-1.amazonaws.com.cn:443/v2/email/account",
                headers={},
                body=None,
            ),
            "",
            "host;x-amz-date",
            "85dadd0a34cbd8e0bf6b71e0291b073bffa8bf09b0829d51cbdbb55d2ecd205f",
        ),
        (
            ("sns", "eu-west-1"),
            Request(
                url="http://127.0.0.1:8001/sns/",
                headers=FORM,
                body=b"Action=ConfirmSubscription&Token=x%2By",
            ),
            "",
            "content-type;host;x-amz-date",
            "07d2453b8c29c60ef7ae3474d27ecd501b13dbbdd7c297b9ab692a2ce6a194e6",
        ),
        (
            ("sms-voice", "us-gov-west-1"),
            Request(url="https://sms-voice.us-gov-west-1.amazonaws.com", headers=SMS, body=b"{}"),
            "",
            "content-type;host;x-amz-date;x-amz-target",
            "91f0390da9a0bd753a7ccc8932890c724d80c712aba8625a6cea1e8b7be84e73",
        ),
        (
            SES,
            Request(
                url="https://h.example/a%20b/c%2Fd~e;f",
                headers={"Content-Type": "  a   b\t c "},
                body=b"\x00\xff",
            ),
            "",
            "content-type;host;x-amz-date",
            "1501733de62409b43ef3b914532eb42e802294a301c1cbfa07ed139753f15f54",
        ),
    ],
)
def test_signature_is_that_of_aws_own_library(
    scope: tuple[str, str], unsigned: Request, token: str, names: str, signature: str
) -> None:
    service, region = scope
    found = signed(scope, unsigned, token=token)
    assert found.headers["Authorization"] == (
        f"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20260701/{region}/{service}/aws4_request, "
        f"SignedHeaders={names}, Signature={signature}"
    )
    assert found.headers["X-Amz-Date"] == "20260701T120005Z"
    assert found.headers.get("X-Amz-Security-Token", "") == token
    assert (found.url, found.body) == (unsigned.url, unsigned.body)


def test_time_is_utc_whatever_the_clock_says() -> None:
    zone = timezone(timedelta(hours=-8))
    request = Request(url=HOST, headers=JSON, body=b"")
    assert signed(SES, request, now=NOW.astimezone(zone)) == signed(SES, request)


def test_credentials_show_no_secret() -> None:
    shown = repr(Credentials(access_key_id="AKID", secret_access_key=SECRET, session_token="T0K"))
    assert SECRET not in shown
    assert "T0K" not in shown
