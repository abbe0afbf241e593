"""The sender of a brand: what each provider of email sends, and what a refusal of it affects."""

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from email import message_from_bytes
from typing import Any, cast
from urllib.parse import unquote_plus

import pytest

from domain.errors import ProviderError, ProviderUnavailableError, Reach
from domain.mailboxes import parse_mailbox
from notifyproject.platform.event_loop import run
from providers import senders
from providers.contract import Message, ScopedProvider, SendTarget
from providers.discovery import SPECS
from providers.http import Response
from providers.mail import SenderScopes
from providers.registry import get_provider
from tests.providers.email_apis.cases import KINDS
from tests.providers.email_apis.kinds import KindCase
from tests.support.factories.notifications import outbound
from tests.support.fakes import smtp_server, socket_server
from tests.support.providers import sendgrid, ses
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

ADDRESS, HELP = "hello@acme.example", "help@acme.example"
SENDER = parse_mailbox(f"Acme, Inc. <{ADDRESS}>")
SCOPE = ADDRESS
MESSAGE = Message(subject="S", text="T", sender=SENDER, reply_to=f"Acme's help <{HELP}>")
DEFAULT_SENDER, DEFAULT_REPLY = "shop@shop.example", "answers@shop.example"
OWN = {"sender": f"Shop <{DEFAULT_SENDER}>", "reply_to": f"Shop <{DEFAULT_REPLY}>"}
"""Of the installation."""
Mails = Callable[[Message], str]
"""Returns what a provider sends of a message, as text."""


def _by_kind(case: KindCase) -> Mails:
    def sent(message: Message) -> str:
        body = case.account(**OWN).build(outbound(message=message)).request.body or b""
        text = body.decode(errors="replace")
        return text if text.startswith("{") else unquote_plus(text)

    return sent


def _by_sendgrid(message: Message) -> str:
    return json.dumps(replace(sendgrid.account(), **OWN).body(outbound(message=message)))


def _by_ses(message: Message) -> str:
    body = json.loads(ses.account(**OWN).body(outbound(message=message)))
    # It would replace the name, too.
    assert "FromEmailAddress" not in body
    return base64.b64decode(body["Content"]["Raw"]["Data"]).decode()


def _by_smtp(message: Message) -> str:
    server = smtp_server.MailServer()
    with socket_server.serving(server) as running:
        provider = replace(smtp_server.provider(running.port), **OWN)
        run(provider.send(outbound(message=message), timeout=LIMIT))
    (raw,) = server.mails
    return "\n".join([*server.commands, raw.decode()])


MAILS: dict[str, Mails] = {
    **{case.name: _by_kind(case) for case in KINDS},
    "sendgrid": _by_sendgrid,
    "ses": _by_ses,
    "smtp": _by_smtp,
}
EVERY = pytest.mark.parametrize("provider", MAILS)


def test_every_provider_of_email_is_here() -> None:
    assert {spec.name for spec in SPECS.values() if spec.channel == "email"} == {*MAILS}


@EVERY
@pytest.mark.usefixtures("opened")
def test_mail_has_the_sender_and_the_reply_address_of_the_brand(provider: str) -> None:
    text = MAILS[provider](MESSAGE)
    assert "Acme, Inc." in text
    for address in (ADDRESS, HELP):
        assert address in text
    for address in (DEFAULT_SENDER, DEFAULT_REPLY):
        assert address not in text


@EVERY
@pytest.mark.usefixtures("opened")
def test_replies_to_a_brand_never_go_to_the_installation(provider: str) -> None:
    assert DEFAULT_REPLY not in MAILS[provider](replace(MESSAGE, reply_to=None))
    text = MAILS[provider](replace(MESSAGE, sender=None, reply_to=None))
    assert DEFAULT_SENDER in text
    assert DEFAULT_REPLY in text


@pytest.mark.usefixtures("opened")
def test_envelope_and_message_id_have_the_domain_of_the_sender() -> None:
    sent = smtp_server.MailServer()
    with socket_server.serving(sent) as running:
        run(smtp_server.provider(running.port).send(outbound(message=MESSAGE), timeout=LIMIT))
    (raw,) = sent.mails
    mail = message_from_bytes(raw)
    assert mail["Message-ID"].endswith("@acme.example>")
    (envelope,) = [line for line in sent.commands if line.upper().startswith("MAIL")]
    assert ADDRESS in envelope


@EVERY
def test_scope_of_a_mail_is_the_sender_of_its_brand(provider: str) -> None:
    found: Any = get_provider(provider)
    assert isinstance(found, ScopedProvider)
    assert isinstance(found, SenderScopes)
    assert found.scope(SendTarget(address="ada@example.com")) == ""
    assert found.scope(SendTarget(address="ada@example.com", sender=SCOPE)) == SCOPE


def test_mails_of_different_senders_share_no_request() -> None:
    account = sendgrid.account()
    others = [
        replace(MESSAGE, sender=None),
        replace(MESSAGE, sender=replace(SENDER, name="Acme")),
        replace(MESSAGE, sender=replace(SENDER, address="post@acme.example")),
        replace(MESSAGE, reply_to=None),
    ]
    assert len({account.batch_key(message) for message in (MESSAGE, *others)}) == 5
    assert account.batch_key(MESSAGE) == account.batch_key(replace(MESSAGE))


REFUSALS: list[tuple[str, int, Any]] = [
    ("postmark", 422, {"ErrorCode": 400, "Message": "The 'From' address is no Sender Signature."}),
    ("postmark", 422, {"ErrorCode": 401, "Message": "The Sender Signature is not confirmed."}),
    (
        "postmark",
        422,
        {"ErrorCode": 300, "Message": "Invalid 'From' address: 'x' is not a verified sender."},
    ),
    (
        "resend",
        403,
        {"name": "validation_error", "message": "The acme.example domain is not verified."},
    ),
    ("resend", 422, {"name": "invalid_from_address", "message": "Invalid from."}),
    ("mailgun", 400, {"message": "'from' parameter is not a valid address."}),
    ("brevo", 400, {"code": "invalid_parameter", "message": "valid sender email is missing"}),
    ("mailtrap", 403, {"errors": ["Sending from domain acme.example is not allowed."]}),
    ("sparkpost", 400, {"errors": [{"code": "7001", "message": "Unconfigured Sending Domain"}]}),
]


@each_case("name, status, body", REFUSALS)
def test_refusal_of_the_sender_is_about_the_brand(name: str, status: int, body: Any) -> None:
    (case,) = [case for case in KINDS if case.name == name]
    answer = Response(status=status, headers={}, body=json.dumps(body).encode())
    _is_about(case.account().refusal(answer, scope=SCOPE), SCOPE)
    _is_about(case.account().refusal(answer), None)
    key = Response(status=401, headers={}, body=b"")
    _is_about(case.account().refusal(key, scope=SCOPE), None)


def _is_about(error: ProviderError, scope: str | None) -> None:
    assert isinstance(error, ProviderUnavailableError)
    assert (error.scope, error.reach) == (scope, Reach.ACCOUNT)


@each_case("status", [400, 403])
def test_sendgrid_names_the_field_of_a_sender_that_it_has_not_verified(status: int) -> None:
    body = {"errors": [{"message": "No verified Sender Identity.", "field": "from"}]}
    answer = Response(status=status, headers={}, body=json.dumps(body).encode())
    account = sendgrid.account()
    _is_about(cast("Any", account._classify_refusal(answer, scope=SCOPE).outcome), SCOPE)
    other = replace(answer, body=b"{}", status=403)
    _is_about(cast("Any", account._classify_refusal(other, scope=SCOPE).outcome), None)


def test_ses_refuses_an_unverified_sender_or_recipient() -> None:
    refused = ses.refused("MessageRejected", "Email address is not verified.")
    error, _ = ses.attempt(refused, message=MESSAGE, scope=SCOPE)
    assert isinstance(error, ProviderUnavailableError)
    assert (error.scope, error.reach) == (SCOPE, Reach.UNCERTAIN)


@each_case(
    "replies, scope",
    [
        ({"MAIL": "553 5.7.1 Sender address rejected: not owned by user"}, SCOPE),
        ({"message": "530 From/Sender name is not valid: sender is not allowed"}, SCOPE),
        ({"RCPT": "550 5.7.60 Client does not have permissions to send as this sender"}, SCOPE),
        ({"AUTH": "535 5.7.8 Authentication failed", "EHLO": "250-x\r\n250 AUTH PLAIN"}, None),
    ],
)
@pytest.mark.usefixtures("opened")
def test_mail_server_refuses_the_sender(replies: dict[str, str], scope: str | None) -> None:
    with socket_server.serving(smtp_server.MailServer(replies=replies)) as running:
        options = {"username": "ada", "password": "s3cret"} if "AUTH" in replies else {}
        provider = smtp_server.provider(running.port, **options)
        with pytest.raises(ProviderUnavailableError) as found:
            run(provider.send(outbound(message=MESSAGE, scope=SCOPE), timeout=LIMIT))
    assert found.value.scope == scope


@each_case(
    "address, is_allowed",
    [
        ("notifications@example.com", True),
        ("Notifications@Example.com", True),
        ("ada@example.com", False),
        ("anybody@acme.example", True),
        ("anybody@ACME.example", True),
        ("a@b.acme.example", False),
        ("a@notacme.example", False),
        ("post@beta.example", True),
        ("post@bücher.example", True),
        ("other@beta.example", False),
    ],
)
def test_senders_are_addresses_and_whole_domains(
    settings: Any, address: str, is_allowed: bool
) -> None:
    settings.EMAIL_SENDERS = frozenset(
        {"@Acme.example", "post@beta.example", "@xn--bcher-kva.example", "beta.example", ""}
    )
    assert senders.is_allowed(parse_mailbox(f"Any Name <{address}>")) is is_allowed
