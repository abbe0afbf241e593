"""Mails to SES, and its recorded answers."""

import base64
import re
from dataclasses import replace
from email import policy
from email.parser import BytesParser
from typing import Any

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    Reach,
    TransientError,
)
from notifyproject.platform.event_loop import run
from providers.aws_responses import COMMON_RULES
from providers.contract import Message, NotAttemptedError, SendResult
from providers.mail import AttachmentFile
from providers.ses.responses import RULES
from tests.support.factories.notifications import FIXED_NOON, outbound
from tests.support.providers.ses import (
    MESSAGE_ID,
    REFERENCE,
    account,
    answer,
    attempt,
    refused,
    sent_body,
    sent_mail,
)
from tests.support.tables import each_case

F = FailureCode
ACCEPTED = answer(200, {"MessageId": MESSAGE_ID})


def test_mail_is_our_own_mime_with_the_reference_in_a_header_and_a_tag() -> None:
    result, [request] = attempt(ACCEPTED)
    assert isinstance(result, SendResult)
    assert (result.provider_id, result.response.status) == (MESSAGE_ID, 200)
    body = sent_body(request)
    assert body.keys() == {"Destination", "Content", "EmailTags", "ConfigurationSetName"}
    assert body["Destination"] == {"ToAddresses": ["ada@example.com"]}
    assert body["ConfigurationSetName"] == "notify"
    mail = BytesParser(policy=policy.default).parsebytes(
        base64.b64decode(body["Content"]["Raw"]["Data"])
    )
    # FromEmailAddress would replace this header, and the name with it.
    assert mail["From"] == "The Shöp <shop@example.com>"
    assert (mail["To"], mail["Subject"]) == ("Ada <ada@example.com>", "Paid")
    assert mail["X-Notify-Reference"] == REFERENCE
    assert mail["Auto-Submitted"] == "auto-generated"


def test_tag_has_no_full_stop_which_ses_refuses() -> None:
    _, [request] = attempt(ACCEPTED)
    assert sent_body(request)["EmailTags"] == [
        {"Name": "reference", "Value": f"{'a' * 24}-email-1"}
    ]


def test_request_is_signed_for_ses_in_the_region() -> None:
    _, [request] = attempt(ACCEPTED, region="us-west-2")
    head = request.partition(b"\r\n\r\n")[0].decode()
    assert head.startswith("POST /v2/email/outbound-emails HTTP/1.1")
    assert re.search(r"Credential=AKIA\w+/20261121/us-west-2/ses/aws4_request", head)
    assert "X-Amz-Date: 20261121T120000Z" in head


def test_account_without_a_configuration_set_names_none() -> None:
    _, [request] = attempt(ACCEPTED, configuration_set="")
    assert "ConfigurationSetName" not in sent_body(request)


def test_reply_to_unsubscribe_and_files_are_in_the_mail() -> None:
    message = Message(
        subject="News",
        text="News",
        reply_to="help@example.com",
        unsubscribe_url="https://notify.example.com/u/1",
    )
    file = AttachmentFile(filename="a.pdf", content_type="application/pdf", content=b"%PDF")
    body = account().body(outbound(message=message), files=(file,))
    mail = sent_mail(b"\r\n\r\n" + body)
    assert mail["Reply-To"] == "help@example.com"
    assert mail["List-Unsubscribe"] == "<https://notify.example.com/u/1>"
    assert [part.get_filename() for part in mail.walk() if part.get_filename()] == ["a.pdf"]


@each_case("recipient", ["zoë@example.com", "no address", "a@exa mple.com"])
def test_address_that_ses_does_not_take_is_a_failure_of_the_mail(recipient: str) -> None:
    error, requests = attempt(recipient=recipient)
    assert isinstance(error, PermanentError)
    assert (error.code, requests) == (F.RENDER_FAILED, [])


def test_expired_mail_is_not_sent() -> None:
    error, requests = attempt(expires_at=FIXED_NOON)
    assert isinstance(error, NotAttemptedError)
    assert requests == []


RATE, QUOTA = "Maximum sending rate exceeded.", "Daily message quota exceeded."
NOT_VERIFIED = (
    "Email address is not verified. The following identities failed the check in region EU-WEST-1: "
    "ada@example.com"
)
RATE_LIMITED, UNAVAILABLE = F.RATE_LIMITED, F.CHANNEL_UNAVAILABLE
RECORDED: list[tuple[int, str, str, type[ProviderError], FailureCode]] = [
    (429, "TooManyRequestsException", RATE, TransientError, RATE_LIMITED),
    (429, "TooManyRequestsException", QUOTA, ProviderUnavailableError, UNAVAILABLE),
    (400, "LimitExceededException", QUOTA, ProviderUnavailableError, UNAVAILABLE),
    (400, "LimitExceededException", "Too many.", ProviderUnavailableError, UNAVAILABLE),
    (400, "ThrottlingException", "Rate exceeded", TransientError, RATE_LIMITED),
    (400, "Throttling", RATE, TransientError, RATE_LIMITED),
    (503, "RequestLimitExceeded", "Slow down", TransientError, RATE_LIMITED),
    (400, "AccountSuspendedException", "", ProviderUnavailableError, UNAVAILABLE),
    (400, "SendingPausedException", "", ProviderUnavailableError, UNAVAILABLE),
    (400, "AccountSendingPausedException", "", ProviderUnavailableError, UNAVAILABLE),
    (400, "ConfigurationSetSendingPausedException", "", ProviderUnavailableError, UNAVAILABLE),
    (400, "MailFromDomainNotVerifiedException", "", ProviderUnavailableError, UNAVAILABLE),
    (404, "NotFoundException", "Configuration set <a>", ProviderUnavailableError, UNAVAILABLE),
    (400, "ConfigurationSetDoesNotExistException", "", ProviderUnavailableError, UNAVAILABLE),
    (400, "MessageRejected", NOT_VERIFIED, ProviderUnavailableError, UNAVAILABLE),
    (400, "MessageRejected", "Sending suspended", ProviderUnavailableError, UNAVAILABLE),
    (400, "MessageRejected", "Bad content", PermanentError, F.REJECTED),
    (400, "BadRequestException", "Message length is more than 1", PermanentError, F.TOO_LARGE),
    (400, "BadRequestException", "Illegal address", PermanentError, F.REJECTED),
    (
        403,
        "InvalidSignatureException",
        "Signature expired: 2",
        ProviderUnavailableError,
        UNAVAILABLE,
    ),
    (403, "InvalidSignatureException", "It does not match.", ProviderUnavailableError, UNAVAILABLE),
    (403, "SignatureDoesNotMatch", "not yet current", ProviderUnavailableError, UNAVAILABLE),
    (400, "RequestExpired", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "RequestTimeTooSkewed", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "RequestInTheFuture", "", ProviderUnavailableError, UNAVAILABLE),
    (400, "IncompleteSignature", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "IncompleteSignatureException", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "MissingAuthenticationToken", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "MissingAuthenticationTokenException", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "UnrecognizedClientException", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "InvalidClientTokenId", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "ExpiredToken", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "ExpiredTokenException", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "AccessDenied", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "AccessDeniedException", "", ProviderUnavailableError, UNAVAILABLE),
    (400, "NotAuthorized", "", ProviderUnavailableError, UNAVAILABLE),
    (403, "OptInRequired", "", ProviderUnavailableError, UNAVAILABLE),
    (404, "UnknownOperationException", "", ProviderUnavailableError, UNAVAILABLE),
    (400, "InvalidAction", "", ProviderUnavailableError, UNAVAILABLE),
    (400, "OddException", "Odd.", PermanentError, F.REJECTED),
    (413, "", "", PermanentError, F.TOO_LARGE),
    (429, "", "", TransientError, RATE_LIMITED),
    (408, "", "", TransientError, F.PROVIDER_ERROR),
    (403, "", "", ProviderUnavailableError, UNAVAILABLE),
    (307, "", "", ProviderUnavailableError, UNAVAILABLE),
    (500, "InternalFailure", "", TransientError, F.PROVIDER_ERROR),
    (503, "ServiceUnavailable", "", TransientError, F.PROVIDER_ERROR),
]


@each_case("status, name, message, kind, code", RECORDED)
def test_answer_has_its_class(
    status: int, name: str, message: str, kind: type[ProviderError], code: FailureCode
) -> None:
    error: Any = attempt(refused(name, message, status=status))[0]
    assert type(error) is kind
    assert error.code is code
    assert not getattr(error, "is_ambiguous", False)
    assert error.response.code == (name or None)
    assert "ada@example.com" not in f"{error}{error.response}"


def test_every_rule_has_a_recorded_answer() -> None:
    recorded = {name for _, name, *_ in RECORDED}
    assert {name for rule in (*RULES, *COMMON_RULES) for name in rule.names} <= recorded


def test_clock_that_is_wrong_is_named() -> None:
    error, _ = attempt(refused("InvalidSignatureException", "Signature expired: a b", status=403))
    assert "clock" in error.reason


def test_address_that_is_not_verified_may_concern_its_recipient_alone() -> None:
    """In SES's sandbox, recipients must be verified: one that isn't must not stop the others."""
    error, _ = attempt(refused("MessageRejected", NOT_VERIFIED))
    assert error.reach is Reach.UNCERTAIN
    assert not isinstance(error, InvalidRecipientError)


@each_case(
    "body, header",
    [
        ({"message": "Rate exceeded"}, "x-amzn-ErrorType: ThrottlingException:http://aws/"),
        ({"__type": "com.amazonaws.ses#ThrottlingException", "Message": "Rate"}, "X-A: b"),
        ({"__type": "ThrottlingException"}, "X-A: b"),
        ({"code": "Throttling"}, "X-A: b"),
    ],
)
def test_name_of_an_error_is_read_in_each_form(body: Any, header: str) -> None:
    error, _ = attempt(answer(400, body, header))
    assert error.code is RATE_LIMITED


def test_rate_limit_has_its_pause() -> None:
    limited = refused("ThrottlingException", headers=("Retry-After: 7",))
    assert attempt(limited)[0].retry_after == 7.0


@each_case(
    "body",
    [
        answer(200, {}),
        answer(200, {"MessageId": ""}),
        answer(200, {"MessageId": "a b"}),
        answer(200, {"MessageId": 7}),
        answer(200, []),
        answer(202, {"MessageId": MESSAGE_ID}),
        refused("ThrottlingException", status=200),
    ],
)
def test_odd_success_is_ambiguous(body: bytes) -> None:
    error, _ = attempt(body)
    assert isinstance(error, TransientError)
    assert error.is_ambiguous


def test_account_differs_by_key_region_and_configuration_set() -> None:
    own = account()
    others = (
        replace(own, region="us-east-1"),
        replace(own, configuration_set="other"),
        replace(own, credentials=replace(own.credentials, access_key_id="AKIAOTHER")),
    )
    assert len({each.account for each in (own, *others)}) == 4


def test_downloads_do_not_use_up_the_time_of_the_send() -> None:
    error: Any = None
    try:
        run(account().send(outbound(), timeout=0))
    except NotAttemptedError as raised:
        error = raised
    assert error is not None
